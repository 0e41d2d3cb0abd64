//! Range locks over keys, which are byte strings in an order that the program knows: how they are made and ended, and
//! who holds what.

pub use crate::key_handle::KeyHandle;

use super::range_lock::fairness_of;
use super::types::{mode, mode_number};
use crate::answer::{Refused, answer, ensure};
use crate::copies::{self, Handle};
use crate::key_handle::ByCallback;
use crate::memory::{Options, options, place};
use crate::owner_handle::OwnerHandle;
use crate::ranged::Ranged;
use crate::sanitizer;
use libc::{EBUSY, EINVAL, c_int, c_void};
use spanlock::range::OwnerId;
use spanlock::range::keys::{Builder, KeyRequest};
use std::ops::{Bound, RangeBounds};
use std::ptr;

/// Which of two keys comes first: negative for the one, positive for the other, zero for keys that are the same. The
/// first argument is what the lock was given with the function.
///
/// It is a total order, the same at any time and on any thread. Where it is not, ranges that overlap may be held
/// together, and others may exclude each other; nothing else happens. It is called often, also by threads that release
/// what others wait for. So it should be short; it must not throw or jump out, and must not call this library.
pub type CompareCallback = Option<
    unsafe extern "C" fn(
        argument: *mut c_void,
        one: *const c_void,
        one_size: usize,
        other: *const c_void,
        other_size: usize,
    ) -> c_int,
>;

/// How a lock over keys is made. Set `size` to `sizeof(spanlock_key_lock_options)` and the rest to zero, which are the
/// defaults; `SPANLOCK_KEY_LOCK_OPTIONS` does that. Later versions of the library add fields at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KeyLockOptions {
    /// The size of this structure as the program knows it.
    pub size: usize,
    /// What compares keys. Null: `memcmp`, and of keys that begin alike the shorter one comes first.
    pub compare: CompareCallback,
    /// The first argument of that function.
    pub argument: *mut c_void,
    /// After how many nanoseconds of waiting requests begin to give way. Zero: after a millisecond.
    pub patience_ns: u64,
    /// `SPANLOCK_FAIR` or `SPANLOCK_UNFAIR`.
    pub fairness: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: numbers and pointers, the size first.
unsafe impl Options for KeyLockOptions {}

/// At an end of a range of keys: it has no key, and reaches as far as there are keys.
pub const SPANLOCK_UNBOUNDED: u32 = 0;

/// At an end of a range of keys: the key belongs to the range.
pub const SPANLOCK_INCLUDED: u32 = 1;

/// At an end of a range of keys: the key does not belong to the range.
pub const SPANLOCK_EXCLUDED: u32 = 2;

/// A range of keys: what lies between two ends. All zero, it is all keys. The library copies the keys.
///
/// A lock does not know which keys exist: between two different keys there may be others. A range of a key that begins
/// or ends without it is empty: it is granted at once and conflicts with nothing. One that starts behind its end is
/// reversed, and refused with EINVAL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KeyRange {
    /// The key at the start. Ignored where the start is open.
    pub start: *const c_void,
    /// The bytes of that key.
    pub start_size: usize,
    /// The key at the end. Ignored where the end is open.
    pub end: *const c_void,
    /// The bytes of that key.
    pub end_size: usize,
    /// `SPANLOCK_INCLUDED`, `SPANLOCK_EXCLUDED` or `SPANLOCK_UNBOUNDED`.
    pub start_kind: u32,
    /// `SPANLOCK_INCLUDED`, `SPANLOCK_EXCLUDED` or `SPANLOCK_UNBOUNDED`.
    pub end_kind: u32,
}

/// Somebody who holds a range of keys.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KeyHolder {
    /// What is held, in one piece. Its keys live until the callback returns.
    pub range: KeyRange,
    /// `SPANLOCK_SHARED` or `SPANLOCK_EXCLUSIVE`.
    pub mode: u32,
    /// The number of the owner that holds it, as `spanlock_owner_number` tells it.
    pub owner: u32,
}

impl KeyHolder {
    /// The result points into `holder`.
    fn of(holder: &KeyRequest<[u8]>) -> Self {
        let end = |bound| match bound {
            Bound::Unbounded => (ptr::null(), 0, SPANLOCK_UNBOUNDED),
            Bound::Included(key) => parts(key, SPANLOCK_INCLUDED),
            Bound::Excluded(key) => parts(key, SPANLOCK_EXCLUDED),
        };
        let (start, start_size, start_kind) = end(holder.range.start_bound());
        let (end, end_size, end_kind) = end(holder.range.end_bound());
        let range = KeyRange {
            start,
            start_size,
            end,
            end_size,
            start_kind,
            end_kind,
        };
        Self {
            range,
            mode: mode_number(holder.mode),
            owner: holder.owner.owner().unwrap_or(0),
        }
    }
}

