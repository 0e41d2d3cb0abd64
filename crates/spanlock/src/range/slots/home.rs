//! Shares in boards, and where a thread finds its home slots.
//!
//! A board is freed with the last *share* in it. These have one:
//!
//! ```text
//!   the lock, while its head leads to the board ------+
//!   each thread that knows its home slot there -------+---->  board, slots, buckets
//!   a request, if its thread does not know one yet ---+
//! ```
//!
//! So whoever finds its home slot here may use the board without a further step, also if the lock has returned to its
//! list meanwhile. The edges cited are the parent module's.

use super::board::Board;
use super::slot::Slot;
use prim::atomic::Ordering;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};

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
    pub(super) fn of(board: &Board) -> Self {
        // Relaxed: another share keeps the board meanwhile.
        let others = board.shares.fetch_add(1, Ordering::Relaxed);
        assert!(others > 0, "a board was used after its last share");
        Self(NonNull::from(board))
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

    pub(super) fn is_in(&self, board: NonNull<Board>) -> bool {
        self.0 == board
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
            let board = unsafe { Box::from_raw(self.0.as_ptr()) };
            // The mutant of [board-grace] must not touch memory that was freed.
            if !prim::intact!("board-grace") {
                let board = Box::leak(board);
                // SAFETY: nobody drops it again.
                unsafe { ptr::drop_in_place(board) };
            }
        }
    }
}

/// In how many locks a thread finds its slot without a look at all slots.
const SEATS: usize = 16;

/// A board in which the thread has a share, and the thread's home slot there.
#[derive(Clone, Copy)]
struct Seat {
    board: *const Board,
    slot: *const Slot,
}

impl Seat {
    const EMPTY: Self = Self {
        board: ptr::null(),
        slot: ptr::null(),
    };

    #[inline]
    fn is_in(self, board: NonNull<Board>) -> bool {
        ptr::eq(self.board, board.as_ptr())
    }

    /// Gives the share up.
    fn leave(self) {
        if let Some(board) = NonNull::new(self.board.cast_mut()) {
            // SAFETY: `remember` has put the share here.
            drop(unsafe { Share::kept(board) });
        }
    }
}

/// The seats of a thread.
struct Seats {
    taken: [Cell<Seat>; SEATS],
    /// Which one the next board gets.
    next: Cell<usize>,
}

prim::local! {
    /// The thread's home slots in the locks that it used last.
    static HERE: Seats = Seats {
        taken: [const { Cell::new(Seat::EMPTY) }; SEATS],
        next: Cell::new(0),
    };
}

impl Seats {
    /// The seat in that board. (A search: a place by the board's address would differ from run to run, and so would
    /// simulated results.)
    fn find(&self, board: NonNull<Board>) -> Option<&Cell<Seat>> {
        self.taken.iter().find(|seat| seat.get().is_in(board))
    }

    /// The slot in that board, or null.
    #[inline(never)] // So that the first seat is looked at without a call.
    fn search(&self, board: NonNull<Board>) -> *const Slot {
        let seat = self.find(board).map(Cell::get);
        seat.unwrap_or(Seat::EMPTY).slot
    }
}

/// This thread's home slot on a board, if the thread used it lately. Then the thread has a share in the board.
#[inline]
pub(super) fn known(board: NonNull<Board>) -> Option<NonNull<Slot>> {
    let slot = HERE.with(|seats| match seats.taken[0].get() {
        first if first.is_in(board) => first.slot,
        _ => seats.search(board),
    });
    NonNull::new(slot.cast_mut())
}

/// Remembers this thread's home slot on a board that it does not know, and keeps the share.
pub(super) fn remember(share: Share, slot: &Slot) {
    let board = share.keep().as_ptr();
    let before = HERE.with(|seats| {
        let next = seats.next.get();
        seats.next.set((next + 1) % SEATS);
        seats.taken[next].replace(Seat { board, slot })
    });
    before.leave();
}

/// Forgets it, and gives the share up.
pub(super) fn forget(board: NonNull<Board>) {
    let seat = HERE.with(|seats| Some(seats.find(board)?.replace(Seat::EMPTY)));
    if let Some(seat) = seat {
        seat.leave();
    }
}

/// Forgets all of them.
pub(crate) fn forget_all() {
    for at in 0..SEATS {
        HERE.with(|seats| seats.taken[at].replace(Seat::EMPTY))
            .leave();
    }
}
