//! What is made when it is first needed, and then stays.
//!
//! # Edge: memory ordering
//!
//! - **once-made**: Release by the compare-exchange that publishes it, Acquire by the loads: its content.

use prim::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr;

/// A value, if it has been made.
pub(crate) struct Once<T>(AtomicPtr<T>);

impl<T> Once<T> {
    /// Not made yet.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if it has been made.
    pub(crate) fn get(&self) -> Option<&T> {
        // [once-made] Acquire: the value's content.
        let value = self.0.load(prim::order!("once-made", Ordering::Acquire));
        // SAFETY: null, or from a box that lives as long as this.
        unsafe { value.as_ref() }
    }

    /// The value. Of threads that make it at a time, one publishes its own.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        // Release: the value's content; pairs with [once-made]. Acquire: that of another thread's value.
        let published = self.0.compare_exchange(
            ptr::null_mut(),
            made,
            prim::order!("once-made", Ordering::Release),
            prim::order!("once-made", Ordering::Acquire),
        );
        let value = match published {
            Ok(_) => made,
            Err(winner) => {
                // SAFETY: it came from a box just now, and was not published.
                drop(unsafe { Box::from_raw(made) });
                winner
            }
        };
        // SAFETY: from a box that lives as long as this.
        unsafe { &*value }
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = self.0.load(Ordering::Acquire);
        if !value.is_null() {
            // SAFETY: from a box, and nobody else has this any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: it owns the value, which any thread may make, use and drop.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: likewise.
unsafe impl<T: Send> Send for Once<T> {}
