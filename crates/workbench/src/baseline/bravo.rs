//! BRAVO as published (P2, Listing 1), to compare with the library's. The two differ in when a lock is biased, where
//! readers are visible, and how a writer waits for them.
//!
//! ```text
//!   reader:  bias set? --yes--> slot hash(thread, lock) free? --yes--> inside, by the table
//!               | no                        | no
//!               +---------------------------+------------------------> the underlying lock
//!
//!   writer:  the underlying lock, then bias set? --yes--> clear it, wait until no slot has the lock's address
//! ```
//!
//! - The table has 4096 words, or fewer to measure the effect of its size. They lie side by side.
//! - A reader's slot is given by a hash of its thread and the lock. If the slot is taken, the reader uses the
//!   underlying lock.
//! - A slow reader sets the bias when 9 times the duration of the last revocation has passed.
//! - A writer revokes the bias while it holds the underlying lock. It scans the table without sleeping.
//!
//! Two things differ from the listing. There is a fence between the writer's store and its loads, which the
//! protocol needs. And a writer that scans for long yields its processor.
//!
//! # Memory ordering
//!
//! - **paper-reader** / **paper-writer** (store, fence, load on both sides): the reader stores its slot and then loads
//!   the bias; the writer stores the bias and then loads the slot. So at least one of the two sees the other.
//! - **paper-set** / **paper-seen**: Release by the reader that sets the bias, Acquire by a fast reader's load of it:
//!   the critical sections of earlier writers.
//! - **paper-depart** / **paper-revoked**: Release by the fast reader that leaves, Acquire by the writer that scans:
//!   the reader's critical section.

use lock_api::RawRwLock;
use prim::atomic::{AtomicBool, AtomicU64, Ordering, fence, fence_after_rmw};
use prim::clock;
use prim::workload::until_changed;

const SLOTS: usize = prim::sized(4096, 4);

/// `N`: a revocation takes at most one part in `N + 1` of the time, so writers are slowed down by no more than that.
const N: usize = 9;

#[repr(align(4096))]
struct Table([AtomicU64; SLOTS]);

prim::global! {
    static TABLE: Table = Table(prim::array!(AtomicU64::new(0); SLOTS));
}

/// The slots of the table for locks that use a table of this size.
fn slots<const SIZE: usize>() -> &'static [AtomicU64] {
    const { assert!(SIZE.is_power_of_two() && SIZE >= 4 && SIZE <= 4096) };
    &TABLE.0[..prim::stock(SIZE, 4)]
}

prim::local! {
    /// Its address identifies the thread.
    static HERE: u8 = 0;
}

/// A lock with the paper's bias and a table of `SIZE` slots, a power of two from 4 to the paper's 4096.
#[derive(Debug)]
pub struct PaperBravo<L, const SIZE: usize = 4096> {
    is_biased: AtomicBool,
    /// The time until which no bias is set, in nanoseconds of the clock.
    inhibited_until: AtomicU64,
    raw: L,
}

/// How a reader entered.
#[derive(Debug)]
pub enum Way<G> {
    /// Through the table.
    Fast(FastReader),
    /// Through the underlying lock.
    Slow(G),
}

