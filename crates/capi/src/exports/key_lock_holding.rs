//! What owners hold of a lock over keys, to be acquired, converted, cut and released.

use super::key_lock::KeyRange;
use super::types::Token;
use crate::answer::ensure;
use crate::key_handle::KeyHandle;
use crate::owner_handle::{Held, OwnerHandle};
use crate::ranged::{Ranged, acquire_one, convert, release, release_part, split};
use crate::time;
use libc::{EINVAL, c_int, timespec};
use spanlock::range::raw::Wait;
use std::ops::Bound;

/// Locks a range of keys in a mode, `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`, for an owner; blocks while others hold
/// some of it in the way. Any thread may use the token then.
///
/// ECANCELED: the owner is cancelled. ENOLCK: it holds or asks for as many ranges as it may. EDEADLK: the owner, by
/// another token, holds some of the range in the way.
///
/// # Safety
/// The pointers are null or valid, the range's for their sizes; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_acquire(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    range: *const KeyRange,
    mode: u32,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_one((owner, lock), (range, mode), || Ok(Wait::Forever), token) }
}

/// As `spanlock_key_lock_acquire`, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_try_acquire(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    range: *const KeyRange,
    mode: u32,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_one((owner, lock), (range, mode), || Ok(Wait::Never), token) }
}

/// As `spanlock_key_lock_acquire`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_timed_acquire(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    range: *const KeyRange,
    mode: u32,
    clock: c_int,
    deadline: *const timespec,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { acquire_one((owner, lock), (range, mode), wait, token) }
}

/// From now on the owner holds `range` in a mode, by this token: what the token stands for of it is converted, and what
/// it does not is acquired. What it stands for elsewhere stays. Blocks while others hold some of `range` in the way.
///
/// All or nothing: an error leaves what was held as it was, and it is held meanwhile. Nobody gets between the old hold
/// and the new one. Errors as `spanlock_owner_convert`.
///
/// # Safety
/// The pointers are null or valid, the range's for their sizes; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_convert(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *const Token,
    range: *const KeyRange,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), || Ok(Wait::Forever)) }
}

/// As `spanlock_key_lock_convert`, if that is possible at once. EBUSY: it is not. To try again in a loop is no way to
/// wait: two owners that do so never succeed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_try_convert(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *const Token,
    range: *const KeyRange,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), || Ok(Wait::Never)) }
}

/// As `spanlock_key_lock_convert`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_timed_convert(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *const Token,
    range: *const KeyRange,
    mode: u32,
    clock: c_int,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { convert((owner, lock), token, (range, mode), wait) }
}

/// Releases what a token stands for, and sets the token to zero. Any thread may do it.
///
/// EINVAL: the token was released, is of another owner or lock, or was never an owner's token. EBUSY: another thread
/// uses it. Nothing is released then.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_release(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { release((owner, lock), token) }
}

/// Releases `range`, and keeps the rest of what a token stands for. The token stays, also if nothing is left.
///
/// EINVAL: a reversed range. Other errors as `spanlock_key_lock_release`.
///
/// # Safety
/// The pointers are null or valid, the range's for their sizes; the owner and the lock live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_release_part(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *const Token,
    range: *const KeyRange,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { release_part((owner, lock), token, range) }
}

/// Splits off what a token stands for of a range that is open at its end: from now on `rest` stands for that.
///
/// EINVAL: the range has an end. Other errors as `spanlock_key_lock_release`; `rest` is zero then.
///
/// # Safety
/// The pointers are null or valid, the range's for their sizes; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_split(
    lock: *mut KeyHandle,
    owner: *mut OwnerHandle,
    token: *const Token,
    range: *const KeyRange,
    rest: *mut Token,
) -> c_int {
    let f = |lock: &KeyHandle, held: &mut Held<KeyHandle>| {
        // SAFETY: the caller's promise.
        let (start, end) = unsafe { lock.asked(range) }?;
        ensure(end == Bound::Unbounded, EINVAL)?;
        Ok(held.split_off_behind(start))
    };
    // SAFETY: the caller's promise.
    unsafe { split((owner, lock), token, rest, f) }
}
