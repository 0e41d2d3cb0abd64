//! Atomic types, orderings and fences of loom.
//!
//! Loom treats sequentially consistent *accesses* as acquire-release; only the fence is modelled in full.

pub use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

use core::marker::PhantomData;
use core::ptr;

/// Holds a compiler back: loom orders nothing by it.
pub fn compiler_fence(_: Ordering) {}

/// A full fence.
pub fn fence_after_rmw() {
    fence(Ordering::SeqCst);
}

/// Replaces `current` by `new` in a word that no other thread writes meanwhile: to other threads a load and then a store,
/// as it is on the processor that locks least. There are no signal handlers.
///
/// # Errors
/// The value found, if it was not `current`.
#[track_caller]
pub fn compare_exchange_by_owner(
    word: &AtomicUsize,
    current: usize,
    new: usize,
    success: Ordering,
) -> Result<usize, usize> {
    let found = word.load(Ordering::Relaxed);
    if found != current {
        return Err(found);
    }
    word.store(new, success);
    Ok(found)
}

/// An atomic pointer. Loom's own lacks the bit operations, its integers have them.
#[derive(Debug)]
pub struct AtomicPtr<T> {
    address: AtomicUsize,
    _pointee: PhantomData<*mut T>,
}

// SAFETY: as for the standard library's: it hands out raw pointers only.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for AtomicPtr<T> {}

impl<T> AtomicPtr<T> {
    /// A new atomic pointer.
    #[track_caller]
    pub fn new(pointer: *mut T) -> Self {
        Self {
            address: AtomicUsize::new(pointer.expose_provenance()),
            _pointee: PhantomData,
        }
    }

    /// Loads the pointer.
    #[track_caller]
    pub fn load(&self, order: Ordering) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address.load(order))
    }

    /// Stores a pointer.
    #[track_caller]
    pub fn store(&self, pointer: *mut T, order: Ordering) {
        self.address.store(pointer.expose_provenance(), order);
    }

    /// Replaces `current` by `new`.
    ///
    /// # Errors
    /// The pointer found, if it was not `current`.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.address
            .compare_exchange(
                current.expose_provenance(),
                new.expose_provenance(),
                success,
                failure,
            )
            .map(ptr::with_exposed_provenance_mut)
            .map_err(ptr::with_exposed_provenance_mut)
    }

    /// Adds to the address; returns the pointer before.
    #[track_caller]
    pub fn fetch_byte_add(&self, bytes: usize, order: Ordering) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address.fetch_add(bytes, order))
    }

    /// Sets bits of the address; returns the pointer before.
    #[track_caller]
    pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address.fetch_or(bits, order))
    }
}
