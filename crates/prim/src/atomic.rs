//! Atomic types, orderings and fences.

pub use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, compiler_fence, fence,
};

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::AtomicU64;
/// Some 32-bit processors have no atomic operations on 64 bits. There this type is two words and a lock: correct, but
/// not lock-free.
#[cfg(not(target_has_atomic = "64"))]
pub use portable_atomic::AtomicU64;

/// A full store-load fence, for a thread whose last atomic access was a *successful read-modify-write*.
///
/// No later access is performed before that one. On x86 the locked instruction of the read-modify-write is a fence
/// already, so this function restrains the compiler only. Elsewhere it is `fence(SeqCst)`.
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

/// Asks for the first cache line of `place`, which is read soon, and does not wait for it.
#[inline]
pub fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it reads nothing that the program could observe, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

/// Compare-exchange on a word that no other thread writes at the same time.
///
/// The operation is atomic with respect to this thread and to the signal handlers that interrupt it. It is not atomic
/// with respect to other threads: a write by another thread at the same time may be lost, even if this operation fails.
/// On x86-64 it is one instruction without a lock prefix, which costs little more than a store. Elsewhere it is an
/// ordinary compare-exchange. `success` is [`Relaxed`](Ordering::Relaxed) or [`Release`](Ordering::Release); a failure
/// is relaxed.
///
/// # Errors
/// The value found, if it differs from `current`.
#[inline(always)]
pub fn compare_exchange_by_owner(
    word: &AtomicUsize,
    current: usize,
    new: usize,
    success: Ordering,
) -> Result<usize, usize> {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
    {
        let _stores_release_anyway = success;
        let found: usize;
        // SAFETY: the word is live and aligned, and its type allows shared writes. To other threads the instruction is
        // a load followed by a store. The block is not declared `nomem`, so no memory access moves across it.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inout("rax") current => found,
                options(nostack),
            );
        }
        if found == current {
            Ok(found)
        } else {
            Err(found)
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", not(miri))))]
    word.compare_exchange(current, new, success, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_replaces_what_is_there_and_nothing_else() {
        let word = AtomicUsize::new(usize::MAX);
        let replace =
            |current, new| compare_exchange_by_owner(&word, current, new, Ordering::Release);
        assert_eq!(replace(0, 1), Err(usize::MAX));
        assert_eq!(word.load(Ordering::Relaxed), usize::MAX);
        assert_eq!(replace(usize::MAX, 7), Ok(usize::MAX));
        assert_eq!(word.load(Ordering::Relaxed), 7);
    }
}
