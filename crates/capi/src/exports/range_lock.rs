//! Range locks: their life, and what the running thread does with one range.

pub use crate::range_handle::RangeHandle;

use super::types::{Asked, Range, Token};
use crate::answer::{Answer, Refused, answer, ensure, given_up};
use crate::copies::Handle;
use crate::memory::{Options, given, options, place, write_text};
use crate::tables::thread;
use crate::tables::thread_ranges::Hold;
use crate::{request, sanitizer, time};
use libc::{EBUSY, EDEADLK, EINVAL, c_char, c_int, timespec};
use prim::clock::Duration;
use spanlock::range::raw::{Mode, RawRangeMutex, Wait};
use spanlock::range::slots::Fairness;
use spanlock::range::{self, Span};
use std::ptr;
use std::sync::Arc;

/// Requests give way to one that they keep overtaking, for a limited time.
pub const SPANLOCK_FAIR: u32 = 0;

/// No request gives way, and one may be overtaken without end.
pub const SPANLOCK_UNFAIR: u32 = 1;

/// How a range lock is made. Set `size` to `sizeof(spanlock_range_lock_options)` and the rest to zero, which are the
/// defaults; `SPANLOCK_RANGE_LOCK_OPTIONS` does that. Later versions of the library add fields at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RangeLockOptions {
    /// The size of this structure as the program knows it.
    pub size: usize,
    /// After how many nanoseconds of waiting they begin to give way. Zero: after a millisecond.
    pub patience_ns: u64,
    /// `SPANLOCK_FAIR` or `SPANLOCK_UNFAIR`.
    pub fairness: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: numbers, the size first.
unsafe impl Options for RangeLockOptions {}

/// Makes a lock with nothing held, and writes its address to `lock`.
///
/// `options` may be null. EINVAL: `lock` is null, or the options have an unknown size, fairness or reserved value, or a
/// patience without fairness. ENOTSUP: the program was compiled for a later version of the library, and sets a field
/// that this one does not know.
///
/// # Safety
/// The pointers are null or valid, and `options` for as many bytes as its `size` says.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_create(
    lock: *mut *mut RangeHandle,
    options: *const RangeLockOptions,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let lock = unsafe { place(lock) }?;
        *lock = ptr::null_mut();
        sanitizer::look();
        // SAFETY: the caller's promise.
        let fairness = unsafe { fairness(options) }?;
        let raw = range::RangeLock::builder().fairness(fairness).build();
        let handle = Arc::new(RangeHandle::new(range::RangeLock::from_raw(raw)));
        *lock = Arc::into_raw(handle).cast_mut();
        Ok(())
    })
}

/// # Safety
/// The pointer is null, or valid for as many bytes as its `size` says.
unsafe fn fairness(given: *const RangeLockOptions) -> Answer<Fairness> {
    // SAFETY: the caller's promise.
    let Some(options) = (unsafe { options(given) })? else {
        return Ok(Fairness::DEFAULT);
    };
    ensure(options.reserved == 0, EINVAL)?;
    fairness_of((options.fairness, options.patience_ns))
}

/// The fairness of such numbers, as options of locks have them.
pub(crate) fn fairness_of(told: (u32, u64)) -> Answer<Fairness> {
    match told {
        (SPANLOCK_FAIR, 0) => Ok(Fairness::DEFAULT),
        (SPANLOCK_FAIR, patience) => Ok(Fairness::After(Duration::from_nanos(patience))),
        (SPANLOCK_UNFAIR, 0) => Ok(Fairness::Unfair),
        _ => Err(Refused::by(EINVAL)),
    }
}

/// Ends a lock and frees it. EBUSY: a range of it is held or awaited; nothing is done.
///
/// No other thread may use the lock at the same time, or later: its memory is gone, so that cannot be told.
///
/// # Safety
/// The pointer is null or leads to a lock that was made and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_destroy(lock: *mut RangeHandle) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        ensure(!is_used(handle), EBUSY)?;
        handle.copy.end();
        // SAFETY: it came from `Arc::into_raw`, and nobody uses it any more.
        drop(unsafe { Arc::from_raw(lock.cast_const()) });
        Ok(())
    })
}

