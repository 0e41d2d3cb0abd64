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

/// Replaces `current` by `new` in a word that no other thread writes meanwhile; what was found, if it was something else.
///
/// Atomic for this thread and the signal handlers that interrupt it: where one writes the word, this fails or comes first.
/// Another thread's write at the same time may be lost, also where this fails. On x86-64 it is one instruction that locks nothing, which costs
/// little more than a store; elsewhere it is a compare-exchange. `success` is [`Relaxed`](Ordering::Relaxed) or
/// [`Release`](Ordering::Release); a failure is relaxed.
///
/// # Errors
/// The value found, if it was not `current`.
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
        // SAFETY: the word is live and aligned, and shared mutably by its type. To other threads the instruction is a
        // load and then a store; the compiler moves no access to memory across it.
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
