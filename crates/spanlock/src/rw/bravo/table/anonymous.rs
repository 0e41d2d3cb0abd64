//! Retractions by releases that do not name what they release: a C function that unlocks is given the lock alone.
//!
//! The publications of one lock are then interchangeable: each stands for *one* reader, any of them. A release clears
//! the first publication that it finds. If that was another thread's, that thread's release finds its own gone and
//! clears another. Such a release is a *foreign unlock*.
//!
//! With foreign unlocks, two threads may clear the same slot, so clearing has to be a compare-exchange. Few programs
//! have any. Until a process makes its first, a thread clears a slot of its own row without a locked instruction. The
//! first foreign unlock of a process ends that, for all threads and for good:
//!
//! ```text
//!   thread that clears its own slot           thread with the first foreign unlock
//!   -------------------------------           ------------------------------------
//!   slot.clearing := 1                        FOREIGN_UNLOCKS := COMING
//!   light fence          (owner-clears)       heavy fence                (foreign-clears)
//!   FOREIGN_UNLOCKS = NONE?                   for the first slot of each own row:
//!     yes: clear the slot, unlocked             wait while its `clearing` is not 0
//!     no:  compare-exchange, below            FOREIGN_UNLOCKS := THERE
//!   slot.clearing := what it was              from here on, clear any slot
//! ```
//!
//! # Memory ordering
//!
//! - **owner-clears** / **foreign-clears**: the two fences above. One of the two is first in the order of all fences:
//!   either the owner observes that there are foreign unlocks, or the other thread observes that it is clearing, and
//!   waits.
//! - The owner ends its clearing with a Release that the waiting thread Acquires: then the foreign unlock's own
//!   compare-exchange comes after. The departure itself is ordered by **depart**. (A model can test neither. There,
//!   stores take effect in the order in which they are made, and the light fence before them is a full one.)
//!
//! # Signal handlers
//!
//! A signal handler may read a lock and leave it while its thread is anywhere in here. It clears the publication that
//! it finds first, and that may be the one that its thread was about to clear. So the owner clears by one instruction
//! that both compares and stores; if it fails, the thread looks for another publication. The handler restores
//! `clearing` to what it was, because its thread may still be clearing. No model has signals;
//! `crates/interpose/tests/programs/signals.c` delivers one between each two instructions.

use super::address::LockAddress;
use super::rows::{self, ReaderRow};
use super::slot::{Publication, Slot, Tenancy};
use prim::atomic::{self, AtomicU32, Ordering};
use prim::barrier;
use prim::spin::{self, Spin};
use prim::thread;
use std::ptr;

prim::global! {
    /// Whether this process has foreign unlocks.
    static FOREIGN_UNLOCKS: AtomicU32 = AtomicU32::new(NONE);
}

/// It has none.
const NONE: u32 = 0;
/// It is about to have the first; a thread may not have observed that yet.
const COMING: u32 = 1;
/// It has some, and every thread that clears a slot observes that.
const THERE: u32 = 2;

/// Prepares for a foreign unlock by this thread. The first call in a process waits for threads that are clearing.
#[cold]
pub(in crate::rw) fn enable_foreign_unlocks() {
    // Acquire: pairs with the Release below.
    if FOREIGN_UNLOCKS.load(Ordering::Acquire) == THERE {
        return;
    }
    FOREIGN_UNLOCKS.fetch_max(COMING, Ordering::Relaxed);
    // [foreign-clears] The heavy side of [owner-clears].
    if prim::intact!("foreign-clears") {
        barrier::heavy();
    }
    for row in rows::own_rows() {
        row.slots[0].await_clearing();
    }
    FOREIGN_UNLOCKS.store(THERE, Ordering::Release);
}

impl ReaderRow {
    /// Retracts a publication of that lock from this row; `false` if there is none.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract(self, lock: LockAddress) -> bool {
        self.first().release(lock) || self.retract_beside(lock)
    }

    /// Retracts a publication of that lock from the first slot of an own row, without a locked instruction; `false` if
    /// there is none, or if foreign unlocks may clear it as well.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract_by_owner(self, lock: LockAddress) -> bool {
        self.tenancy() == Tenancy::Own && self.first().clear_by_owner(lock)
    }

    #[cold] // Nested readers, and locks that other threads release.
    fn retract_beside(self, lock: LockAddress) -> bool {
        self.others().any(|slot| slot.release(lock))
    }
}

