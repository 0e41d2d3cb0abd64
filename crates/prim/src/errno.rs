//! Preserves `errno`.
//!
//! A system call changes `errno`, and a lock must not: its caller may have made a call of its own and not yet read the
//! error.

/// Calls `f`, and restores the value of `errno` afterwards.
pub(crate) fn keeping<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the function has no preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address is valid for the life of this thread, and no other thread uses it.
    let before = unsafe { *place };
    let result = f();
    // SAFETY: the address is still valid, because `f` returned on the thread that it belongs to.
    unsafe { *place = before };
    result
}

#[cfg(test)]
mod tests {
    use super::keeping;

    #[test]
    fn what_a_call_leaves_there_is_gone() {
        // SAFETY: the function has no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the address is valid for the life of this thread, and no other thread uses it.
        unsafe { *place = libc::ERANGE };
        // SAFETY: no file has the number -1, so the call closes nothing and fails.
        let answer = keeping(|| unsafe { libc::close(-1) });
        assert_eq!(answer, -1);
        // SAFETY: the address is valid for the life of this thread, and no other thread uses it.
        assert_eq!(unsafe { *place }, libc::ERANGE);
    }
}
