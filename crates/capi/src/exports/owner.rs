//! Owners: their life, and what they acquire of positions.

pub use crate::owner_handle::OwnerHandle;

use super::range_lock_many::{Want, wanted};
use super::types::{Range, Token};
use crate::answer::{Answer, answer};
use crate::copies::Handle;
use crate::memory::{self, Options, place};
use crate::range_handle::RangeHandle;
use crate::ranged::{acquire, acquire_one, granted};
use crate::time;
use libc::{c_int, timespec};
use spanlock::range::raw::Wait;
use spanlock::range::{By, Owner, RangeLock};
use std::ptr;

/// How an owner is made. Set `size` to `sizeof(spanlock_owner_options)` and the rest to zero, which are the defaults;
/// `SPANLOCK_OWNER_OPTIONS` does that. Later versions of the library add fields at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OwnerOptions {
    /// The size of this structure as the program knows it.
    pub size: usize,
    /// How many ranges it may hold or ask for at a time, in all locks together. Zero: any number.
    pub limit: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Options for OwnerOptions {}

/// Makes an owner that holds nothing, and writes its address to `owner`. An owner stands for somebody who is no thread:
/// a transaction, a client, a request that goes over a pool of threads. What it acquires any thread may use and
/// release. Two owners exclude each other as two threads do.
///
/// `options` may be null. EINVAL: `owner` is null, or the options have an unknown size. ENOTSUP: the program was
/// compiled for a later version of the library, and sets a field that this one does not know.
///
/// # Safety
/// The pointers are null or valid, and `options` for as many bytes as its `size` says.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_create(
    owner: *mut *mut OwnerHandle,
    options: *const OwnerOptions,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let owner = unsafe { place(owner) }?;
        *owner = ptr::null_mut();
        // SAFETY: the caller's promise.
        let limit = unsafe { memory::options(options) }?.map_or(0, |options| options.limit);
        let fresh = match limit {
            0 => Owner::new(),
            _ => Owner::with_limit(usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        *owner = Box::into_raw(Box::new(OwnerHandle::new(fresh)));
        Ok(())
    })
}

/// Ends an owner and frees it. EBUSY: it holds a range, or a thread asks for one in its name; nothing is done.
///
/// No other thread may use the owner at the same time, or later: its memory is gone, so that cannot be told.
///
/// # Safety
/// The pointer is null or leads to an owner that was made and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_destroy(owner: *mut OwnerHandle) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { OwnerHandle::at(owner) }?.end()?;
        // SAFETY: it came from `Box::into_raw`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(owner) });
        Ok(())
    })
}

/// Writes to `number` the number by which snapshots name the owner: 7, for `owner 7`.
///
/// # Safety
/// The pointers are null or valid; the owner lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_number(
    owner: *const OwnerHandle,
    number: *mut u32,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let number = unsafe { place(number) }?;
        // SAFETY: the caller's promise.
        let id = unsafe { OwnerHandle::at(owner) }?.owner.id();
        *number = id.owner().expect("it is neither a thread nor anonymous");
        Ok(())
    })
}

/// Writes to `count` how many ranges the owner holds or asks for, in all locks. Each piece of what was converted or
/// released in parts counts.
///
/// # Safety
/// The pointers are null or valid; the owner lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_count(owner: *mut OwnerHandle, count: *mut usize) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let count = unsafe { place(count) }?;
        // SAFETY: the caller's promise.
        *count = unsafe { OwnerHandle::at(owner) }?.owner.asks_or_holds();
        Ok(())
    })
}

/// Ends all waits in the owner's name, now and from now on: they answer ECANCELED. What it holds it keeps, and a
/// request that need not wait is granted as before. Any thread may call this.
///
/// # Safety
/// The pointer is null or valid; the owner lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_cancel(owner: *mut OwnerHandle) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { OwnerHandle::at(owner) }?.owner.cancel();
        Ok(())
    })
}

/// Acquires several ranges for an owner.
///
/// # Safety
/// The pointers are null or valid, `wants` for `count` elements; the owner and the lock live.
unsafe fn acquire_many(
    at: (*mut OwnerHandle, *mut RangeHandle),
    (wants, count): (*const Want, usize),
    wait: impl FnOnce() -> Answer<Wait>,
    token: *mut Token,
) -> c_int {
    let get = |at: (&OwnerHandle, &RangeHandle), by: By<'_, &'static RangeLock>| {
        // SAFETY: the caller's promise.
        let asked = unsafe { wanted(wants, count) }?;
        let asked: Vec<_> = asked
            .iter()
            .map(|asked| (asked.range(), asked.mode))
            .collect();
        let ranges = || asked.iter().copied();
        granted(at, &asked, wait()?, |wait| match wait {
            Wait::Forever => by.lock_many(ranges()),
            Wait::Never => by.try_lock_many(ranges()),
            Wait::Until(deadline) => by.try_lock_many_for(ranges(), time::left(deadline)),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { acquire(at, token, get) }
}

/// Locks a range in a mode, `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`, for an owner; blocks while others hold some of
/// it in the way. Any thread may use the token then.
///
/// ECANCELED: the owner is cancelled. ENOLCK: it holds or asks for as many ranges as it may. EDEADLK: the owner, by
/// another token, or the running thread holds some of the range in the way.
///
/// # Safety
/// The pointers are null or valid; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_lock(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    range: Range,
    mode: u32,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_one((owner, lock), (range, mode), || Ok(Wait::Forever), token) }
}

/// As `spanlock_owner_lock`, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_try_lock(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    range: Range,
    mode: u32,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_one((owner, lock), (range, mode), || Ok(Wait::Never), token) }
}

/// As `spanlock_owner_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_timed_lock(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    range: Range,
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

/// Locks several ranges for an owner, each in its mode, all or none, as `spanlock_range_lock_many` does for a thread.
/// Errors as `spanlock_owner_lock`.
///
/// # Safety
/// The pointers are null or valid, `wants` for `count` elements; the owner and the lock live.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_many(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_many((owner, lock), (wants, count), || Ok(Wait::Forever), token) }
}

/// As `spanlock_owner_many`, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_try_many(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { acquire_many((owner, lock), (wants, count), || Ok(Wait::Never), token) }
}

/// As `spanlock_owner_many`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// As for that function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_owner_timed_many(
    owner: *mut OwnerHandle,
    lock: *mut RangeHandle,
    wants: *const Want,
    count: usize,
    clock: c_int,
    deadline: *const timespec,
    token: *mut Token,
) -> c_int {
    // SAFETY: the caller's promise.
    let wait = || unsafe { time::until(clock, deadline) };
    // SAFETY: the caller's promise.
    unsafe { acquire_many((owner, lock), (wants, count), wait, token) }
}
