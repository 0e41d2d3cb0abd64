//! The futex system call.
//!
//! The layout of times is defined here and not taken from `libc::timespec`: on 32-bit platforms the C library may use
//! 64-bit times although the system call takes 32-bit times.

use super::Woken;
use crate::atomic::AtomicU32;
use crate::clock::{Duration, Instant};
use crate::errno::keeping;
use core::ptr;
#[cfg(not(target_arch = "riscv32"))]
use libc::SYS_futex;
#[cfg(target_arch = "riscv32")]
use libc::SYS_futex_time64 as SYS_futex; // The only one there.
use std::io;

/// Whether the system call takes a time as two 64-bit words; otherwise the words have 32 bits.
///
/// It does on 64-bit kernels, also for x32 programs. It does as well where the call is `futex_time64`: number 422 on
/// every platform that has only that call.
const WIDE: bool =
    cfg!(any(target_pointer_width = "64", target_arch = "x86_64")) || SYS_futex == 422;

/// A time span as the kernel reads it, seconds first.
#[repr(C)]
union Timeout {
    wide: [i64; 2],
    narrow: [i32; 2],
}

impl Timeout {
    /// A span too long for the kernel's type is shortened. The wait then ends early, and the caller checks its
    /// deadline.
    fn new(span: Duration) -> Self {
        if WIDE {
            let seconds = span.as_secs().try_into().unwrap_or(i64::MAX);
            Self {
                wide: [seconds, span.subsec_nanos().into()],
            }
        } else {
            let seconds = span.as_secs().try_into().unwrap_or(i32::MAX);
            Self {
                narrow: [seconds, span.subsec_nanos().cast_signed()], // Less than 10^9.
            }
        }
    }
}

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Woken::TimedOut;
    }
    let timeout = left.map(Timeout::new);
    let timeout_ptr = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is live during the call. The timeout is null or points to a live time in the kernel's layout.
    // FUTEX_WAIT accesses no other memory.
    let call = || unsafe {
        libc::syscall(
            SYS_futex,
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
            Woken::Recheck
        }
    })
}

pub(super) fn wake_one(word: &AtomicU32) -> bool {
    wake(word, 1) > 0
}

pub(super) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

/// Returns how many were woken.
fn wake(word: &AtomicU32, at_most: i32) -> libc::c_long {
    // SAFETY: FUTEX_WAKE uses the address as a key and accesses no memory of this process.
    keeping(|| unsafe {
        libc::syscall(
            SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            at_most,
        )
    })
}
