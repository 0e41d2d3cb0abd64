//! A plain mutex for the slow paths, which park anyway. It does not poison: what it guards is kept consistent.

use std::sync::{self, PoisonError};

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// Wraps a value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Blocks until the mutex is held.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
