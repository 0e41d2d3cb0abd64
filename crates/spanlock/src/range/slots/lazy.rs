//! Parts of a board that are made when they are first needed, and stay where they are.

use prim::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

/// Where such a part is, if it has been made.
pub(super) struct Lazy<T>(AtomicPtr<T>);

impl<T> Lazy<T> {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// The part, if it has been made.
    #[inline]
    pub(super) fn get(&self) -> Option<NonNull<T>> {
        // [board-part] Acquire: pairs with the Release in `publish`.
        let acquire = prim::order!("board-part", Ordering::Acquire);
        NonNull::new(self.0.load(acquire))
    }

    /// Makes `fresh` the part. `Err`: another thread was faster, and made that one.
    pub(super) fn publish(&self, fresh: NonNull<T>) -> Result<(), NonNull<T>> {
        // [board-part] Release: pairs with the Acquire in `get`, and here, if another thread was faster.
        let published = self.0.compare_exchange(
            ptr::null_mut(),
            fresh.as_ptr(),
            prim::order!("board-part", Ordering::Release),
            prim::order!("board-part", Ordering::Acquire),
        );
        match published.map_err(NonNull::new) {
            Ok(_) => Ok(()),
            Err(theirs) => Err(theirs.expect("it has been made")),
        }
    }

    /// The part of a board that is being dropped. (It is not taken out: a store to memory that is freed right after
    /// would be of no use.)
    pub(super) fn last(&mut self) -> Option<NonNull<T>> {
        // Relaxed: whoever drops the board comes after those who used it.
        NonNull::new(self.0.load(Ordering::Relaxed))
    }
}
