//! Releases that cannot say which acquisition they end: a C function that unlocks is given the lock and nothing else.
//!
//! Publications of one lock are then all alike: each stands for *one* reader, whichever. A release clears the first
//! that it finds, and one whose own is gone by then clears another. So every clearing is a compare-exchange.

use super::{LockAddress, Place, Seat, Slot, TABLE};
use prim::atomic::Ordering;
use std::ptr;

impl Seat {
    /// Retracts a publication of that lock from the seat's row; `false` if there is none.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract(self, lock: LockAddress) -> bool {
        self.retract_first(lock) || self.retract_beside(lock)
    }

    /// Retracts a publication of that lock from where the seat's thread looks first; `false` if it is not one.
    #[inline]
    #[must_use]
    pub(in crate::rw) fn retract_first(self, lock: LockAddress) -> bool {
        self.first().release(lock)
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
            }
        }
    }
}
