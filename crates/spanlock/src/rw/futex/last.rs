//! Releases that do not touch the lock once it is released: who gets in then may end its life, as C allows.
//!
//! So marks are taken off, and the count that writers sleep by is changed, *before*; if somebody marks the word again
//! by the time of the release, so once more (**futex-early**). What is left for afterwards, to wake, needs the lock's
//! address and nothing that is there.

use super::{FutexRwLock, MOST_READERS, Preference, READER_WAITS, READERS, State};
use super::{WRITER, WRITER_WAITS};
use prim::atomic::Ordering;

/// Whose hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// One of the readers, whichever.
    Reader,
    Writer,
}

impl Holder {
    fn is_in(self, state: State) -> bool {
        match self {
            Self::Reader => state.0 & READERS != 0,
            Self::Writer => state.0 & WRITER != 0,
        }
    }

    /// The state without it.
    fn gone(self, state: State) -> State {
        match self {
            Self::Reader => State(state.0 - 1),
            Self::Writer => State(state.0 & !WRITER),
        }
    }

    /// The marks of those who are to be woken when it leaves.
    fn wakes(self, state: State) -> u32 {
        match self {
            Self::Reader if state.readers() == 1 => WRITER_WAITS,
            Self::Reader if state.readers() < MOST_READERS => 0,
            Self::Reader | Self::Writer => WRITER_WAITS | READER_WAITS, // The count was full, or the lock written.
        }
    }

    fn release(self) -> Ordering {
        // [futex-leave] Release: pairs with [futex-enter].
        match self {
            Self::Reader => prim::order!("futex-leave-any", Ordering::Release),
            Self::Writer => prim::order!("futex-leave-last", Ordering::Release),
        }
    }
}

impl<P: Preference> FutexRwLock<P> {
    /// One of the readers leaves, whichever; `false` if there is none.
    #[inline]
    pub(in crate::rw) fn leave_any(&self) -> bool {
        self.leave_as(Holder::Reader)
    }

    /// The writer leaves; `false` if there is none.
    #[inline]
    pub(in crate::rw) fn leave_written(&self) -> bool {
        self.leave_as(Holder::Writer)
    }

    #[inline]
    fn leave_as(&self, holder: Holder) -> bool {
        let mut roused = State::FREE;
        let mut seen = self.state();
        let left = loop {
            if !holder.is_in(seen) {
                break false;
            }
            let marks = seen.0 & holder.wakes(seen);
            // [futex-early]
            if marks != 0 && prim::intact!("futex-early") {
                roused = State(roused.0 | self.rouse(marks).0);
                seen = self.state();
                continue;
            }
            let after = holder.gone(seen);
            let left =
                self.state
                    .compare_exchange(seen.0, after.0, holder.release(), Ordering::Relaxed);
            match left {
                Ok(_) => break true,
                Err(found) => seen = State(found),
            }
        };
        if roused.has_waiters() {
            self.wake(roused);
        }
        left
    }
}
