//! Releases that do not touch the lock once it is released: who gets in then may end its life, as C allows.
//!
//! So marks are taken off, and the count that writers sleep by is changed, *before*; if somebody marks the word again
//! by the time of the release, so once more (**futex-early**). What is left for afterwards, to wake, needs the lock's
//! address and nothing that is there.
//!
//! While a writer is inside, what is counted are readers who came in vain: whoever leaves then is the writer
//! (**leave-unwritten**).

use super::{FutexRwLock, MOST_READERS, Preference, READER_WAITS, State};
use super::{WRITER, WRITER_WAITS};
use prim::atomic::Ordering;

/// Whose hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// One of the readers, whichever, by one who is inside: then there is no writer.
    Reader,
    /// One that came in vain.
    Refused,
    Writer,
}

impl Holder {
    fn is_in(self, state: State) -> bool {
        match self {
            // [leave-unwritten]
            Self::Reader => {
                state.readers() > 0 && (!state.is_written() || !prim::intact!("leave-unwritten"))
            }
            Self::Refused => state.readers() > 0,
            Self::Writer => state.0 & WRITER != 0,
        }
    }

    /// The state without it.
    fn gone(self, state: State) -> State {
        match self {
            Self::Reader | Self::Refused => State(state.0 - 1),
            Self::Writer => State(state.0 & !WRITER),
        }
    }

    /// The marks of those who are to be woken when it leaves.
    fn wakes(self, state: State) -> u32 {
        match self {
            Self::Reader | Self::Refused if state.is_last_reader() => WRITER_WAITS,
            Self::Reader | Self::Refused if state.readers() < MOST_READERS => 0,
            _ => WRITER_WAITS | READER_WAITS, // The count was full, or the lock written.
        }
    }

    fn release(self) -> Ordering {
        // [futex-leave] Release: pairs with [futex-enter].
        match self {
            Self::Reader | Self::Refused => prim::order!("futex-leave-any", Ordering::Release),
            Self::Writer => prim::order!("futex-leave-last", Ordering::Release),
        }
    }
}

impl<P: Preference> FutexRwLock<P> {
    /// One of the readers leaves, whichever; `false` if there is none inside.
    #[inline]
    pub(in crate::rw) fn leave_any(&self) -> bool {
        self.leave_as(Holder::Reader)
    }

    /// The same, if nobody is to be woken for that; else nothing was done.
    #[inline(always)]
    pub(in crate::rw) fn leave_any_unnoticed(&self) -> bool {
        self.leave_unnoticed(Holder::Reader).is_ok()
    }

    /// One of the readers leaves that came in vain, or one for which another left; `false` if there is none.
    #[cold]
    pub(in crate::rw) fn leave_refused(&self) -> bool {
        self.leave_as(Holder::Refused)
    }

    /// The writer leaves; `false` if there is none.
    #[inline]
    pub(in crate::rw) fn leave_written(&self) -> bool {
        self.leave_as(Holder::Writer)
    }

    #[inline]
    fn leave_as(&self, holder: Holder) -> bool {
        self.leave_unnoticed(holder)
            .or_else(|seen| self.leave_noticed(holder, seen))
            .is_ok()
    }

    /// Leaves, if there is nobody to be woken for that; else the state that says so.
    #[inline(always)]
    fn leave_unnoticed(&self, holder: Holder) -> Result<(), State> {
        let mut seen = self.state();
        // [futex-early]
        while holder.is_in(seen)
            && (seen.0 & holder.wakes(seen) == 0 || !prim::intact!("futex-early"))
        {
            let after = holder.gone(seen);
            let left =
                self.state
                    .compare_exchange(seen.0, after.0, holder.release(), Ordering::Relaxed);
            match left {
                Ok(_) => return Ok(()),
                Err(found) => seen = State(found),
            }
        }
        Err(seen)
    }

    /// Leaves, if it is inside, and wakes whoever waits for that; else the state that says so.
    #[cold] // Somebody sleeps.
    fn leave_noticed(&self, holder: Holder, mut seen: State) -> Result<(), State> {
        let mut roused = State::FREE;
        let left = loop {
            if !holder.is_in(seen) {
                break Err(seen);
            }
            roused = State(roused.0 | self.rouse(seen.0 & holder.wakes(seen)).0);
            match self.leave_unnoticed(holder) {
                Ok(()) => break Ok(()),
                Err(now) => seen = now,
            }
        };
        if roused.has_waiters() {
            self.wake(roused);
        }
        left
    }
}
