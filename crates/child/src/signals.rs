//! Sets of signals, which std has no interface for.

use libc::{c_int, sigset_t};
use std::mem::MaybeUninit;

/// A set of signals that exist.
#[must_use]
pub fn set_of(signals: &[c_int]) -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: it points to room for a set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for &signal in signals {
        // SAFETY: emptied above, and the signal exists.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: emptied above, and so initialised.
    unsafe { set.assume_init() }
}

/// Changes which signals the thread blocks; what it was before.
pub fn set_mask(how: c_int, set: &sigset_t) -> sigset_t {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both are live, and `how` is one of the three that exist.
    unsafe { libc::pthread_sigmask(how, set, before.as_mut_ptr()) };
    // SAFETY: it cannot fail with such arguments.
    unsafe { before.assume_init() }
}

/// Waits for a signal of a set that all threads block.
pub fn wait(set: &sigset_t) {
    let mut signal = 0;
    // SAFETY: both are live. It fails for no set of signals that exist.
    unsafe { libc::sigwait(set, &raw mut signal) };
}
