//! Requests of callers that must not block.

use super::types::{Asked, Range, Token, mode};
use crate::answer::{Answer, Refused, answer};
use crate::copies::Handle;
use crate::memory::place;
use crate::range_handle::RangeHandle;
use crate::request::{self, Argument, Notify};
use libc::{EINVAL, c_int, c_void};
use std::sync::Arc;

/// A submitted request, which is never used for another one. Zero is none.
pub type RequestId = u64;

/// Called once, when a submitted request is granted: with what was given to `spanlock_range_lock_submit`, and the token
/// by which any thread releases the range.
///
/// It runs on a thread of the library, on a stack of 256 KiB, and may call every function of the library. It must not
/// throw or jump out.
pub type GrantCallback = Option<unsafe extern "C" fn(argument: *mut c_void, token: Token)>;

/// Submits a request.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
unsafe fn submit(
    lock: *mut RangeHandle,
    range: Range,
    mode_number: u32,
    notify: impl FnOnce() -> Answer<Notify>,
    request: *mut RequestId,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let id = unsafe { place(request) }?;
        *id = 0;
        // SAFETY: the caller's promise.
        unsafe { RangeHandle::at(lock) }?;
        let (span, mode, notify) = (range.span()?, mode(mode_number)?, notify()?);
        // SAFETY: it came from `Arc::into_raw`, and lives.
        unsafe { Arc::increment_strong_count(lock.cast_const()) };
        // SAFETY: the share counted just above.
        let lock = unsafe { Arc::from_raw(lock.cast_const()) };
        let asked = span.map(|span| Asked { span, mode });
        request::submit(lock, asked, notify, id)
    })
}

/// Asks for a range without waiting for it. When the request is granted, a thread of the library calls `callback` with
/// `argument` and the token. `request` gets the request's number, by which it can be cancelled, before that.
///
/// Each request that waits has a thread of the library, which sleeps. For a range that may be free, first use
/// `spanlock_range_lock_try_write` and its kin, which are faster by far.
///
/// EINVAL: a null pointer, other than `argument`; an unknown mode; a reversed range. EAGAIN: the system gives no more
/// threads.
///
/// # Safety
/// The pointers are null or valid; the lock lives; the callback may be called on any thread.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_submit(
    lock: *mut RangeHandle,
    range: Range,
    mode: u32,
    callback: GrantCallback,
    argument: *mut c_void,
    request: *mut RequestId,
) -> c_int {
    let notify = || {
        let callback = callback.ok_or(Refused::by(EINVAL))?;
        Ok(Notify::Call(callback, Argument(argument)))
    };
    // SAFETY: the caller's promise.
    unsafe { submit(lock, range, mode, notify, request) }
}

/// As `spanlock_range_lock_submit`, but writes eight bytes to `descriptor` when the request is granted: the request's
/// number to a pipe or a local socket, so that who reads it learns which request that was, or the number one to an
/// eventfd, which adds up. The token is then to be had by `spanlock_range_lock_take`. The descriptor may be closed at
/// any time, and may serve many requests. Where a pipe is full, a thread of the library waits until it is read. A
/// number may still come of a request that was taken and released before that: then `spanlock_range_lock_take` answers
/// EALREADY.
///
/// EBADF: the descriptor is not open for writing. EINVAL: it is of a file of another kind. EMFILE: the process has as
/// many descriptors as it may; each request that waits has one of its own.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_submit_fd(
    lock: *mut RangeHandle,
    range: Range,
    mode: u32,
    descriptor: c_int,
    request: *mut RequestId,
) -> c_int {
    let notify = || Notify::by(descriptor);
    // SAFETY: the caller's promise.
    unsafe { submit(lock, range, mode, notify, request) }
}

/// Cancels a request that still waits: its callback has not run and will not run, its descriptor is not written to, and
/// it is over.
///
/// EALREADY: it was granted before, or has ended; then its callback has run, runs or is about to, and the range is to
/// be released by the token. EINVAL: there is no such request of this lock.
///
/// # Safety
/// The pointer is null or valid; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_cancel(
    lock: *mut RangeHandle,
    request: RequestId,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        request::cancel(handle, request)
    })
}

/// The token of a request that was granted. EINPROGRESS: it still waits. EALREADY: it has ended. EINVAL: there is no
/// such request of this lock.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_take(
    lock: *mut RangeHandle,
    request: RequestId,
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        *token = Token::NONE;
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        *token = request::token(handle, request)?;
        Ok(())
    })
}
