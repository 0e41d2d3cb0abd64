//! A plain mutex for slow paths. It does not poison: its critical sections leave the data consistent even if they
//! panic.

/// A value that several own. It is the standard library's on every platform: the last to give it up frees it.
pub use std::sync::Arc;

/// A value that is made when it is first asked for. It is the standard library's on every platform: to make the value
/// must not block.
pub use std::sync::OnceLock;

/// A number by which threads wait longer or shorter, and of which nothing else depends. Models need
/// not try its values, and simulated threads read it at no cost.
pub use crate::atomic::AtomicU64 as Hint;

/// The other end of an [`Arc`], which does not keep the value.
pub use std::sync::Weak;

use std::sync::{self, PoisonError};

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// The guard of a held [`Mutex`].
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
