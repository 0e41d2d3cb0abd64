//! `errno`, which glibc's functions on locks leave as it is.

use libc::c_int;

/// The thread's `errno` while this lives: it is restored at the end. System calls change it, and glibc's functions do
/// not.
pub(crate) struct Errno {
    place: *mut c_int,
    value: c_int,
}

impl Errno {
    pub(crate) fn kept() -> Self {
        // SAFETY: the function has no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: it points to the running thread's `errno`, which lives as long as the thread.
        let value = unsafe { *place };
        Self { place, value }
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the pointer makes this type `!Send`, so it is still on the thread whose `errno` it points to.
        unsafe { *self.place = self.value };
    }
}
