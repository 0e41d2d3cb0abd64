//! What the library keeps for each thread: what it holds.
//!
//! It is a thread-local without a destructor, because a program may use locks in destructors of its own. Memory for
//! what did not fit is freed by a thread-specific key. Destructors of the program's may run later than that, so the
//! key's runs again, as often as POSIX promises, while the thread holds something.

use super::thread_ranges::Holds;
use super::thread_rwlocks::Locks;
use libc::{c_void, pthread_key_t};
use prim::atomic::{AtomicU64, Ordering};
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;

/// What a thread holds.
pub(crate) struct Held {
    pub(crate) ranges: Holds,
    pub(crate) locks: Locks,
}

thread_local! {
    static HELD: ManuallyDrop<UnsafeCell<Held>> = const {
        ManuallyDrop::new(UnsafeCell::new(Held {
            ranges: Holds::new(),
            locks: Locks::new(),
        }))
    };
}

/// What the running thread holds.
///
/// # Safety
/// The caller uses it within a function that C calls, and calls nothing meanwhile that uses it as well. (None of them
/// calls the program's code, and signal handlers must not call them.)
#[inline(always)] // A closure for all that a function does with it would be too large for the compiler to be inlined.
pub(crate) unsafe fn held<'a>() -> &'a mut Held {
    let held = HELD.with(|held| held.get());
    // SAFETY: this thread runs, so its thread-locals live, and the caller promises that nobody else uses it.
    unsafe { &mut *held }
}

/// Has the running thread free the memory of its tables when it exits.
#[cold]
pub(crate) fn free_at_exit() {
    if let Some(key) = key() {
        let held = HELD.with(|held| held.get());
        // SAFETY: a published key is never deleted. If this fails, the memory is not freed, and nothing else changes.
        unsafe { libc::pthread_setspecific(key, held.cast::<c_void>()) };
    }
}

/// The key whose destructor frees the tables.
fn key() -> Option<pthread_key_t> {
    /// One more than the key; zero until there is one.
    static KEY: AtomicU64 = AtomicU64::new(0);
    let known = KEY.load(Ordering::Relaxed);
    if known != 0 {
        return Some((known - 1) as pthread_key_t);
    }
    let mut fresh: pthread_key_t = 0;
    // SAFETY: `fresh` is live during the call, and the destructor may run on any thread.
    if unsafe { libc::pthread_key_create(&raw mut fresh, Some(on_exit)) } != 0 {
        return None;
    }
    let published = KEY.compare_exchange(
        0,
        u64::from(fresh) + 1,
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    Some(match published {
        Ok(_) => fresh,
        Err(theirs) => {
            // SAFETY: the key was made just above, and no other thread knows it.
            unsafe { libc::pthread_key_delete(fresh) };
            (theirs - 1) as pthread_key_t
        }
    })
}

/// Frees the tables of a thread that exits, unless it holds something that a destructor of the program may yet release.
/// What is held after the last time stays locked.
unsafe extern "C" fn on_exit(_: *mut c_void) {
    // SAFETY: C calls this, and nothing below uses it.
    let Held { ranges, locks } = unsafe { held() };
    if ranges.is_empty() && locks.is_empty() {
        ranges.clear();
        locks.clear();
    } else {
        free_at_exit();
    }
}