/// Whether somebody holds or awaits a range of a lock. Requests that were cancelled may still be about to give up.
fn is_used(handle: &RangeHandle) -> bool {
    let leaving = match request::leaving(handle) {
        request::Submitted::Used => return true,
        request::Submitted::Leaving(owners) => owners,
    };
    let snapshot = handle.lock.snapshot();
    let waiting = snapshot.waiters.iter().map(|waiter| waiter.request);
    let mut all = snapshot.holders.into_iter().chain(waiting);
    all.any(|request| !leaving.contains(&request.owner))
}

/// Acquires one range.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[inline(always)] // All of a function, for each mode and wait.
unsafe fn acquire(
    lock: *mut RangeHandle,
    range: Range,
    mode: Mode,
    wait: impl FnOnce() -> Answer<Wait>,
    token: *mut Token,
) -> c_int {
    let error = answer(|| {
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        let span = range.span()?;
        let wait = wait()?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let holds = unsafe { &mut thread::held().ranges };
        let Some(span) = span else {
            *token = holds.note_other(handle, Hold::Nothing);
            return Ok(());
        };
        let Some((first, its_token)) = holds.first(Asked { span, mode }) else {
            return acquire_beside(handle, span, mode, wait, token);
        };
        *token = its_token;
        let granted = handle.acquire(mode, span, wait);
        first.note(handle, granted.ok_or_else(|| given_up(wait))?);
        Ok(())
    });
    if error != 0 {
        // SAFETY: the caller's promise.
        unsafe { none(token) };
    }
    error
}

/// Makes a token none, after an error.
///
/// # Safety
/// The pointer is null or valid.
#[cold]
unsafe fn none(token: *mut Token) {
    // SAFETY: the caller's promise.
    if let Some(token) = unsafe { token.as_mut() } {
        *token = Token::NONE;
    }
}

/// Acquires a range for a thread that holds others, or has held none yet. If it would wait for itself, the error is
/// EDEADLK.
#[cold] // The path of most acquisitions is to be short.
#[inline(never)] // It takes nothing that has to be in memory.
fn acquire_beside(
    handle: &RangeHandle,
    span: Span,
    mode: Mode,
    wait: Wait,
    token: &mut Token,
) -> Answer {
    let asked = Asked { span, mode };
    // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
    let holds = unsafe { &mut thread::held().ranges };
    let mut granted = handle.acquire(mode, span, Wait::Never);
    if granted.is_none() && wait != Wait::Never {
        ensure(!holds.conflicts(handle, asked), EDEADLK)?;
        granted = handle.acquire(mode, span, wait);
    }
    let granted = granted.ok_or_else(|| given_up(wait))?;
    *token = holds.note(handle, granted, asked);
    Ok(())
}

/// Locks a range with other readers; blocks while a writer holds any of it. The thread that acquires a range is the one
/// to release it.
///
/// EDEADLK: the thread itself holds some of it exclusively.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_read(
    lock: *mut RangeHandle,
    range: Range,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Shared, || Ok(Wait::Forever), token) }
}

/// Locks a range alone; blocks while any other request holds any of it. The thread that acquires a range is the one to
/// release it.
///
/// EDEADLK: the thread itself holds some of it.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_write(
    lock: *mut RangeHandle,
    range: Range,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Exclusive, || Ok(Wait::Forever), token) }
}

/// Locks a range with other readers, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_try_read(
    lock: *mut RangeHandle,
    range: Range,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Shared, || Ok(Wait::Never), token) }
}

/// Locks a range alone, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_try_write(
    lock: *mut RangeHandle,
    range: Range,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Exclusive, || Ok(Wait::Never), token) }
}

