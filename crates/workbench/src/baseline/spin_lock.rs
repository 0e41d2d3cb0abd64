//! A test-and-test-and-set spin lock.
//!
//! # Memory ordering
//! - **spin-lock-release** / **spin-lock-acquire**: Release by the store that frees the lock, Acquire by the
//!   compare-exchange that takes it.

use prim::atomic::{AtomicBool, Ordering};
use prim::cell::UnsafeCell;
use prim::clock::{self, Instant};
use prim::spin::{ON_HOLDER, Spin};
use spanlock::range::raw::Wait;

/// Waits until `is_over`: spins with exponential back-off, and then yields the processor between checks.
///
/// The kernel's locks spin without end, with preemption disabled. A user program may have more threads than processors,
/// and then a waiter that never yields would keep the holder from running.
pub(super) fn spin_until(mut is_over: impl FnMut() -> bool) {
    let mut spin = Spin::new(ON_HOLDER);
    while !is_over() {
        if !spin.round() {
            prim::thread::yield_now();
        }
    }
}

/// Whether a waiter's limit has passed.
pub(super) fn gives_up(wait: Wait) -> bool {
    match wait {
        Wait::Never => true,
        Wait::Until(deadline) => Instant::now() >= deadline,
        Wait::Forever => false,
    }
}

/// A spin lock around a value, for short critical sections.
pub(super) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` is the only way to the value, and it calls its closure in one thread at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    prim::const_fn! {
        pub(super) const fn new(value: T) -> Self {
            Self {
                taken: AtomicBool::new(false),
                value: UnsafeCell::new(value),
            }
        }
    }

    fn try_take(&self) -> bool {
        // [spin-lock-acquire] Acquire: pairs with [spin-lock-release]. A failed compare-exchange writes nothing, so the
        // next write is the release.
        let acquire = prim::order!("spin-lock-acquire", Ordering::Acquire);
        self.taken
            .compare_exchange(false, true, acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Calls `f` with exclusive access to the value.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // Relaxed: the compare-exchange that follows acquires.
        spin_until(|| !self.taken.load(Ordering::Relaxed) && self.try_take());
        self.with_taken(f)
    }

    /// The same, and how many nanoseconds it waited while others had access.
    pub(super) fn with_timed<R>(&self, f: impl FnOnce(&mut T) -> R) -> (R, u64) {
        if self.try_take() {
            return (self.with_taken(f), 0);
        }
        let begin = clock::nanoseconds();
        let mut end = begin;
        let result = self.with(|value| {
            end = clock::nanoseconds();
            f(value)
        });
        (result, end - begin)
    }

    /// Calls `f`, and frees the lock. The caller has taken it.
    fn with_taken<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        struct Taken<'a>(&'a AtomicBool);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                // [spin-lock-release] Release: pairs with [spin-lock-acquire].
                self.0
                    .store(false, prim::order!("spin-lock-release", Ordering::Release));
            }
        }

        let _taken = Taken(&self.taken);
        self.value.with_mut(|value| {
            // SAFETY: this thread has taken the lock until `_taken` is dropped, and there is no other way to the value.
            f(unsafe { &mut *value })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SpinLock;

    #[test]
    fn sections_exclude_each_other_and_end_by_panic_too() {
        let lock = SpinLock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| lock.with(|count| *count += 1)));
            }
        });
        let section = std::panic::AssertUnwindSafe(|| lock.with(|_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(section).is_err());
        assert_eq!(lock.with(|count| *count), 40_000);
    }
}
