//! How a range is released and downgraded. The edges cited are the parent module's.

use super::board::Board;
use super::buckets::Places;
use super::home::{self, Share};
use super::slot::Slot;
use super::{Granted, RawSlots, Token};
use std::ops::Deref;
use std::ptr::NonNull;

impl RawSlots {
    /// # Safety
    /// This lock granted the token.
    #[inline]
    pub(super) unsafe fn release(&self, token: Token) {
        if token.is_listed() {
            // SAFETY: this lock granted the token, so the list granted it.
            unsafe { self.list.release(token.as_listed()) }
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
        // SAFETY: this lock granted the token, and is alive.
        let slot = unsafe { token.slot() };
        if slot.policy().keeps() && slot.keep() {
            return;
        }
        let is_home = token.is_home();
        if !is_home || slot.is_listed() {
            self.release_on_board(slot, is_home);
        } else {
            self.end(slot);
        }
    }

    #[inline(never)] // The thread holds several ranges, or narrow ones.
    fn release_on_board(&self, slot: &Slot, is_home: bool) {
        let board = self.board_of_holder();
        self.leave(&board, slot);
        if !is_home {
            board.give_back(slot);
        }
    }

    /// The board, for a thread that holds a range there: it may use the board after its release.
    #[inline]
    fn board_of_holder(&self) -> InUse {
        // The lock does not leave a board while a range is held there.
        let board = self.board().expect("what is announced is on a board");
        let is_known = home::known(board).is_some();
        // SAFETY: so the lock has a share in it.
        let share = (!is_known).then(|| Share::of(unsafe { board.as_ref() }));
        InUse {
            board,
            _share: share,
        }
    }

    /// Ends what this thread has announced in a slot of that board, and wakes the requests asleep behind it.
    #[inline]
    pub(super) fn leave(&self, board: &Board, slot: &Slot) {
        let places = slot.take_places();
        self.end(slot);
        if places != Places::NONE {
            board.strike(places);
        }
    }

    /// Ends what is announced in a slot that is not listed.
    #[inline]
    fn end(&self, slot: &Slot) {
        // [slot-wake] The same operation that ends the announcement loads the sleepers' mark [slot-sleeper].
        if slot.leave().has_sleeper() && prim::intact!("slot-wake") {
            self.wake_sleepers(slot);
        }
    }

    #[inline(never)] // So that a range behind which nobody sleeps is released without it.
    fn wake_sleepers(&self, slot: &Slot) {
        self.list
            .wait_queue
            .with_queue(|queue, wakeups| queue.holder_left(slot.id(), wakeups));
    }

    /// # Safety
    /// This lock granted the token.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        // SAFETY: this lock granted the token, and is alive.
        match unsafe { token.granted() } {
            // SAFETY: the list granted it.
            Granted::Listed(token) => unsafe { self.list.make_shared(&token) },
            Granted::Announced(slot) => {
                // [slot-downgrade-wake] The readers that sleep behind it may enter now.
                if slot.share().has_sleeper() && prim::intact!("slot-downgrade-wake") {
                    let queue = &self.list.wait_queue;
                    queue.with_queue(|queue, wakeups| queue.holder_downgraded(slot.id(), wakeups));
                }
            }
        }
    }
}

/// A board in which this thread has a share.
struct InUse {
    board: NonNull<Board>,
    /// Unless the thread has one anyway.
    _share: Option<Share>,
}

impl Deref for InUse {
    type Target = Board;

    #[inline]
    fn deref(&self) -> &Board {
        // SAFETY: the share keeps it. A thread keeps its own share as long as it runs in this lock.
        unsafe { self.board.as_ref() }
    }
}
