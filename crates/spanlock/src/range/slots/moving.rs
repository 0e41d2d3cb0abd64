//! How a lock moves from its list to a board, and returns.
//!
//! ```text
//!              threads have met                              one thread has been alone for long,
//!   list ----------------------------> board, and the        and holds everything on the board
//!    ^                                 list as residue ----------------------+
//!    |                                                                       |
//!    +-----------------------------------------------------------------------+
//! ```
//!
//! The edges cited are the parent module's.

use super::board::Board;
use super::enter::Entry;
use super::home::{self, Share};
use super::slot::Slot;
use super::{Growth, InList, RawSlots};
use crate::range::inspect::Request;
use crate::range::list::Link;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::range::thread::{self, ThreadRecord};
use prim::atomic::Ordering;
use std::panic::Location;
use std::ptr::NonNull;

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

    /// Whether the lock has left that board, in which the running thread has a share. A request whose scan has met
    /// nothing asks this.
    #[inline]
    pub(super) fn has_left(&self, board: &Board) -> bool {
        // [returned-check]
        // Acquire, as in `board`.
        let head = self.list.head.load(Ordering::Acquire);
        head != home::head_of(NonNull::from(board)) && prim::intact!("returned-check")
    }

    /// Returns to the list, if the running thread, whose home slot that is, has been alone since it looked around last.
    #[cold]
    pub(super) fn returns(
        &self,
        here: NonNull<Board>,
        home: &Slot,
        at: &'static Location<'static>,
    ) -> bool {
        // SAFETY: the thread has a share in the board, and keeps it until the end.
        let board = unsafe { here.as_ref() };
        let is_alone = || {
            let others = board.announced_beside(home);
            others.is_some_and(|others| home.policy().is_alone(others))
        };
        let may = self.list.index == Growth::WhenMet && board.residue_is_empty();
        // A thread that stays idle may keep the board.
        if !may || board.is_large() || !is_alone() {
            return false;
        }
        let everything = Request::new(Span::ALL, Mode::Exclusive, home.thread());
        let entry = Entry::newcomer(everything, at);
        // [return-alone] A request that is announced before is met, and one that is announced later meets this one, or
        // what it has done [returned-check]. It stays undecided, as it is withdrawn soon: a request that may not wait
        // spins meanwhile.
        let is_granted = self.enter(board, home, None, entry).is_ok();
        if !is_granted && prim::intact!("return-alone") {
            return false;
        }
        // A hint, and before the head: a thread that finds others in the list may set it at once.
        self.list.is_crowded.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire of the list's insertions. What was held on the board comes before.
        self.list.head.set(Link::NULL, Ordering::Release);
        if is_granted {
            self.leave(board, home);
        }
        home::forget(here);
        // SAFETY: the head led to it until now, so this is the lock's share.
        let share = unsafe { Share::kept(here) };
        // [board-grace] Walks may stand on its residue, and threads may be about to take a share.
        if prim::intact!("board-grace") {
            thread::with_record(|record| record.retire_board(share));
        }
        true
    }
}
