//! A lock and what it protects.

use prim::cell::UnsafeCell;
use prim::thread::{self, JoinHandle};
use spanlock_loom::range::Span;
use spanlock_loom::range::inspect::Snapshot;
use spanlock_loom::range::list::{Builder, ExclusiveOnly, ListEx, ListRw, SharedExclusive};
use spanlock_loom::range::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use std::ops::Range;
use std::sync::Arc;

/// Slots under a lock. A range of positions protects the slots of the same numbers.
pub struct World<L = ListRw> {
    lock: L,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: slots are touched under the lock; that this suffices is what the models check.
unsafe impl<L: Sync> Sync for World<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for World<L> {}

/// A reader-writer list lock to be built.
pub fn rw() -> Builder<SharedExclusive> {
    ListRw::builder()
}

/// An exclusive list lock to be built.
pub fn ex() -> Builder<ExclusiveOnly> {
    ListEx::builder()
}

/// A held range.
pub struct Hold<'a, L: RawRangeMutex> {
    world: &'a World<L>,
    range: Range<u64>,
    mode: Mode,
    token: Option<L::Token>,
}

impl<L: RawRangeMutex> World<L> {
    /// Eight slots.
    pub fn new(lock: L) -> Arc<Self> {
        let slots = (0..8).map(UnsafeCell::new).collect();
        Arc::new(Self { lock, slots })
    }

    fn hold(&self, range: Range<u64>, mode: Mode, token: Option<L::Token>) -> Option<Hold<'_, L>> {
        Some(Hold {
            world: self,
            range,
            mode,
            token: Some(token?),
        })
    }

    pub fn write(&self, range: Range<u64>) -> Hold<'_, L> {
        self.write_within(range, Wait::Forever).unwrap()
    }

    pub fn write_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_exclusive(span(&range), wait);
        self.hold(range, Mode::Exclusive, token)
    }

    /// Looks at who holds and who waits.
    pub fn snapshot(&self) -> Snapshot {
        self.lock.snapshot().unwrap()
    }

    /// Waits until so many requests are asleep.
    pub fn until_asleep(&self, count: usize) {
        while self.snapshot().waiters.len() < count {
            // Loom's own, which does not count as a spin: what is to be explored has yet to begin.
            prim::loom::thread::yield_now();
        }
    }
}

impl<L: RawRangeLock> World<L> {
    pub fn read(&self, range: Range<u64>) -> Hold<'_, L> {
        self.read_within(range, Wait::Forever).unwrap()
    }

    pub fn read_within(&self, range: Range<u64>, wait: Wait) -> Option<Hold<'_, L>> {
        let token = self.lock.lock_shared(span(&range), wait);
        self.hold(range, Mode::Shared, token)
    }
}

fn span(range: &Range<u64>) -> Span {
    Span::of(range.clone()).unwrap()
}

impl<L: RawRangeMutex + Send + Sync + 'static> World<L> {
    /// Runs `f` in a thread of its own.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let world = Arc::clone(self);
        thread::spawn(move || f(&world))
    }
}

impl<L: RawRangeMutex> Hold<'_, L> {
    /// Looks at every slot of the range, and changes it if that is allowed.
    pub fn touch(&self) {
        for at in self.range.clone() {
            let slot = &self.world.slots[usize::try_from(at).unwrap()];
            match self.mode {
                // SAFETY: held shared; loom checks.
                Mode::Shared => _ = slot.with(|slot| unsafe { *slot }),
                // SAFETY: held exclusively; loom checks.
                Mode::Exclusive => slot.with_mut(|slot| unsafe { *slot += 1 }),
            }
        }
    }

    /// Touches and releases.
    pub fn done(self) {
        self.touch();
    }
}

impl<L: RawRangeLock> Hold<'_, L> {
    /// Shares the range from now on.
    pub fn downgrade(mut self) -> Self {
        let token = self.token.take().unwrap();
        self.mode = Mode::Shared;
        // SAFETY: this lock's token, and exclusive until now.
        self.token = Some(unsafe { self.world.lock.downgrade(token) });
        self
    }
}

impl<L: RawRangeMutex> Drop for Hold<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.world.lock.unlock(token) };
        }
    }
}