/// As `spanlock_range_lock_read`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_timed_read(
    lock: *mut RangeHandle,
    range: Range,
    clock: c_int,
    deadline: *const timespec,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Shared, wait, token) }
}

/// As `spanlock_range_lock_write`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_timed_write(
    lock: *mut RangeHandle,
    range: Range,
    clock: c_int,
    deadline: *const timespec,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { acquire(lock, range, Mode::Exclusive, wait, token) }
}

/// Releases what a token acquired, and sets the token to zero.
///
/// EINVAL: it was released before, is of another lock, or was never a token. EPERM: another thread or an owner acquired
/// it. Nothing is released then. A token of a submitted request may be released by any thread; the range is free soon
/// afterwards.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_release(
    lock: *mut RangeHandle,
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise. What the thread holds is in locks of this copy, so that need not be checked.
        let handle = unsafe { given(lock) }?;
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let first = unsafe { thread::held() }.ranges.forget_first(handle, token);
        let Some(granted) = first else {
            return release_otherwise(handle, token);
        };
        *token = Token::NONE;
        // SAFETY: the running thread acquired it in this lock, as its table says.
        unsafe { handle.lock.raw().unlock(granted) };
        Ok(())
    })
}

/// Releases what is not in the first place of the thread's table.
#[cold] // The thread holds several ranges, or the token is refused.
#[inline(never)]
fn release_otherwise(handle: &RangeHandle, token: &mut Token) -> Answer {
    // SAFETY: this is a part of a function that C calls, and nothing else here uses it.
    let hold = unsafe { thread::held() }.ranges.forget(handle, token);
    let hold = hold.or_else(|refused| foreign(refused, handle, *token, request::release))?;
    *token = Token::NONE;
    if let Hold::One(token, _) = hold {
        // SAFETY: the running thread acquired it in this lock, as its table says.
        unsafe { handle.lock.raw().unlock(token) };
    }
    Ok(())
}

/// What becomes of a token that the running thread's table has refused: `f`, if it is a submitted request's.
#[cold]
fn foreign(
    refused: Refused,
    handle: &RangeHandle,
    token: Token,
    f: impl FnOnce(&RangeHandle, u64) -> Answer,
) -> Answer<Hold> {
    handle.copy.check()?;
    match token.request() {
        Some(id) => f(handle, id).map(|()| Hold::Nothing),
        None if token == Token::NONE => Err(Refused::by(EINVAL)),
        None => Err(refused),
    }
}

/// Keeps what a token acquired, but shares it from now on. No writer gets in between. The token stays the same. A range
/// that is shared already stays so.
///
/// Errors as `spanlock_range_lock_release`.
///
/// # Safety
/// The pointers are null or valid; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_downgrade(
    lock: *mut RangeHandle,
    token: *mut Token,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        // SAFETY: the caller's promise.
        let token = unsafe { place(token) }?;
        // SAFETY: this is a part of a function that C calls, and nothing below uses it.
        let shared = unsafe { thread::held() }.ranges.share(handle, token);
        shared.or_else(|refused| foreign(refused, handle, *token, request::downgrade).map(|_| ()))
    })
}

/// Writes to `buffer` who holds and who awaits ranges of a lock, as text, to find a hang. The text ends with a zero and
/// is cut off where `size` bytes do not suffice; `size` may be zero. `needed`, unless null, gets the bytes that would
/// have sufficed, with the zero.
///
/// Threads are named by the numbers that `ps -L` and debuggers show, and owners by
/// those of `spanlock_owner_number`. `spanlock_range_lock_holders` has the holders as data.
///
/// # Safety
/// The pointers are null or valid, `buffer` for `size` bytes; the lock lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_range_lock_snapshot(
    lock: *mut RangeHandle,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { RangeHandle::at(lock) }?;
        let text = handle.lock.snapshot().to_string();
        // SAFETY: the caller's promise.
        unsafe { write_text(&text, buffer, size, needed) }
    })
}