/// A slot of the table.
#[derive(Debug)]
pub struct FastReader(&'static AtomicU64);

impl<L: RawRwLock, const SIZE: usize> PaperBravo<L, SIZE> {
    prim::const_fn! {
        /// A lock over a free underlying lock.
        #[must_use]
        pub const fn over(raw: L) -> Self {
            Self {
                is_biased: AtomicBool::new(false),
                inhibited_until: AtomicU64::new(0),
                raw,
            }
        }
    }

    fn address(&self) -> u64 {
        prim::address_of(self) as u64
    }

    fn enter_fast(&self) -> Option<FastReader> {
        if !self.is_biased.load(Ordering::Relaxed) {
            return None;
        }
        let thread = HERE.with(prim::address_of) as u64;
        let hash = (self.address() ^ thread.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slots = slots::<SIZE>();
        let slot = &slots[(hash >> (u64::BITS - slots.len().ilog2())) as usize];
        slot.compare_exchange(0, self.address(), Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        // [paper-reader]
        if prim::intact!("paper-reader") {
            fence_after_rmw();
        }
        // [paper-seen] Acquire: pairs with [paper-set].
        let acquire = prim::order!("paper-seen", Ordering::Acquire);
        if self.is_biased.load(acquire) {
            return Some(FastReader(slot));
        }
        slot.store(0, Ordering::Relaxed);
        None
    }

    fn entered_slowly(&self) {
        if !self.is_biased.load(Ordering::Relaxed)
            && clock::nanoseconds() >= self.inhibited_until.load(Ordering::Relaxed)
        {
            // No writer is inside, because this thread holds the underlying lock as a reader.
            // [paper-set] Release: pairs with [paper-seen].
            let release = prim::order!("paper-set", Ordering::Release);
            self.is_biased.store(true, release);
        }
    }

    /// Clears the bias and waits for the fast readers. The caller holds the underlying lock as the writer.
    fn revoke(&self) {
        if !self.is_biased.load(Ordering::Relaxed) {
            return;
        }
        let begin = clock::nanoseconds();
        self.is_biased.store(false, Ordering::Relaxed);
        // [paper-writer]
        if prim::intact!("paper-writer") {
            fence(Ordering::SeqCst);
        }
        for slot in slots::<SIZE>() {
            // [paper-revoked] Acquire: pairs with [paper-depart].
            let acquire = prim::order!("paper-revoked", Ordering::Acquire);
            while slot.load(acquire) == self.address() {
                until_changed(slot, self.address());
            }
        }
        let end = clock::nanoseconds();
        let inhibited = end.saturating_sub(begin) * prim::stock(N, 0) as u64;
        self.inhibited_until
            .store(end + inhibited, Ordering::Relaxed);
    }
}

// SAFETY: the underlying lock excludes writers from each other and from slow readers. `revoke` waits for the fast
// readers. No fast reader enters after that, because only a slow reader inside sets the bias again.
unsafe impl<L: RawRwLock, const SIZE: usize> RawRwLock for PaperBravo<L, SIZE> {
    const INIT: Self = prim::initial!(Self::over(L::INIT));

    type SharedGuard = Way<L::SharedGuard>;
    type ExclusiveGuard = L::ExclusiveGuard;

    #[inline]
    fn lock_shared(&self) -> Self::SharedGuard {
        if let Some(slot) = self.enter_fast() {
            return Way::Fast(slot);
        }
        let guard = self.raw.lock_shared();
        self.entered_slowly();
        Way::Slow(guard)
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        if let Some(slot) = self.enter_fast() {
            return Some(Way::Fast(slot));
        }
        let guard = self.raw.try_lock_shared()?;
        self.entered_slowly();
        Some(Way::Slow(guard))
    }

    #[inline]
    unsafe fn unlock_shared(&self, way: Self::SharedGuard) {
        match way {
            // [paper-depart] Release: pairs with [paper-revoked].
            Way::Fast(FastReader(slot)) => {
                slot.store(0, prim::order!("paper-depart", Ordering::Release));
            }
            // SAFETY: the caller holds the lock by this guard, which the underlying lock returned when it was acquired.
            Way::Slow(guard) => unsafe { self.raw.unlock_shared(guard) },
        }
    }

    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        let guard = self.raw.lock_exclusive();
        self.revoke();
        guard
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        let guard = self.raw.try_lock_exclusive()?;
        self.revoke();
        Some(guard)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller holds the lock as the writer, so it holds the underlying lock as the writer.
        unsafe { self.raw.unlock_exclusive(guard) };
    }

    fn is_locked(&self) -> bool {
        let is_visible = |slot: &AtomicU64| slot.load(Ordering::Relaxed) == self.address();
        self.raw.is_locked() || slots::<SIZE>().iter().any(is_visible)
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Ordering, PaperBravo};
    use lock_api::RawRwLock;
    use spanlock::rw::FutexRwLock;

    #[test]
    fn a_second_reader_is_fast_and_a_writer_revokes() {
        let lock = lock_api::RwLock::<PaperBravo<FutexRwLock>, ()>::new(());
        let is_biased = || {
            // SAFETY: the raw lock is only asked for its state and not released.
            let raw = unsafe { lock.raw() };
            let is_biased = raw.is_biased.load(Ordering::Relaxed);
            (is_biased, raw.raw.is_locked())
        };
        drop(lock.read());
        assert_eq!(is_biased(), (true, false));
        let fast = lock.read();
        assert!(lock.is_locked() && !is_biased().1);
        drop(fast);
        drop(lock.write());
        assert_eq!(is_biased(), (false, false));
    }
}
