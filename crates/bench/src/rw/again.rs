//! A lock once more, to tell what a comparison of two locks is worth.

use lock_api::RawRwLock;
use spanlock::rw::BiasState;

/// That lock, as large and laid out as under a bias, which it never has. What is inlined of it is compiled once more.
///
/// It does what the lock does, so that what it differs by is where code and data lie, and chance.
#[derive(Debug)]
pub struct Again<L> {
    _bias: BiasState,
    raw: L,
}

// SAFETY: all is the lock's.
unsafe impl<L: RawRwLock> RawRwLock for Again<L> {
    const INIT: Self = Self {
        _bias: BiasState::new(),
        raw: L::INIT,
    };

    type SharedGuard = L::SharedGuard;
    type ExclusiveGuard = L::ExclusiveGuard;

    #[inline]
    fn lock_shared(&self) -> Self::SharedGuard {
        self.raw.lock_shared()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        self.raw.try_lock_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller's.
        unsafe { self.raw.unlock_shared(guard) };
    }

    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        self.raw.lock_exclusive()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        self.raw.try_lock_exclusive()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller's.
        unsafe { self.raw.unlock_exclusive(guard) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}
