//! The futex system call.

use super::Woken;
use crate::atomic::AtomicU32;
use crate::clock::Instant;
use crate::errno::keeping;
use core::ptr;
use std::io;

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Woken::TimedOut;
    }
    let timeout = left.map(|left| libc::timespec {
        // A time too long for the kernel's type is cut: the caller looks at its deadline again.
        tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let timeout_ptr = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is live for the call, the timeout is null or points to a live timespec, and FUTEX_WAIT
    // reads nothing else.
    let call = || unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout_ptr,
        )
    };
    keeping(|| {
        if call() != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
            Woken::TimedOut
        } else {
            Woken::LookAgain
        }
    })
}

pub(super) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

pub(super) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

fn wake(word: &AtomicU32, at_most: i32) {
    // SAFETY: FUTEX_WAKE uses the address as a key and touches no memory of ours.
    keeping(|| unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            at_most,
        );
    });
}
