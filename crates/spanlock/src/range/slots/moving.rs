//! How a lock moves from its list to a board. It stays there.
//!
//! The edges cited are the parent module's.

use super::board::Board;
use super::home::{self, Share};
use super::{Growth, InList, RawSlots};
use crate::range::thread::ThreadRecord;
use prim::atomic::Ordering;

/// A lock moves, by lot, at one of `2^MEETINGS_DIGITS` meetings of its threads. To make a board costs about as much as
/// so many meetings.
const MEETINGS_DIGITS: u32 = 4;

impl RawSlots {
    /// Moves to slots, by lot, if an attempt in the list came across another thread's request; or if it found many.
    #[inline]
    pub(super) fn consider_move(&self, attempt: &InList<'_>, record: &ThreadRecord) {
        let has_met = attempt.has_met_others() && prim::wins(record.random(), MEETINGS_DIGITS) > 0;
        if has_met || attempt.has_met_many() {
            self.move_to_slots();
        }
    }

    /// Makes a board, and moves what is in the list to its residue. What is held stays held.
    #[cold] // Once for many acquisitions.
    pub(super) fn move_to_slots(&self) {
        let board = Share::first(Board::new());
        if let Growth::Buckets(digits) = self.list.index {
            board.make_buckets(digits.into());
        }
        let list = &self.list;
        let mut seen = list.head.load(Ordering::Acquire);
        while !seen.is_moved() {
            // Relaxed: published with the board.
            board.residue().set(seen, Ordering::Relaxed);
            let moved = home::head_of(board.address());
            // [move] Release: pairs with the Acquire in `board`, and with the loads of the head by walks.
            let release = prim::order!("move", Ordering::Release);
            match list.head.replace(seen, moved, release, Ordering::Acquire) {
                Ok(()) => {
                    // From now on the lock's head leads to it.
                    board.keep();
                    break;
                }
                Err(now) => seen = now,
            }
        }
        // A hint: the fast path would fail.
        list.is_crowded.store(true, Ordering::Relaxed);
    }
}
