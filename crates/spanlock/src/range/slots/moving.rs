//! How a lock moves from its list to a board. It stays there.
//!
//! The edges cited are the parent module's.

use super::advice::MEETINGS_DIGITS;
use super::board::Board;
use super::{Growth, InList, RawSlots};
use crate::range::list::Link;
use crate::range::thread::ThreadRecord;
use prim::atomic::Ordering;
use std::ptr::NonNull;

impl RawSlots {
    /// Moves to slots, by lot, if an attempt in the list came across another thread; or if it found many requests.
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
        let fresh = NonNull::from(Box::leak(Board::new()));
        // SAFETY: it comes from a box, and nobody else knows it yet.
        let board = unsafe { fresh.as_ref() };
        if let Growth::Buckets(digits) = self.setup().growth {
            board.make_buckets(digits.into());
        }
        let list = &self.list;
        let mut seen = list.head.load(Ordering::Acquire);
        loop {
            if seen.is_moved() {
                // SAFETY: it comes from a box, and nobody else has come to know it.
                drop(unsafe { Box::from_raw(fresh.as_ptr()) });
                break;
            }
            // Relaxed: published with the board.
            board.residue().set(seen, Ordering::Relaxed);
            // [move] Release: pairs with the Acquire in `board`, and with the loads of the head by walks.
            let release = prim::order!("move", Ordering::Release);
            let moved = Link::moved(fresh);
            match list.head.replace(seen, moved, release, Ordering::Acquire) {
                // From now on the lock has the board.
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        // A hint: the fast path would fail.
        list.is_crowded.store(true, Ordering::Relaxed);
    }
}
