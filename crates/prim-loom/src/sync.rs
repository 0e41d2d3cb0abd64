//! A plain mutex for the slow paths.

use loom::sync;

/// A mutual exclusion lock.
#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<T>);

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Blocks until the mutex is held.
    ///
    /// # Panics
    /// When a holder panicked: the execution is lost anyway.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a holder panicked")
    }
}
