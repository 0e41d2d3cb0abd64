//! A plain mutex for slow paths: a word of three states and a futex, both simulated. It does not poison. It spins and
//! wakes as the mutex of Rust's standard library, which `prim` has on hardware.

/// A value that several own. It is the standard library's on every platform: the last to give it up frees it.
pub use std::sync::Arc;

/// A value that is made when it is first asked for. It is the standard library's on every platform: to make the value
/// must not block.
pub use std::sync::OnceLock;

/// A number by which threads wait longer or shorter, and of which nothing else depends. Models need
/// not try its values, and simulated threads read it at no cost.
pub use std::sync::atomic::AtomicU64 as Hint;

/// The other end of an [`Arc`], which does not keep the value.
pub use std::sync::Weak;

use crate::atomic::{AtomicU32, Ordering};
use crate::futex;
use crate::spin::Machine;
use hardware::spin::Pause;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// The pauses of a spin in the mutex of Rust's standard library.
const SPINS: u32 = 100;

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the mutex reaches the value, so one thread at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The guard of a held [`Mutex`].
#[derive(Debug)]
#[must_use]
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps a value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Blocks until the mutex is held.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let uncontended =
            self.state
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        if uncontended.is_err() {
            self.lock_contended();
        }
        MutexGuard(self)
    }

    #[track_caller]
    fn lock_contended(&self) {
        let mut seen = self.spin();
        if seen == FREE {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.state.compare_exchange(FREE, HELD, acquire, relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        while seen == AWAITED || self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            futex::wait(&self.state, AWAITED, None);
            seen = self.spin();
        }
    }

    /// Spins while the mutex is held and nobody sleeps. Returns the state.
    #[track_caller]
    fn spin(&self) -> u32 {
        for _ in 0..SPINS {
            match self.state.load(Ordering::Relaxed) {
                HELD => Machine::pause(0),
                seen => return seen,
            }
        }
        self.state.load(Ordering::Relaxed)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.0.state.swap(FREE, Ordering::Release) == AWAITED {
            futex::wake_one(&self.0.state);
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard holds the mutex, so no other thread writes the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard alone holds the mutex, and it is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}
