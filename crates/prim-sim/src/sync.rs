//! A plain mutex for slow paths: a word of three states and a futex, both simulated. It does not poison.

use crate::atomic::{AtomicU32, Ordering};
use crate::futex;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

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
            while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
                futex::wait(&self.state, AWAITED, None);
            }
        }
        MutexGuard(self)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.0.state.swap(FREE, Ordering::Release) == AWAITED {
            futex::wake_all(&self.0.state);
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
