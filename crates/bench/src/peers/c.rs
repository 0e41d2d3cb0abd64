//! The library's own locks, by the calls of its face for C. They are no part of Rust's: each acquisition is a call.

use super::called::Calls;
use super::{Readers, Target};
use crossbeam_utils::CachePadded;
use spanlock_capi::exports::range_lock::{
    RangeHandle, spanlock_range_lock_create, spanlock_range_lock_destroy, spanlock_range_lock_read,
    spanlock_range_lock_release, spanlock_range_lock_try_write, spanlock_range_lock_write,
};
use spanlock_capi::exports::rwlock::{
    RwLock, spanlock_rwlock_destroy, spanlock_rwlock_read_lock, spanlock_rwlock_read_unlock,
    spanlock_rwlock_write_lock, spanlock_rwlock_write_unlock,
};
use spanlock_capi::exports::types::{Range as PositionRange, Token};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// A `spanlock_range_lock`.
#[derive(Debug)]
pub struct CRangeLock(*mut RangeHandle);

// SAFETY: the functions are for all threads of a process.
unsafe impl Send for CRangeLock {}
// SAFETY: as above.
unsafe impl Sync for CRangeLock {}

impl Default for CRangeLock {
    fn default() -> Self {
        let mut lock = ptr::null_mut();
        // SAFETY: the place is valid, and no options are the defaults.
        let error = unsafe { spanlock_range_lock_create(&raw mut lock, ptr::null()) };
        assert_eq!(error, 0);
        Self(lock)
    }
}

impl Drop for CRangeLock {
    fn drop(&mut self) {
        // SAFETY: made by `default`, and guards borrow it.
        let error = unsafe { spanlock_range_lock_destroy(self.0) };
        assert_eq!(error, 0, "nothing is held");
    }
}

/// Holds a range of a `spanlock_range_lock` until dropped.
#[derive(Debug)]
pub struct CHeld<'a> {
    lock: &'a CRangeLock,
    token: Token,
}

impl Drop for CHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the lock lives, and it has written the token.
        let error = unsafe { spanlock_range_lock_release(self.lock.0, &raw mut self.token) };
        debug_assert_eq!(error, 0);
    }
}

/// A range, which is not empty, as C has it.
#[inline(always)]
fn in_c(range: &Range<u64>) -> PositionRange {
    PositionRange {
        start: range.start,
        last: range.end - 1,
    }
}

type Acquire = unsafe extern "C" fn(*mut RangeHandle, PositionRange, *mut Token) -> c_int;

impl CRangeLock {
    #[inline(always)]
    fn acquire(&self, by: Acquire, range: &Range<u64>) -> Option<CHeld<'_>> {
        let mut token = Token { opaque: [0; 2] };
        // SAFETY: the lock lives, and the place is valid.
        let error = unsafe { by(self.0, in_c(range), &raw mut token) };
        (error == 0).then(|| CHeld { lock: self, token })
    }
}

impl Target for CRangeLock {
    const READERS: Readers = Readers::Share;
    type Read<'a> = CHeld<'a>;
    type Write<'a> = CHeld<'a>;

    #[inline(always)]
    fn read(&self, range: Range<u64>) -> CHeld<'_> {
        let held = self.acquire(spanlock_range_lock_read, &range);
        held.expect("it waits as long as it takes")
    }

    #[inline(always)]
    fn write(&self, range: Range<u64>) -> CHeld<'_> {
        let held = self.acquire(spanlock_range_lock_write, &range);
        held.expect("it waits as long as it takes")
    }

    fn try_write(&self, range: Range<u64>) -> Option<CHeld<'_>> {
        self.acquire(spanlock_range_lock_try_write, &range)
    }
}

/// A `spanlock_rwlock`, at the beginning of a cache line, as the others.
pub struct CRwLock(Box<CachePadded<UnsafeCell<RwLock>>>);

// SAFETY: the box moves and the lock does not, so any thread may own it.
unsafe impl Send for CRwLock {}
// SAFETY: the functions are for all threads of a process.
unsafe impl Sync for CRwLock {}

impl Default for CRwLock {
    fn default() -> Self {
        // SAFETY: as the static initialiser of C has it, all zero is a free lock.
        let lock = unsafe { MaybeUninit::zeroed().assume_init() };
        Self(Box::new(CachePadded::new(UnsafeCell::new(lock))))
    }
}

impl Drop for CRwLock {
    fn drop(&mut self) {
        // SAFETY: made by `default`, and guards borrow it.
        let error = unsafe { spanlock_rwlock_destroy(self.0.get()) };
        assert_eq!(error, 0, "nobody holds it");
    }
}

/// Calls a function that cannot fail here: no thread holds the lock already, or releases what it does not hold.
macro_rules! call {
    ($function:ident, $lock:expr) => {{
        // SAFETY: made by `default`, and does not move.
        let error = unsafe { $function($lock.0.get()) };
        assert_eq!(error, 0);
    }};
}

impl Calls for CRwLock {
    #[inline]
    fn read_lock(&self) {
        call!(spanlock_rwlock_read_lock, self);
    }

    #[inline]
    fn read_unlock(&self) {
        call!(spanlock_rwlock_read_unlock, self);
    }

    #[inline]
    fn write_lock(&self) {
        call!(spanlock_rwlock_write_lock, self);
    }

    #[inline]
    fn write_unlock(&self) {
        call!(spanlock_rwlock_write_unlock, self);
    }
}
