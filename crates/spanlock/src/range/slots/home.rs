//! Shares in boards, and where a thread finds its home slots.
//!
//! A thread remembers its home slots by the addresses of their boards. So a board keeps its memory, and with it its
//! address, until the last *share* in it is given up. These have one:
//!
//! ```text
//!   the lock -------------------------------------+
//!   each thread that knows its home slot there ---+---->  board
//! ```
//!
//! Its slots are freed with the lock. The edges cited are the parent module's.

use super::board::Board;
use super::slot::Slot;
use crate::range::list::Link;
use crate::range::thread::{self, Local};
use prim::atomic::Ordering;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// A share in a board.
pub(crate) struct Share(NonNull<Board>);

// SAFETY: a board may be used and dropped by any thread.
unsafe impl Send for Share {}

impl Share {
    /// The first share.
    pub(super) fn first(board: Box<Board>) -> Self {
        Self(NonNull::from(Box::leak(board)))
    }

    /// One more share.
    ///
    /// # Safety
    /// The board is alive, and the head of a lock led to it: a pointer that comes from a reference must not free it.
    pub(super) unsafe fn of(board: NonNull<Board>) -> Self {
        // SAFETY: the caller promises it.
        let shares = unsafe { &board.as_ref().shares };
        // Relaxed: another share keeps the board meanwhile.
        let others = shares.fetch_add(1, Ordering::Relaxed);
        assert!(others > 0, "a board was used after its last share");
        Self(board)
    }

    /// The address of the board. The share is not given up.
    pub(super) fn keep(self) -> NonNull<Board> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// The address comes from [`keep`](Self::keep), and no other share was made of it.
    pub(super) unsafe fn kept(board: NonNull<Board>) -> Self {
        Self(board)
    }

    pub(super) fn address(&self) -> NonNull<Board> {
        self.0
    }
}

impl Deref for Share {
    type Target = Board;

    fn deref(&self) -> &Board {
        // SAFETY: the share keeps the board.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Release: what this thread did with the board comes before its end. Acquire: so does what the others did.
        if self.shares.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it comes from a box, and this was the last share.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// In how many locks a thread finds its slot without a look at all slots.
const SEATS: usize = 16;

/// A board in which the thread has a share, and the thread's home slot there.
#[derive(Clone, Copy)]
struct Seat {
    /// What the head of a lock is that leads to the board.
    head: Link,
    slot: NonNull<Slot>,
}

impl Seat {
    const EMPTY: Self = Self {
        head: Link::MOVED_NOWHERE,
        slot: NonNull::dangling(),
    };

    /// Gives the share up.
    fn leave(self) {
        if let Some(board) = self.head.new_head() {
            // SAFETY: `remember` has put the share here.
            drop(unsafe { Share::kept(board.cast()) });
        }
    }
}

/// The seats of a thread: its home slots in the locks that it used last.
pub(crate) struct Seats {
    taken: [Cell<Seat>; SEATS],
    /// Which one the next board gets. Never the first: that is the one of the lock that was used last.
    next: Cell<usize>,
}

impl Seats {
    pub(crate) const fn new() -> Self {
        Self {
            taken: [const { Cell::new(Seat::EMPTY) }; SEATS],
            next: Cell::new(1),
        }
    }

    /// The thread's home slot on the board to which that head leads, if that is the thread's first seat. Then the
    /// thread has a share in the board.
    #[inline]
    pub(super) fn first_in(&self, head: Link) -> Option<NonNull<Slot>> {
        let first = self.taken[0].get();
        // No head leads to where an empty seat is.
        (first.head == head).then_some(first.slot)
    }

    /// The seat in the board to which that head leads. (A search: a place by the board's address would differ from run
    /// to run, and so would simulated results.)
    fn find(&self, head: Link) -> Option<&Cell<Seat>> {
        self.taken.iter().find(|seat| seat.get().head == head)
    }

    /// The slot on that board. Makes its seat the first.
    fn slot_in(&self, head: Link) -> Option<NonNull<Slot>> {
        let seat = self.find(head)?;
        let slot = seat.get().slot;
        self.taken[0].swap(seat);
        Some(slot)
    }

    /// Forgets all of them, and gives the shares up.
    pub(crate) fn forget_all(&self) {
        for seat in &self.taken {
            seat.replace(Seat::EMPTY).leave();
        }
    }
}

/// What the head of a lock is that leads to that board.
#[inline]
pub(super) fn head_of(board: NonNull<Board>) -> Link {
    // A board begins with its residue.
    Link::moved(board)
}

/// The board to which a head leads.
///
/// # Safety
/// It leads to a board.
#[inline]
pub(super) unsafe fn board_at(head: Link) -> NonNull<Board> {
    // SAFETY: the caller promises it.
    unsafe { head.new_head().unwrap_unchecked() }.cast()
}

/// This thread's home slot on a board, if the thread used it lately. Then the thread has a share in the board.
#[inline]
pub(super) fn known(board: &Board) -> Option<NonNull<Slot>> {
    thread::with_local(|local| local.seats.slot_in(head_of(NonNull::from(board))))
}

/// Remembers this thread's home slot on a board that it does not know, and keeps the share.
pub(super) fn remember(share: Share, slot: &Slot) {
    let (head, slot) = (head_of(share.keep()), NonNull::from(slot));
    let before = thread::with_local(|local| {
        let seats = &local.seats;
        let next = seats.next.get();
        seats.next.set(next % (SEATS - 1) + 1);
        seats.taken[next].replace(Seat { head, slot })
    });
    before.leave();
}

/// Forgets it, and gives the share up.
pub(super) fn forget(board: NonNull<Board>) {
    let find = |local: &Local| Some(local.seats.find(head_of(board))?.replace(Seat::EMPTY));
    if let Some(seat) = thread::with_local(find) {
        seat.leave();
    }
}
