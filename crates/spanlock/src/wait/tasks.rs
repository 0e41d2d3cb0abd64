//! Tasks as sleepers. To clone, wake or drop a waker is to run foreign code, which may panic or ask for a range. So
//! this is done while no mutex of the library is held, and the thread walks no list.

use prim::contain;
use smallvec::SmallVec;
use std::task::Waker;

/// Tells wakers apart: of two that live, equal ones wake the same task. Of a waker that is gone it may be the same as
/// that of a later one, which wakes another task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WakerId {
    data: usize,
    functions: usize,
}

impl WakerId {
    /// One of many for a test.
    #[cfg(test)]
    pub(crate) fn numbered(number: u64) -> Self {
        let (data, functions) = (usize::try_from(number).expect("it fits"), 0);
        Self { data, functions }
    }

    pub(crate) fn of(waker: &Waker) -> Self {
        let (data, functions) = (waker.data(), std::ptr::from_ref(waker.vtable()));
        Self {
            data: data.addr(),
            functions: functions.addr(),
        }
    }
}

/// Wakers that were taken out under a mutex, to be used when it is free.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    to_wake: SmallVec<[Waker; 4]>,
    to_drop: SmallVec<[Waker; 2]>,
}

impl Wakers {
    pub(crate) fn is_empty(&self) -> bool {
        self.to_wake.is_empty() && self.to_drop.is_empty()
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.to_wake.extend(waker);
    }

    pub(crate) fn discard(&mut self, waker: Option<Waker>) {
        self.to_drop.extend(waker);
    }

    pub(crate) fn append(&mut self, others: Self) {
        self.to_wake.extend(others.to_wake);
        self.to_drop.extend(others.to_drop);
    }

    /// Runs the foreign code. A panic of it ends that call alone: the thread is innocent, and the other tasks wait to
    /// be woken.
    pub(crate) fn call(self) {
        for waker in self.to_wake {
            contain(|| waker.wake());
        }
        for waker in self.to_drop {
            contain(|| drop(waker));
        }
    }
}
