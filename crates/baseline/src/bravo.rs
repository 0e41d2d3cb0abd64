//! BRAVO as P2 has it (Listing 1), to compare ours with: what differs is when a lock is biased, where readers are
//! visible and how writers wait for them.
//!
//! A table of 4096 words (or fewer, to tell what its size does), one after the other; a slot by a hash of thread and
//! lock, and the underlying lock if it is taken; a bias set by any slow reader once 9 times as long has passed as the
//! last revocation took; a revocation by a writer that holds the underlying lock already, and that looks without
//! sleeping. Two things differ: the fence between the writer's store and its loads is there, and one that looks for long
//! gives the processor away.
//!
//! # Memory ordering
//!
//! - **paper-reader** / **paper-writer** (store, fence, look on both sides): the reader's slot, then the bias; the
//!   writer's bias, then the slot. One of the two sees the other.
//! - **paper-set** / **paper-seen**: Release by the reader that sets the bias, Acquire by the look: what writers did
//!   before.
//! - **paper-depart** / **paper-revoked**: Release by the fast reader that leaves, Acquire by the writer that looks.

use lock_api::RawRwLock;
use prim::atomic::{AtomicBool, AtomicU64, Ordering, fence, fence_after_rmw};
use prim::{clock, spin};

const SLOTS: usize = prim::sized(4096, 4);

/// A revocation slows writers down by no more than one part in this and one.
const N: usize = 9;

#[repr(align(4096))]
struct Table([AtomicU64; SLOTS]);

prim::global! {
    static TABLE: Table = Table(prim::array!(AtomicU64::new(0); SLOTS));
}

/// The slots in use by locks with a table of that size.
fn slots<const SIZE: usize>() -> &'static [AtomicU64] {
    const { assert!(SIZE.is_power_of_two() && SIZE >= 4 && SIZE <= 4096) };
    &TABLE.0[..prim::stock(SIZE, 4)]
}

prim::local! {
    /// What a thread is known by: where this is.
    static HERE: u8 = 0;
}

/// A lock with the paper's bias, and a table of so many slots: a power of two from 4 to the paper's.
#[derive(Debug)]
pub struct PaperBravo<L, const SIZE: usize = 4096> {
    is_biased: AtomicBool,
    /// In nanoseconds of the clock.
    inhibited_until: AtomicU64,
    raw: L,
}

/// How a reader got in.
#[derive(Debug)]
pub enum Way<G> {
    /// By the table.
    Fast(FastReader),
    /// By the underlying lock.
    Slow(G),
}

/// A slot of the table.
#[derive(Debug)]
pub struct FastReader(&'static AtomicU64);

impl<L: RawRwLock, const SIZE: usize> PaperBravo<L, SIZE> {
    prim::const_fn! {
        /// Over a lock that nobody holds.
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
            // No writer is inside: this thread reads. [paper-set] Release: pairs with [paper-seen].
            let release = prim::order!("paper-set", Ordering::Release);
            self.is_biased.store(true, release);
        }
    }

    /// To be called with the underlying lock held for writing.
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
                spin::until_changed(slot, self.address());
            }
        }
        let end = clock::nanoseconds();
        let inhibited = end.saturating_sub(begin) * prim::stock(N, 0) as u64;
        self.inhibited_until
            .store(end + inhibited, Ordering::Relaxed);
    }
}

// SAFETY: the underlying lock excludes writers from each other and from slow readers, and `revoke` waits for the fast
// ones, whom no more follow: the bias is off until a slow reader is inside.
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
            // SAFETY: the caller's; the guard came from the underlying lock.
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
        // SAFETY: the caller's.
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
            // SAFETY: it is looked at and not released.
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
