//! `errno`, which system calls change and a lock should not: its users may be between a call of theirs and the look at it.

/// Calls `f`, and puts back what was there.
pub(crate) fn keeping<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: it has no preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own.
    let before = unsafe { *place };
    let result = f();
    // SAFETY: as above: the pointer keeps this on its thread.
    unsafe { *place = before };
    result
}

#[cfg(test)]
mod tests {
    use super::keeping;

    #[test]
    fn what_a_call_leaves_there_is_gone() {
        // SAFETY: it has no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the thread's own.
        unsafe { *place = libc::ERANGE };
        // SAFETY: no file has that number.
        let answer = keeping(|| unsafe { libc::close(-1) });
        assert_eq!(answer, -1);
        // SAFETY: the thread's own.
        assert_eq!(unsafe { *place }, libc::ERANGE);
    }
}
