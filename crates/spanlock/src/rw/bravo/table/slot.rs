//! One slot of the table: a reader publishes and retracts here, and a writer waits for the retraction.
//!
//! The header of `mod.rs` explains the edges that are cited here.

use super::address::LockAddress;
use crate::rw::watch;
use crate::wait::Wait;
use prim::atomic::{AtomicU32, AtomicUsize, Ordering};
use prim::barrier;
use prim::clock::Instant;
use prim::futex;
use prim::spin::{self, Spin};

/// The lowest bit of [`Slot::awaited`]. The other bits count departures that were awaited.
const AWAITED: u32 = 1;

/// The threads that publish in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tenancy {
    /// One thread.
    Own,
    /// Any number of threads that have no row of their own.
    Shared,
}

/// Where one reader is visible.
#[derive(Debug)]
pub(super) struct Slot {
    /// The address of the lock that is read, or zero.
    pub(super) lock: AtomicUsize,
    /// Writers that wait for the slot to clear sleep on this word.
    pub(super) awaited: AtomicU32,
    /// Not zero while the row's thread retracts what is here without a token (`anonymous.rs`).
    pub(super) clearing: AtomicU32,
}

impl Slot {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self {
                lock: AtomicUsize::new(0),
                awaited: AtomicU32::new(0),
                clearing: AtomicU32::new(0),
            }
        }
    }

    /// Publishes a lock here, if the slot is free.
    #[inline]
    pub(super) fn publish(
        &'static self,
        lock: LockAddress,
        tenancy: Tenancy,
    ) -> Option<Publication> {
        let free = prim::order!("slot-free", Ordering::Acquire); // [slot-free]
        // In a shared row the load spares a locked instruction on a slot that is taken; in an own row it is all.
        if self.lock.load(free) != 0 {
            return None;
        }
        // Towards writers the publication is ordered by [bias-reader] or [bias-reader-fenced], which comes next.
        let address = lock.0.get();
        match tenancy {
            // Release: see [slot-free].
            Tenancy::Own => self.lock.store(address, Ordering::Release),
            // Release for what this thread did itself. The departure before it is passed on by the read-modify-write.
            Tenancy::Shared => {
                let taken =
                    self.lock
                        .compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed);
                taken.ok()?;
            }
        }
        Some(Publication(self))
    }

    #[inline]
    pub(super) fn holds(&self, lock: LockAddress) -> bool {
        // [depart-acquire] Acquire: pairs with [depart] and [depart-any].
        let found = self
            .lock
            .load(prim::order!("depart-acquire", Ordering::Acquire));
        found == lock.0.get()
    }

    /// Wakes the writers that sleep until the slot is cleared. The caller has just cleared it.
    #[inline]
    pub(super) fn note_departure(&self) {
        // [slot-leave] The light side of [slot-await].
        if prim::intact!("slot-leave") {
            barrier::light();
        }
        let awaited = self.awaited.load(Ordering::Relaxed);
        if awaited & AWAITED != 0 {
            self.wake_writers(awaited);
        }
    }

    #[cold] // A writer waited so long that it went to sleep.
    fn wake_writers(&self, awaited: u32) {
        // [slot-wake-count] The bit goes and the count grows by one. If it fails, another reader that left has done the
        // same.
        let after = if prim::intact!("slot-wake-count") {
            awaited.wrapping_add(AWAITED)
        } else {
            awaited & !AWAITED
        };
        let counted =
            self.awaited
                .compare_exchange(awaited, after, Ordering::Relaxed, Ordering::Relaxed);
        // [slot-wake]
        if counted.is_ok() && prim::intact!("slot-wake") {
            futex::wake_all(&self.awaited);
        }
    }

    /// Waits until the slot does not hold that lock; `false` if that takes longer than `wait` allows.
    #[cold] // A reader is inside.
    pub(super) fn await_departure(&self, lock: LockAddress, wait: Wait) -> bool {
        let mut spin = Spin::new(spin::ON_HOLDER);
        while self.holds(lock) {
            let deadline = wait.deadline();
            if wait == Wait::Never || deadline.is_some_and(|at| Instant::now() >= at) {
                return false;
            }
            if !spin.round() {
                self.sleep(lock, deadline);
            }
        }
        true
    }

    fn sleep(&self, lock: LockAddress, deadline: Option<Instant>) {
        let asleep = self.awaited.fetch_or(AWAITED, Ordering::Relaxed) | AWAITED;
        // [slot-await] The heavy side of [slot-leave].
        if prim::intact!("slot-await") {
            barrier::heavy();
        }
        if self.holds(lock) {
            watch::asleep(deadline, || futex::wait(&self.awaited, asleep, deadline));
        }
    }
}

/// A published lock. Its owner may retract it on any thread; if it is dropped, the publication stays.
#[derive(Debug)]
#[must_use = "it stays until it is retracted"]
pub struct Publication(pub(super) &'static Slot);

impl Publication {
    /// The reader leaves: one plain store, a light fence and a load.
    ///
    /// # Safety
    /// The publication still stands: neither the drop of its [`Path`](super::super::state::Path), nor a
    /// release without a token, nor a function of this module has retracted it. Otherwise the slot may hold another
    /// lock by now, whose writers would miss its reader.
    #[inline]
    pub unsafe fn retract(self) {
        // [depart] Release: pairs with [depart-acquire].
        self.0
            .lock
            .store(0, prim::order!("depart", Ordering::Release));
        // The lock may be gone by now; the table never is.
        self.0.note_departure();
    }
}
