//! Releases for C: they do not name the hold that ends, and they do not touch the lock once it is released.
//!
//! C allows the thread that gets in next to end the lock's life, and to free its memory. So a release does everything
//! it has to do in the lock *before* the step that lets another thread in:
//!
//! ```text
//!   ordinary release                       release for C
//!   ----------------                       -------------
//!   state := without the hold              a mark of threads to be woken is set?
//!   a mark is set?                           yes: clear it, signals += 1, and check again
//!     yes: clear it, signals += 1            no:  state := without the hold, in one
//!          wake                                   compare-exchange    (pthread-marks-first)
//!                                          wake, if a mark was cleared
//! ```
//!
//! The wake-up that comes last needs the lock's address, and touches nothing there. If a thread sets a mark between the
//! check and the compare-exchange, that fails, and the release starts over.
//!
//! - **pthread-marks-first**: marks are cleared before the hold ends.
//! - **pthread-leave-unwritten**: while a writer is inside, the readers in the count are backing out. A thread that
//!   leaves then is the writer, and takes none of them for its own hold.
//! - **pthread-leave-reader**, **pthread-leave-writer**: Release by the two kinds of releases; the edges of `mod.rs`
//!   that enter have the Acquire.

use super::{FutexRwLock, MOST_READERS, Preference, READER_WAITS, State, WRITER, WRITER_WAITS};
use prim::atomic::Ordering;

/// The hold that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// Any reader's. The caller is a reader inside, so there is no writer.
    Reader,
    /// The hold of any reader that backs out.
    BackingOut,
    Writer,
}

impl Holder {
    fn is_in(self, state: State) -> bool {
        match self {
            // [pthread-leave-unwritten]
            Self::Reader => {
                state.readers() > 0
                    && (!state.is_written() || !prim::intact!("pthread-leave-unwritten"))
            }
            Self::BackingOut => state.readers() > 0,
            Self::Writer => state.0 & WRITER != 0,
        }
    }

    /// The state without this hold.
    fn gone(self, state: State) -> State {
        match self {
            Self::Reader | Self::BackingOut => State(state.0 - 1),
            Self::Writer => State(state.0 & !WRITER),
        }
    }

    /// The marks of threads that are to be woken when this hold ends.
    fn wakes(self, state: State) -> u32 {
        match self {
            Self::Reader | Self::BackingOut if state.is_last_reader() => WRITER_WAITS,
            Self::Reader | Self::BackingOut if state.readers() < MOST_READERS => 0,
            _ => WRITER_WAITS | READER_WAITS, // The count was full, or a writer leaves.
        }
    }

    fn release(self) -> Ordering {
        match self {
            // [pthread-leave-reader] Release: pairs with [futex-enter-exclusive].
            Self::Reader | Self::BackingOut => {
                prim::order!("pthread-leave-reader", Ordering::Release)
            }
            // [pthread-leave-writer] Release: pairs with [futex-enter-shared] and [futex-enter-exclusive].
            Self::Writer => prim::order!("pthread-leave-writer", Ordering::Release),
        }
    }
}

impl<P: Preference> FutexRwLock<P> {
    /// Any reader inside leaves; `false` if there is none.
    #[inline]
    pub(in crate::rw) fn leave_any(&self) -> bool {
        self.leave_as(Holder::Reader)
    }

    /// Any reader inside leaves, if nobody is to be woken for that; `false` if it did not leave.
    #[inline(always)]
    pub(in crate::rw) fn leave_any_if_unawaited(&self) -> bool {
        self.leave_if_unawaited(Holder::Reader).is_ok()
    }

    /// A reader backs out; `false` if the count is zero, because a foreign unlock took its place in the count.
    #[cold]
    pub(in crate::rw) fn back_out_any(&self) -> bool {
        self.leave_as(Holder::BackingOut)
    }

    /// The writer leaves; `false` if there is none.
    #[inline]
    pub(in crate::rw) fn leave_written(&self) -> bool {
        self.leave_as(Holder::Writer)
    }

    #[inline]
    fn leave_as(&self, holder: Holder) -> bool {
        self.leave_if_unawaited(holder)
            .or_else(|seen| self.leave_and_wake(holder, seen))
            .is_ok()
    }

    /// Leaves, or returns the state: the holder is not inside, or a thread is to be woken first.
    #[inline(always)]
    fn leave_if_unawaited(&self, holder: Holder) -> Result<(), State> {
        self.change(self.state(), holder.release(), |seen| {
            // [pthread-marks-first]
            let unawaited =
                seen.0 & holder.wakes(seen) == 0 || !prim::intact!("pthread-marks-first");
            (holder.is_in(seen) && unawaited).then(|| holder.gone(seen))
        })
    }

    /// Leaves and wakes the threads that wait for that, or returns the state: the holder is not inside.
    #[cold] // A thread sleeps.
    fn leave_and_wake(&self, holder: Holder, mut seen: State) -> Result<(), State> {
        let mut woken = State::FREE;
        let left = loop {
            if !holder.is_in(seen) {
                break Err(seen);
            }
            woken = State(woken.0 | self.clear_wait_marks(seen.0 & holder.wakes(seen)).0);
            match self.leave_if_unawaited(holder) {
                Ok(()) => break Ok(()),
                Err(now) => seen = now,
            }
        };
        if woken.has_waiters() {
            self.wake(woken);
        }
        left
    }
}
