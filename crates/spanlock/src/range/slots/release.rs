//! How a range is released and downgraded, and an announcement withdrawn. The edges cited are the parent module's.

use super::RawSlots;
use super::board::Board;
use super::slot::Slot;
use super::state::State;
use super::token::{Granted, Token};
use std::mem;

impl RawSlots {
    /// # Safety
    /// This lock granted the token.
    #[inline]
    pub(super) unsafe fn release(&self, token: Token) {
        if token.is_of_list() {
            // SAFETY: this lock granted the token, so the list granted it.
            unsafe { self.list.release(&self.wait_queue, token.as_list_token()) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.release_slot(token) }
        }
    }

    /// Not inlined, so that a lock that has not moved is released as fast as a list lock.
    ///
    /// # Safety
    /// This lock granted the token, which is not one of the list.
    #[inline(never)]
    unsafe fn release_slot(&self, token: Token) {
        if token.is_of_annex() {
            // SAFETY: the annex granted it, whose requests wait in this queue. A release touches the node alone.
            return unsafe { self.list.release(&self.wait_queue, token.as_annex_token()) };
        }
        // SAFETY: this lock granted the token, and is alive.
        let slot = unsafe { token.slot() };
        if slot.advice().grants.keeps() && slot.keep() {
            return;
        }
        if !token.is_home() || slot.is_listed() {
            self.release_on_board(slot, token.is_home());
        } else {
            self.end(slot);
        }
    }

    /// Releases what is not held in the home slot, or listed.
    #[inline(never)] // The thread holds several ranges, or narrow ones.
    fn release_on_board(&self, slot: &Slot, is_home: bool) {
        let board = self.board_of_held();
        if slot.is_borrowed() {
            return self.release_lent(board, slot);
        }
        // Before the end of the announcement: then the slot may be an heir's.
        let has_no_owner = !is_home && !slot.return_to_owner();
        self.leave(board, slot);
        if has_no_owner {
            board.give_up(slot);
        }
    }

    /// Releases what is held in a lent slot. Any thread may.
    #[inline]
    pub(super) fn release_lent(&self, board: &Board, slot: &Slot) {
        board.strike(slot.take_places());
        let freed = slot.note_end();
        // Before the end of the announcement: then the user may drop the lock.
        slot.give_back();
        self.end_as(slot, freed);
    }

    /// The board, on which a range is held.
    pub(super) fn board_of_held(&self) -> &Board {
        self.board().expect("the range is held on a board")
    }

    /// Ends what this thread has announced in a slot of that board, and wakes the requests asleep behind it.
    #[inline]
    pub(super) fn leave(&self, board: &Board, slot: &Slot) {
        board.strike(slot.take_places());
        self.end(slot);
    }

    /// Looks for what is in the way of a request that is announced in that slot. Where the thread is in a walk already,
    /// in a comparison of keys that asks for this range, the look panics, and the announcement ends.
    #[cold] // The annex is in use, or the list that the lock came from.
    pub(super) fn look_while_announced<R>(
        &self,
        board: &Board,
        slot: &Slot,
        look: impl FnOnce() -> R,
    ) -> R {
        struct Announced<'a>(&'a RawSlots, &'a Board, &'a Slot);

        impl Drop for Announced<'_> {
            fn drop(&mut self) {
                let &mut Self(lock, board, slot) = self;
                lock.withdraw(board, slot);
                if !slot.is_home() {
                    board.give_back(slot);
                }
            }
        }

        let announced = Announced(self, board, slot);
        let looked = look();
        mem::forget(announced);
        looked
    }

    /// Ends the announcement of a request that was not granted.
    #[cold]
    pub(super) fn withdraw(&self, board: &Board, slot: &Slot) {
        self.leave(board, slot);
    }

    /// Ends what is announced in a slot that is not listed.
    #[inline]
    fn end(&self, slot: &Slot) {
        self.end_as(slot, slot.note_end());
    }

    /// Ends what is announced in a slot, whose state is that one then.
    #[inline]
    fn end_as(&self, slot: &Slot, freed: State) {
        // [slot-wake] The same operation that ends the announcement loads the sleepers' mark [slot-sleeper].
        if slot.end(freed).has_sleeper() && prim::intact!("slot-wake") {
            self.wake_sleepers(slot);
        }
    }

    #[inline(never)] // So that a range behind which nobody sleeps is released without it.
    fn wake_sleepers(&self, slot: &Slot) {
        self.wait_queue
            .with_queue(|queue, wakeups| queue.holders_left([slot.id()], wakeups));
    }

    /// # Safety
    /// This lock granted the token.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        // SAFETY: this lock granted the token, and is alive.
        match unsafe { token.granted() } {
            // SAFETY: the list granted it.
            Granted::List(token) => unsafe { self.list.make_shared(&self.wait_queue, &token) },
            Granted::Annex(token) => {
                let annex = self.board_of_held().annex();
                let annex = annex.expect("what is annexed is in the annex");
                // SAFETY: the annex granted it.
                unsafe { annex.make_shared(&self.wait_queue, &token) };
            }
            Granted::Slot(slot) => {
                // [slot-downgrade-wake] The readers that sleep behind it may enter now.
                if slot.downgrade().has_sleeper() && prim::intact!("slot-downgrade-wake") {
                    let queue = &self.wait_queue;
                    queue.with_queue(|queue, wakeups| {
                        queue.holders_downgraded([slot.id()], wakeups)
                    });
                }
            }
        }
    }
}
