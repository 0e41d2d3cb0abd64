//! BRAVO as P2 has it (Listing 1), to compare ours with: what differs is when a lock is biased, where readers are
//! visible and how writers wait for them.
//!
//! A table of 4096 words, one after the other; a slot by a hash of thread and lock, and the underlying lock if it is
//! taken; a bias set by any slow reader once 9 times as long has passed as the last revocation took; a revocation by a
//! writer that holds the underlying lock already, and that looks without sleeping. Two things differ: the fence
//! between the writer's store and its loads is there, and one that looks for long gives the processor away.
//!
//! All accesses of the handshake are sequentially consistent: the reader's slot, then the bias; the writer's bias,
//! then the slot. So one of the two sees the other.

use lock_api::RawRwLock;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Instant;

const SLOTS: usize = 4096;

/// A revocation slows writers down by no more than one part in this and one.
const N: u64 = 9;

/// Looks at a slot before the processor is given away after each.
const LOOKS: u32 = 1000;

#[repr(align(4096))]
struct Table([AtomicUsize; SLOTS]);

static TABLE: Table = Table([const { AtomicUsize::new(0) }; SLOTS]);

/// A lock with the paper's bias.
#[derive(Debug)]
pub struct Paper<L> {
    is_biased: AtomicBool,
    /// In nanoseconds: see [`now`].
    inhibited_until: AtomicU64,
    raw: L,
}

/// How a reader got in.
#[derive(Debug)]
pub enum Way<G> {
    /// By the table.
    Fast(&'static AtomicUsize),
    /// By the underlying lock.
    Slow(G),
}

fn now() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_nanos() as u64
}

impl<L: RawRwLock> Paper<L> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn enter_fast(&self) -> Option<&'static AtomicUsize> {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        if !self.is_biased.load(Relaxed) {
            return None;
        }
        let thread = HERE.with(|here| std::ptr::from_ref(here).addr());
        let hash = (self.address() ^ thread.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &TABLE.0[hash >> (usize::BITS - SLOTS.ilog2())];
        slot.compare_exchange(0, self.address(), SeqCst, Relaxed)
            .ok()?;
        if self.is_biased.load(SeqCst) {
            return Some(slot);
        }
        slot.store(0, Release);
        None
    }

    fn entered_slowly(&self) {
        if !self.is_biased.load(Relaxed) && now() >= self.inhibited_until.load(Relaxed) {
            // No writer is inside: this thread reads. Release: what writers wrote before is for fast readers, too.
            self.is_biased.store(true, Release);
        }
    }

    /// To be called with the underlying lock held for writing.
    fn revoke(&self) {
        if !self.is_biased.load(Relaxed) {
            return;
        }
        let begin = now();
        self.is_biased.store(false, SeqCst);
        for slot in &TABLE.0 {
            let mut looks = 0;
            while slot.load(SeqCst) == self.address() {
                looks += 1;
                if looks < LOOKS {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        }
        let end = now();
        self.inhibited_until.store(end + (end - begin) * N, Relaxed);
    }
}

// SAFETY: the underlying lock excludes writers from each other and from slow readers, and `revoke` waits for the fast
// ones, whom no more follow: the bias is off until a slow reader is inside.
unsafe impl<L: RawRwLock> RawRwLock for Paper<L> {
    const INIT: Self = Self {
        is_biased: AtomicBool::new(false),
        inhibited_until: AtomicU64::new(0),
        raw: L::INIT,
    };

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
            Way::Fast(slot) => slot.store(0, Release),
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
        let is_visible = |slot: &AtomicUsize| slot.load(Relaxed) == self.address();
        self.raw.is_locked() || TABLE.0.iter().any(is_visible)
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

#[cfg(test)]
mod tests {
    use super::Paper;
    use lock_api::RawRwLock;
    use spanlock::rw::FutexRwLock;

    #[test]
    fn a_second_reader_is_fast_and_a_writer_revokes() {
        let lock = lock_api::RwLock::<Paper<FutexRwLock>, ()>::new(());
        let is_biased = || {
            // SAFETY: it is looked at and not released.
            let raw = unsafe { lock.raw() };
            (raw.is_biased.load(super::Relaxed), raw.raw.is_locked())
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
