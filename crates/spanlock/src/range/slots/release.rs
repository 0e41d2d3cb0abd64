//! How a range is released and downgraded. The edges cited are the parent module's.

use super::buckets::Places;
use super::state::State;
use super::{Granted, RawSlots, Slot, Token};

impl RawSlots {
    /// # Safety
    /// This lock granted the token.
    #[inline]
    pub(super) unsafe fn release(&self, token: Token) {
        // SAFETY: this lock granted the token, and is alive.
        match unsafe { token.granted() } {
            // SAFETY: the list granted it.
            Granted::Listed(token) => unsafe { self.list.release(token) },
            Granted::Announced { slot, is_home } => self.release_slot(slot, is_home),
        }
    }

    /// Not inlined, so that a lock that has not moved is released as fast as a list lock.
    #[inline(never)]
    fn release_slot(&self, slot: &Slot, is_home: bool) {
        if !is_home {
            self.release_other(slot);
        } else if !slot.policy().keeps() || !slot.keep() {
            self.leave(slot);
        }
    }

    #[inline(never)] // The thread holds several ranges.
    fn release_other(&self, slot: &Slot) {
        self.leave(slot);
        let board = self
            .board()
            .expect("what is announced is announced on a board");
        board.give_back(slot);
    }

    /// Ends what this thread has announced in a slot, and wakes the requests asleep behind it.
    #[inline]
    pub(super) fn leave(&self, slot: &Slot) {
        let places = slot.take_places();
        let before = slot.leave();
        if places != Places::NONE || before.has_sleeper() {
            self.left(slot, before, places);
        }
    }

    #[inline(never)] // So that a wide range behind which nobody sleeps is released without it.
    fn left(&self, slot: &Slot, before: State, places: Places) {
        if places != Places::NONE
            && let Some(board) = self.board()
        {
            board.strike(places);
        }
        // [slot-wake] The same operation that ended the announcement has loaded the sleepers' mark [slot-sleeper].
        if before.has_sleeper() && prim::intact!("slot-wake") {
            self.list
                .wait_queue
                .with_queue(|queue, wakeups| queue.holder_left(slot.id(), wakeups));
        }
    }

    /// # Safety
    /// This lock granted the token.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        // SAFETY: this lock granted the token, and is alive.
        match unsafe { token.granted() } {
            // SAFETY: the list granted it.
            Granted::Listed(token) => unsafe { self.list.make_shared(&token) },
            Granted::Announced { slot, .. } => {
                // [slot-downgrade-wake] The readers that sleep behind it may enter now.
                if slot.share().has_sleeper() && prim::intact!("slot-downgrade-wake") {
                    let queue = &self.list.wait_queue;
                    queue.with_queue(|queue, wakeups| queue.holder_downgraded(slot.id(), wakeups));
                }
            }
        }
    }
}
