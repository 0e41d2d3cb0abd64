//! A writer that does not get all parts.

use super::*;
use spanlock_workbench::baseline::PerCpu;

/// What is found locked when a part cannot be had is given up.
#[test]
fn a_writer_that_panics_between_parts_leaves_them_free() {
    /// Panics instead of writing, if told to.
    #[derive(Default)]
    struct Moody {
        raw: FutexRwLock,
        panics: bool,
    }

    // SAFETY: all is forwarded.
    unsafe impl RawRwLock for Moody {
        const INIT: Self = Self {
            raw: FutexRwLock::new(),
            panics: false,
        };
        type SharedGuard = <FutexRwLock as RawRwLock>::SharedGuard;
        type ExclusiveGuard = <FutexRwLock as RawRwLock>::ExclusiveGuard;

        fn lock_shared(&self) -> Self::SharedGuard {
            self.raw.lock_shared()
        }
        fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
            self.raw.try_lock_shared()
        }
        unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
            // SAFETY: the caller's.
            unsafe { self.raw.unlock_shared(guard) };
        }
        fn lock_exclusive(&self) -> Self::ExclusiveGuard {
            assert!(!self.panics, "not today");
            self.raw.lock_exclusive()
        }
        fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
            self.raw.try_lock_exclusive()
        }
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

    let mut part = 0;
    let lock = PerCpu::<Moody, 4>::from_parts(|| {
        part += 1;
        Moody {
            panics: part == 3,
            ..Moody::default()
        }
    });
    let lock = RwLock::from_raw(lock, 0);
    let message = panic_message(|| drop(lock.write()));
    assert_eq!(message, "not today");
    assert!(!lock.is_locked());
    assert!(lock.try_write().is_some());
}
