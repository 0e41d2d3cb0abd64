//! Where a thread finds its home slots, and the slots that it was lent last.

use super::slot::Slot;
use std::cell::Cell;
use std::ptr::NonNull;

/// In how many locks a thread finds its slot without a look at all slots.
const SEATS: usize = 16;

/// The number of a board on which the thread has a slot, and that slot. Boards have different numbers, so the slot
/// is alive if there still is a board with that number.
#[derive(Clone, Copy)]
struct Seat {
    board: u64,
    slot: NonNull<Slot>,
}

impl Seat {
    /// Boards are numbered from one.
    const EMPTY: Self = Self {
        board: 0,
        slot: NonNull::dangling(),
    };
}

/// The seats of a thread: its slots in the locks that it used last, one in each.
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

    /// The thread's slot on the board with that number, if that is the thread's first seat.
    #[inline]
    pub(super) fn first_on(&self, board: u64) -> Option<NonNull<Slot>> {
        let first = self.taken[0].get();
        (first.board == board).then_some(first.slot)
    }

    /// The thread's slot on the board with that number. Makes its seat the first. (A search: a place by an address
    /// would differ from run to run, and so would simulated results.)
    pub(super) fn slot_on(&self, board: u64) -> Option<NonNull<Slot>> {
        let seat = self.taken.iter().find(|seat| seat.get().board == board)?;
        let slot = seat.get().slot;
        self.taken[0].swap(seat);
        Some(slot)
    }

    /// Remembers a slot on the board with that number, on which the thread has no seat.
    pub(super) fn remember(&self, board: u64, slot: &Slot) {
        let next = self.next.get();
        self.next.set(next % (SEATS - 1) + 1);
        let slot = NonNull::from(slot);
        self.taken[next].set(Seat { board, slot });
    }

    /// Remembers another slot on the board with that number, on which the thread may have a seat.
    pub(super) fn change(&self, board: u64, slot: &Slot) {
        match self.slot_on(board) {
            Some(_) => self.taken[0].set(Seat {
                board,
                slot: NonNull::from(slot),
            }),
            None => self.remember(board, slot),
        }
    }

    /// Forgets all of them.
    pub(crate) fn forget_all(&self) {
        for seat in &self.taken {
            seat.set(Seat::EMPTY);
        }
    }
}
