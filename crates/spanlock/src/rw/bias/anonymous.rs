//! The fast path for locks whose releases name neither what they release nor which: C's.
//!
//! All fast readers of a lock are alike, and so are its readers altogether: a release ends the hold of *one*, by the
//! first publication it finds or else by the underlying lock. So a publication may be cleared by another's release at
//! any time, even before its reader is inside. A reader that is turned away and finds its publication cleared owes the
//! release that the other did not make (**bias-owed**).

use super::{BIASED, BiasState, Knock};
use crate::rw::policy::{Bias, Policy};
use crate::rw::visible::{self, Seat, Slot};
use prim::atomic::Ordering;

/// How a reader without a token tried the fast path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Entry {
    /// It is inside.
    Entered,
    /// It is not.
    Refused,
    /// It is not, and has to release the underlying lock for a reader that released what was published here.
    Owing,
}

impl BiasState {
    /// As [`enter`](Self::enter), without a token. To be released by [`leave_anonymously`](Self::leave_anonymously).
    #[inline(always)] // It is all that the fast path is.
    pub fn enter_anonymously(&self, seat: impl FnOnce() -> Seat, policy: &impl Policy) -> Entry {
        if !self.is_open() {
            return Entry::Refused;
        }
        let seat = seat();
        match self.knock(seat, policy) {
            Knock::Entered(_) => Entry::Entered,
            Knock::Full => Entry::Refused,
            Knock::TurnedAway(slot) => self.step_back(slot, seat),
        }
    }

    #[cold] // A writer has arrived in between.
    fn step_back(&self, slot: Slot, seat: Seat) -> Entry {
        // [bias-owed] One's own publication, another of the lock's, or the underlying lock's.
        if slot.retract_if_untaken(self.address())
            || self.leave_any(|| seat)
            || !prim::intact!("bias-owed")
        {
            Entry::Refused
        } else {
            Entry::Owing
        }
    }

    /// Ends one reader's hold by the fast path, whosesoever; `false` if there is none: end one by the underlying lock.
    ///
    /// Not for writers: while one is inside by the underlying lock there is nothing to be found here.
    ///
    /// # Safety
    /// No reader of this lock enters by [`enter`](Self::enter): its token would be stale.
    #[inline]
    #[must_use]
    pub unsafe fn leave_anonymously(&self, seat: impl FnOnce() -> Seat) -> bool {
        self.leave_any(seat)
    }

    #[inline]
    fn leave_any(&self, seat: impl FnOnce() -> Seat) -> bool {
        // Relaxed: whose hold is to be ended has seen the bias on, and it stays on while anybody is inside by it.
        self.word.load(Ordering::Relaxed) & BIASED != 0
            && (seat().retract(self.address())
                // SAFETY: a reader leaves, and there are no tokens.
                || unsafe { visible::retract_any(self.address()) })
    }

    /// A reader got in by the underlying lock, which it holds, and considers to set the bias: not each time, as that
    /// costs a look at the clock.
    pub fn offer(&self, policy: &impl Policy) {
        if !self.is_clear() {
            return;
        }
        match policy.tuning().bias {
            Bias::Off => {}
            Bias::Adaptive => self.consider(),
            Bias::Eager => self.set(),
        }
    }

    /// Forgets readers, writers and the bias.
    ///
    /// # Safety
    /// The lock begins or ends its life, and nobody else uses it.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller's.
        unsafe { visible::forget(self.address()) };
        self.word.store(0, Ordering::Relaxed);
        self.pace.store(0, Ordering::Relaxed);
    }
}