impl LockAddress {
    /// A publication of that lock, any of them. Scans the table.
    pub(in crate::rw) fn published(self) -> Option<Publication> {
        let mut slots = rows::slots();
        slots.find(|slot| slot.holds(self)).map(Publication)
    }
}

impl Publication {
    /// Retracts this publication of `lock`; `false` if a foreign unlock has cleared it.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract_if_untaken(self, lock: LockAddress) -> bool {
        self.0.release(lock)
    }
}

impl Slot {
    /// Clears the slot unless foreign unlocks may do so as well. Only the thread that publishes here calls this.
    #[inline]
    fn clear_by_owner(&self, lock: LockAddress) -> bool {
        // Not zero in a signal handler that interrupts this function.
        let before = self.clearing.load(Ordering::Relaxed);
        self.clearing.store(1, Ordering::Relaxed);
        // [owner-clears] The light side of [foreign-clears].
        if prim::intact!("owner-clears") {
            barrier::light();
        }
        let unlocked = FOREIGN_UNLOCKS.load(Ordering::Relaxed) == NONE;
        // Relaxed: if the slot holds the lock, this thread has stored that. The load spares a write to a slot that
        // holds another lock, which may be cleared at the same time because that lock's life ends.
        let holds = unlocked && self.lock.load(Ordering::Relaxed) == lock.0.get();
        // [depart] Release: pairs with [depart-acquire]. It fails if a signal handler has cleared the slot.
        let clears = holds
            && atomic::compare_exchange_by_owner(&self.lock, lock.0.get(), 0, Ordering::Release)
                .is_ok();
        // Release: pairs with the Acquire in `await_clearing`.
        self.clearing.store(before, Ordering::Release);
        if clears {
            self.note_departure();
        }
        clears
    }

    /// Waits until the row's thread is not clearing this slot.
    fn await_clearing(&self) {
        let mut spin = Spin::new(spin::ON_HOLDER);
        // Acquire: pairs with the Release in `clear_by_owner`.
        while self.clearing.load(Ordering::Acquire) != 0 {
            if !spin.round() {
                thread::nap();
            }
        }
    }

    #[inline]
    pub(super) fn clear(&self, lock: LockAddress) -> bool {
        let cleared = self.lock.compare_exchange(
            lock.0.get(),
            0,
            // [depart-any] Release: pairs with [depart-acquire].
            prim::order!("depart-any", Ordering::Release),
            Ordering::Acquire, // Pairs with the departure that cleared the slot first.
        );
        if cleared.is_ok() {
            self.note_departure();
        }
        cleared.is_ok()
    }

    #[inline]
    fn release(&self, lock: LockAddress) -> bool {
        self.holds(lock) && self.clear(lock) // The load spares a locked instruction.
    }
}

/// Retracts all publications but these: for a forked child, which has one thread, and knows what that thread holds.
///
/// # Safety
/// No thread of this process reads any lock by another publication.
pub unsafe fn forget_all_but(kept: &[Publication]) {
    for slot in rows::slots() {
        if !kept.iter().any(|publication| ptr::eq(publication.0, slot)) {
            forget(slot);
        }
    }
}

/// Nobody reads by it, or waits for who does: the threads of the parent are not here.
fn forget(slot: &Slot) {
    slot.lock.store(0, Ordering::Relaxed);
    slot.awaited.store(0, Ordering::Relaxed);
    slot.clearing.store(0, Ordering::Relaxed);
}

/// Retracts all publications but those in one row: for a forked child, whose one thread publishes there.
///
/// If other threads of the parent shared that row, their publications stay, and are never retracted: a lock that counts
/// its readers would keep those readers too.
///
/// # Safety
/// No thread of this process reads any lock by a publication in another row.
pub unsafe fn forget_all_but_at(kept: ReaderRow) {
    for row in rows::rows() {
        if !ptr::eq(row, kept.row()) {
            row.slots.iter().for_each(forget);
        }
    }
}
