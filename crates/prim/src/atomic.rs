//! Atomic types, orderings and fences.

pub use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, compiler_fence, fence,
};

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::AtomicU64;
/// Of two words and a lock: some 32-bit processors have no atomic operations on 64 bits. Correct there, but not lock-free.
#[cfg(not(target_has_atomic = "64"))]
pub use portable_atomic::AtomicU64;

/// A full store-load fence for a thread whose last atomic access was a *successful read-modify-write*.
///
/// Nothing that follows is performed before that access. On x86 a locked instruction is such a fence already, so
/// this only holds the compiler back; elsewhere it is `fence(SeqCst)`.
#[inline]
pub fn fence_after_rmw() {
    if cfg!(all(
        any(target_arch = "x86_64", target_arch = "x86"),
        not(miri)
    )) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