fn parts(key: &[u8], kind: u32) -> (*const c_void, usize, u32) {
    (key.as_ptr().cast(), key.len(), kind)
}

/// Called with one who holds keys, and the argument that was given with it. It may call every function of the library,
/// and must not throw or jump out.
pub type KeyHolderCallback =
    Option<unsafe extern "C" fn(argument: *mut c_void, holder: *const KeyHolder)>;

/// Makes a lock over keys with nothing held, and writes its address to `lock`. Keys are byte strings of any length, and
/// owners hold ranges of them: see `spanlock_owner_create`.
///
/// `options` may be null: then keys are ordered by their bytes. Errors as `spanlock_range_lock_create`.
///
/// # Safety
/// The pointers are null or valid, and `options` for as many bytes as its `size` says; its function may be called as
/// its type says until the lock is destroyed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_create(
    lock: *mut *mut KeyHandle,
    options: *const KeyLockOptions,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let lock = unsafe { place(lock) }?;
        *lock = ptr::null_mut();
        sanitizer::look();
        // SAFETY: the caller's promise.
        let given = unsafe { self::options(options) }?;
        ensure(given.is_none_or(|given| given.reserved == 0), EINVAL)?;
        let told = given.map(|given| (given.fairness, given.patience_ns));
        let fairness = fairness_of(told.unwrap_or_default())?;
        let order = || ByCallback {
            compare: given.and_then(|given| given.compare),
            argument: given.map_or(ptr::null_mut(), |given| given.argument),
        };
        let builder = Builder::<[u8]>::new()
            .ordered_by(order())
            .fairness(fairness);
        *lock = Box::into_raw(Box::new(KeyHandle {
            copy: copies::Copy::this(0),
            lock: builder.build(),
            order: order(),
        }));
        Ok(())
    })
}

/// Ends a lock over keys and frees it. EBUSY: a range of it is held or awaited; nothing is done.
///
/// No other thread may use the lock at the same time, or later: its memory is gone, so that cannot be told. The
/// function that compares its keys is not called any more.
///
/// # Safety
/// The pointer is null or leads to a lock that was made and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_destroy(lock: *mut KeyHandle) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { KeyHandle::at(lock) }?;
        let snapshot = handle.lock.snapshot();
        ensure(
            snapshot.holders.is_empty() && snapshot.waiters.is_empty(),
            EBUSY,
        )?;
        handle.copy.end();
        // SAFETY: it came from `Box::into_raw`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(lock) });
        Ok(())
    })
}

/// Calls `callback` with `argument` for each who is in the way of a request: who holds some of `range`, and conflicts
/// with `mode_wanted`, in the order in which their ranges begin.
///
/// Who asks is `owner`, which is not in its own way; null: nobody in particular. So `SPANLOCK_EXCLUSIVE` and null list
/// all who hold some of the range.
///
/// The answer may be out of date at once: who comes or goes meanwhile may be listed or not. It takes as long as a walk
/// over all holders.
///
/// # Safety
/// The pointers are null or valid, the range's for their sizes; the lock and the owner live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_key_lock_blockers(
    lock: *mut KeyHandle,
    range: *const KeyRange,
    mode_wanted: u32,
    owner: *const OwnerHandle,
    callback: KeyHolderCallback,
    argument: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { KeyHandle::at(lock) }?;
        // SAFETY: the caller's promise.
        let range = unsafe { handle.asked(range) }?;
        let mode = mode(mode_wanted)?;
        let callback = callback.ok_or(Refused::by(EINVAL))?;
        let own: Option<OwnerId> = if owner.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { OwnerHandle::at(owner) }?.owner.id())
        };
        let in_the_way = handle.lock.holders_in(range);
        let in_the_way = in_the_way
            .iter()
            .filter(|holder| holder.mode.conflicts(mode) && Some(holder.owner) != own);
        for holder in in_the_way {
            let told = KeyHolder::of(holder);
            // SAFETY: the caller's promise about the function.
            unsafe { callback(argument, &raw const told) };
        }
        Ok(())
    })
}
