//! Reader-writer locks.

use crate::answer::{answer, ensure};
use crate::memory::given;
pub use crate::rwlock_state::RwLock;
use crate::rwlock_state::{Read, Write};
use crate::time;
use libc::{EINVAL, c_int, timespec};
use spanlock::range::raw::Wait;

/// Readers give way to writers that wait. A thread that reads must not read the same lock again.
pub const SPANLOCK_RWLOCK_WRITERS: u32 = 0;

/// Readers do not wait for writers that wait. A thread that reads may read the same lock again, and readers that never
/// pause may keep writers out.
pub const SPANLOCK_RWLOCK_READERS: u32 = 1;

/// Makes memory a free lock of a kind, `SPANLOCK_RWLOCK_WRITERS` or `SPANLOCK_RWLOCK_READERS`. Memory that is all zero
/// is a free lock of the first kind without this.
///
/// EINVAL: null, memory that is not aligned, or another kind.
///
/// # Safety
/// The pointer is null, or valid for a lock; nobody uses the memory as a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_init(lock: *mut RwLock, kind: u32) -> c_int {
    if lock.is_null() || !lock.is_aligned() {
        return EINVAL;
    }
    answer(|| {
        let fresh = RwLock::new(kind)?;
        // SAFETY: valid and aligned, and what it held before needs no destructor.
        unsafe { lock.write(fresh) };
        Ok(())
    })
}

/// Ends a lock. It is not a lock any more, until `spanlock_rwlock_init` makes it one again. EBUSY: it is held; nothing
/// is done.
///
/// # Safety
/// The pointer is null or leads to a lock that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_destroy(lock: *mut RwLock) -> c_int {
    answer(|| {
        ensure(!lock.is_null(), EINVAL)?;
        // SAFETY: the caller's promise.
        unsafe { RwLock::end(lock) }
    })
}

/// Locks with other readers; blocks while a writer holds the lock.
///
/// EDEADLK: the thread writes it.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_read_lock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.lock::<Read>(Wait::Forever))
}

/// Locks with other readers, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_try_read_lock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.lock::<Read>(Wait::Never))
}

/// As `spanlock_rwlock_read_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// The pointers are null or valid.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_timed_read_lock(
    lock: *mut RwLock,
    clock: c_int,
    deadline: *const timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let lock = unsafe { given(lock) }?;
        // SAFETY: the caller's promise.
        lock.lock::<Read>(unsafe { time::until(clock, deadline) }?)
    })
}

/// A reader leaves. EPERM: the running thread does not read the lock. The thread that locked is the one to unlock.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_read_unlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.unlock::<Read>())
}

/// Locks alone; blocks while others hold the lock.
///
/// EDEADLK: the thread holds it already.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_write_lock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.lock::<Write>(Wait::Forever))
}

/// Locks alone, if that is possible at once. EBUSY: it is not.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_try_write_lock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.lock::<Write>(Wait::Never))
}

/// As `spanlock_rwlock_write_lock`, until a time on CLOCK_REALTIME or CLOCK_MONOTONIC. ETIMEDOUT: it has passed.
///
/// # Safety
/// The pointers are null or valid.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_timed_write_lock(
    lock: *mut RwLock,
    clock: c_int,
    deadline: *const timespec,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let lock = unsafe { given(lock) }?;
        // SAFETY: the caller's promise.
        lock.lock::<Write>(unsafe { time::until(clock, deadline) }?)
    })
}

/// The writer leaves. EPERM: it is not the running thread.
///
/// # Safety
/// The pointer is null or leads to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spanlock_rwlock_write_unlock(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller's promise.
    answer(|| unsafe { given(lock) }?.unlock::<Write>())
}
