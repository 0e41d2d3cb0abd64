//! The library's own locks, by the calls of its face for C. They are no part of Rust's: each acquisition is a call.

use super::called::Calls;
use super::{GivesUp, Readers, Target};
use crossbeam_utils::CachePadded;
use libc::{CLOCK_MONOTONIC, timespec};
use prim::clock::Duration;
use spanlock_capi::range_lock::{PositionRange, RangeLock};
use spanlock_capi::range_lock::{
    RangeToken, spanlock_range_lock_create, spanlock_range_lock_destroy, spanlock_range_lock_read,
    spanlock_range_lock_release, spanlock_range_lock_timed_read, spanlock_range_lock_timed_write,
    spanlock_range_lock_try_read, spanlock_range_lock_try_write, spanlock_range_lock_write,
};
use spanlock_capi::rwlock::{
    RwLock, spanlock_rwlock_destroy, spanlock_rwlock_read_lock, spanlock_rwlock_read_unlock,
    spanlock_rwlock_write_lock, spanlock_rwlock_write_unlock,
};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// A `spanlock_range_lock`.
#[derive(Debug)]
pub struct CRangeLock(*mut RangeLock);

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
    token: RangeToken,
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

/// That long from now, as C has it.
fn deadline(limit: Duration) -> timespec {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is valid.
    unsafe { libc::clock_gettime(CLOCK_MONOTONIC, &raw mut now) };
    let nanoseconds = now.tv_nsec + i64::from(limit.subsec_nanos());
    timespec {
        tv_sec: now.tv_sec + limit.as_secs() as i64 + nanoseconds / 1_000_000_000,
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}

type Acquire = unsafe extern "C" fn(*mut RangeLock, PositionRange, *mut RangeToken) -> c_int;

type Timed = unsafe extern "C" fn(
    *mut RangeLock,
    PositionRange,
    c_int,
    *const timespec,
    *mut RangeToken,
) -> c_int;

impl CRangeLock {
    #[inline(always)]
    fn acquire(&self, by: Acquire, range: &Range<u64>) -> Option<CHeld<'_>> {
        let mut token = RangeToken { opaque: [0; 2] };
        // SAFETY: the lock lives, and the place is valid.
        let error = unsafe { by(self.0, in_c(range), &raw mut token) };
        (error == 0).then(|| CHeld { lock: self, token })
    }

    fn acquire_within(
        &self,
        (tries, timed): (Acquire, Timed),
        range: &Range<u64>,
        limit: Duration,
    ) -> Option<CHeld<'_>> {
        if limit.is_zero() {
            return self.acquire(tries, range);
        }
        let mut token = RangeToken { opaque: [0; 2] };
        let (range, deadline) = (in_c(range), deadline(limit));
        let place = &raw mut token;
        // SAFETY: the lock lives, and the places are valid.
        let error = unsafe { timed(self.0, range, CLOCK_MONOTONIC, &raw const deadline, place) };
        (error == 0).then(|| CHeld { lock: self, token })
    }
}

impl Target for CRangeLock {
    const READERS: Readers = Readers::Share;
    const GIVES_UP: GivesUp = GivesUp::InTime;
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

    fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<CHeld<'_>> {
        let by = (
            spanlock_range_lock_try_read as Acquire,
            spanlock_range_lock_timed_read as Timed,
        );
        self.acquire_within(by, &range, limit)
    }

    fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<CHeld<'_>> {
        let by = (
            spanlock_range_lock_try_write as Acquire,
            spanlock_range_lock_timed_write as Timed,
        );
        self.acquire_within(by, &range, limit)
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
