//! What the locks keep for one thread: a part for each kind of lock, which that lock's module defines. Here each part
//! is told when the thread comes and goes.

use super::list::stock::{Spare, Stock};
use super::named::Spares;
use super::segment::held::HeldSegments;
use super::slots::seats::Seats;
use crate::deadlock::{self, Wish};
use crate::reclaim::Epoch;

/// What is in the thread's record.
#[derive(Default)]
pub(crate) struct Parts {
    pub(super) list: Stock,
    /// What keys of ranges that are over were in, to be written again.
    pub(super) spares: Spares,
    pub(super) segments: HeldSegments,
}

/// What the fast paths use of the running thread. It is one variable: where the compiler does not know in which module
/// of the program it is, each look at a thread-local is a call.
pub(crate) struct Local {
    /// The node for the thread's own ranges.
    pub(super) spare: Spare,
    /// The node for owners. Null says nothing about what is held: any thread may release it.
    pub(super) owners_spare: Spare,
    pub(super) seats: Seats,
    /// The slots that were lent last to owners for whom the thread acquired.
    pub(super) lent: Seats,
}

impl Local {
    pub(super) const fn new() -> Self {
        Self {
            spare: Spare::none(),
            owners_spare: Spare::closed(),
            seats: Seats::new(),
            lent: Seats::new(),
        }
    }

    /// The thread goes on in a forked child, under another id: its next ranges are to bear that.
    pub(super) fn forked(&self, thread: u32) {
        self.seats.forget_all();
        self.spare.assign(thread);
    }
}

impl Parts {
    /// A thread begins, and has the record for good.
    pub(super) fn begin<E: Iterator<Item = &'static Epoch>>(
        &self,
        local: &Local,
        thread: u32,
        epochs: impl Fn() -> E,
    ) {
        if let Err(node) = local.spare.put(self.list.take_node(thread, epochs)) {
            self.list.put_back(node);
        }
        local.owners_spare.open();
    }

    /// The thread exits.
    pub(super) fn end<E: Iterator<Item = &'static Epoch>>(
        &self,
        local: &Local,
        epochs: impl Fn() -> E + Copy,
    ) {
        for spare in [&local.spare, &local.owners_spare] {
            if let Some(node) = spare.close() {
                self.list.put_back(node);
            }
        }
        local.seats.forget_all();
        local.lent.forget_all();
        self.list.flush(epochs);
        self.spares.clear();
        self.segments.forget_all();
    }

    /// What the thread holds in locks that do not know who holds them.
    pub(super) fn wishes(&self) -> Vec<Wish> {
        deadlock::with_whole(self.segments.wishes())
    }
}
