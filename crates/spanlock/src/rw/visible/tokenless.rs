//! Releases that cannot say which acquisition they end: a C function that unlocks is given the lock and nothing else.
//!
//! Publications of one lock are then all alike: each stands for *one* reader, whichever. A release clears the first
//! that it finds, and one whose own is gone by then clears another. So clearing is a compare-exchange, once there are
//! *strangers*: threads that clear what others published. Few programs have any. Until the first comes, a thread clears
//! what is in its own row by a compare-exchange that only its own signal handlers may interrupt: on x86-64 it locks nothing.
//!
//! # Memory ordering
//!
//! - **alone** / **strangers** (store, fence, look on both sides): a thread that clears its own place says so there, and
//!   then looks whether there are strangers; the first of these says that there are, and then waits until no place is
//!   being cleared. The fence is the table's: free for the one, dear for the other.
//! - A thread that has cleared releases that with the end of its clearing, and the stranger acquires it: its own clearing
//!   comes after. The departure itself is **depart**'s. (Neither can a model tell: stores there take effect in the order in
//!   which they are made, and the cheap fence before them is a full one.)
//!
//! # Signal handlers
//!
//! A handler may read a lock and leave it while its thread is anywhere in here; it clears what it finds first, which may
//! be what its thread was about to clear. So an own place is cleared by a look and a store that are one instruction, and
//! if it fails the other publication is looked for. What the handler says of clearing it takes back to what it was, as
//! its thread may be clearing still. No model has signals; `crates/interpose/tests/programs/signals.c` has one between
//! each two instructions.

use super::{LockAddress, Place, Seat, Slot, TABLE, Tenancy};
use prim::atomic::{self, AtomicU32, Ordering};
use prim::barrier;
use prim::spin::{self, Spin};
use prim::thread;
use std::ptr;

prim::global! {
    /// Whether there are strangers.
    static STRANGERS: AtomicU32 = AtomicU32::new(NONE);
}

/// There are none.
const NONE: u32 = 0;
/// There are, but a thread may not have seen that yet.
const COMING: u32 = 1;
/// There are, and all threads know.
const THERE: u32 = 2;

/// From now on this thread may clear what others published.
#[cold]
pub(in crate::rw) fn become_stranger() {
    // Acquire: pairs with the Release below.
    if STRANGERS.load(Ordering::Acquire) == THERE {
        return;
    }
    STRANGERS.fetch_max(COMING, Ordering::Relaxed);
    // [strangers]
    if prim::intact!("strangers") {
        barrier::heavy();
    }
    for row in TABLE.own.in_use() {
        row.places[0].await_clearing();
    }
    STRANGERS.store(THERE, Ordering::Release);
}

impl Seat {
    /// Retracts a publication of that lock from the seat's row; `false` if there is none.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract(self, lock: LockAddress) -> bool {
        self.first().release(lock) || self.retract_beside(lock)
    }

    /// Retracts a publication of that lock from where the seat's thread looks first; `false` if there is none, or others
    /// may clear it as well.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract_alone(self, lock: LockAddress) -> bool {
        self.tenancy() == Tenancy::Own && self.first().clear_alone(lock)
    }

    #[cold] // Nested readers, and what others hold.
    fn retract_beside(self, lock: LockAddress) -> bool {
        self.others().any(|place| place.release(lock))
    }
}

impl LockAddress {
    /// A publication of that lock, whosever. Costs a scan.
    pub(in crate::rw) fn published(self) -> Option<Slot> {
        let mut places = TABLE.places_in_use();
        places.find(|place| place.holds(self)).map(Slot)
    }
}

impl Slot {
    /// Retracts this publication of `lock`; `false` if somebody took it for another, which its caller then owes.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract_if_untaken(self, lock: LockAddress) -> bool {
        self.0.release(lock)
    }
}

impl Place {
    /// To be called by the one thread that publishes here.
    #[inline]
    fn clear_alone(&self, lock: LockAddress) -> bool {
        // Not zero in a signal handler that interrupts this function.
        let before = self.clearing.load(Ordering::Relaxed);
        self.clearing.store(1, Ordering::Relaxed);
        // [alone]
        if prim::intact!("alone") {
            barrier::light();
        }
        let alone = STRANGERS.load(Ordering::Relaxed) == NONE;
        // Relaxed: published by this thread, if it is. The look spares the place a write where it is another lock's,
        // which whoever ends that lock's life may clear at the same time.
        let holds = alone && self.lock.load(Ordering::Relaxed) == lock.0.get();
        // [depart] Release: pairs with the Acquire of the scan. It fails where a signal handler was faster.
        let clears = holds
            && atomic::compare_exchange_by_owner(&self.lock, lock.0.get(), 0, Ordering::Release)
                .is_ok();
        // Release: pairs with the Acquire below.
        self.clearing.store(before, Ordering::Release);
        if clears {
            self.departed();
        }
        clears
    }

    /// Waits until the row's thread does not clear what is here.
    fn await_clearing(&self) {
        let mut spin = Spin::new(spin::ON_HOLDER);
        // Acquire: pairs with the Release above.
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
            prim::order!("depart-any", Ordering::Release),
            Ordering::Acquire, // [depart] of whoever did it before.
        );
        if cleared.is_ok() {
            self.departed();
        }
        cleared.is_ok()
    }

    #[inline]
    fn release(&self, lock: LockAddress) -> bool {
        self.holds(lock) && self.clear(lock) // The look beforehand spares a locked instruction.
    }
}

/// Retracts all publications but these: for a forked child, which has one thread, and knows what that holds.
///
/// # Safety
/// No thread of this process reads any lock by another publication.
pub unsafe fn forget_all_but(kept: &[Slot]) {
    for place in TABLE.places_in_use() {
        if !kept.iter().any(|slot| ptr::eq(slot.0, place)) {
            place.lock.store(0, Ordering::Relaxed);
        }
    }
}

/// Retracts all publications but those in the seat's row: for a forked child, whose one thread sits there.
///
/// Threads that shared the row leave theirs: holders that never leave, as they are to any lock that counts.
///
/// # Safety
/// No thread of this process reads any lock by a publication in another row.
pub unsafe fn forget_all_but_at(seat: Seat) {
    for row in TABLE.rows_in_use() {
        if !ptr::eq(row, seat.row()) {
            for place in &row.places {
                place.lock.store(0, Ordering::Relaxed);
                place.awaited.store(0, Ordering::Relaxed);
                place.clearing.store(0, Ordering::Relaxed);
            }
        }
    }
}
