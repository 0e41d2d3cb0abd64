//! How a lock moves from its list to a board. The edges cited are the parent module's.

use super::board::Board;
use super::{Growth, RawSlots};
use crate::range::list::Link;
use prim::atomic::Ordering;
use std::ptr::NonNull;

impl RawSlots {
    /// Makes a board, and moves what is in the list to its residue. What is held stays held.
    #[cold] // Once in a lock's life.
    pub(super) fn move_to_slots(&self) {
        let board = Board::new();
        if let Growth::Buckets(digits) = self.list.index {
            board.make_buckets(digits.into());
        }
        let list = &self.list;
        let mut seen = list.head.load(Ordering::Acquire);
        while !seen.is_moved() {
            board.residue().set(seen);
            let moved = Link::moved(NonNull::from(board.residue()));
            // [move] Release: pairs with [move-acquire], and with the loads of the head by walks.
            let release = prim::order!("move", Ordering::Release);
            match list.head.replace(seen, moved, release, Ordering::Acquire) {
                Ok(()) => {
                    // From now on the lock's head leads to it.
                    Box::leak(board);
                    break;
                }
                Err(now) => seen = now,
            }
        }
        // A hint: the fast path would fail.
        list.is_crowded.store(true, Ordering::Relaxed);
    }
}
