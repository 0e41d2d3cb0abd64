//! A plain mutex for the slow paths.

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

use loom::sync;

/// A mutual exclusion lock.
#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<T>);

/// The guard of a held [`Mutex`].
pub type MutexGuard<'a, T> = sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Blocks until the mutex is held.
    ///
    /// # Panics
    /// When a holder has panicked, because the execution has failed anyway.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a holder panicked")
    }
}
