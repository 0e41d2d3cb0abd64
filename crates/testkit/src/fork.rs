//! What a forked child finds.

/// Runs `child` in a forked process and returns its exit status; `child` says whether all is well.
///
/// The child neither allocates through std's locks nor unwinds: it runs `child` and exits without any clean-up.
///
/// # Panics
/// When the system does not fork.
pub fn status_of_child(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child keeps to what is said above.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // A child that hangs is killed. It has as long as any needs on a busy machine.
        // SAFETY: alarm has no preconditions.
        unsafe { libc::alarm(600) };
        let code = i32::from(!child());
        // SAFETY: _exit has no preconditions.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: it writes to the place it is given.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    status
}
