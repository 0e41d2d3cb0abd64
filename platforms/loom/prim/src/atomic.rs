//! Atomic types, orderings and fences of loom.
//!
//! Loom treats sequentially consistent *accesses* as acquire-release; only the fence is modelled in full.

pub use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

use core::marker::PhantomData;
use core::ptr;

/// A fence for the compiler only. Loom ignores it.
pub fn compiler_fence(_: Ordering) {}

/// A full fence.
pub fn fence_after_rmw() {
    fence(Ordering::SeqCst);
}

/// Asks for a cache line: nothing, here.
pub fn prefetch<T>(_place: &T) {}

hardware::simulated_exchange_by_owner!();

/// An atomic pointer, made of one of loom's atomic integers: loom's own atomic pointer lacks the bit operations.
#[derive(Debug)]
pub struct AtomicPtr<T> {
    address: AtomicUsize,
    _pointee: PhantomData<*mut T>,
}

// SAFETY: the type gives out raw pointers only, as the atomic pointer of the standard library does.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: all access through a shared reference is atomic.
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

    /// Adds to the address; returns the previous pointer.
    #[track_caller]
    pub fn fetch_byte_add(&self, bytes: usize, order: Ordering) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address.fetch_add(bytes, order))
    }

    /// Sets bits of the address; returns the previous pointer.
    #[track_caller]
    pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address.fetch_or(bits, order))
    }
}
