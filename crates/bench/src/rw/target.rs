//! What a lock under measurement offers, the public peers, and the floors.

use crate::target::{Null, NullGuard};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use lock_api::RawRwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// A reader-writer lock under measurement, by the calls that its users write.
///
/// Workloads are compiled for each, so that there is no call through a pointer between them; and always inlined, since
/// whether what users call is inlined is not to be decided here.
pub trait RwTarget: Send + Sync {
    /// Reads until dropped.
    type Read<'a>
    where
        Self: 'a;

    /// Writes until dropped.
    type Write<'a>
    where
        Self: 'a;

    /// Acquires for reading; waits as long as it takes.
    fn read(&self) -> Self::Read<'_>;

    /// Acquires for writing; waits as long as it takes.
    fn write(&self) -> Self::Write<'_>;
}

/// Our locks, and `parking_lot`'s.
impl<R: RawRwLock + Send + Sync> RwTarget for lock_api::RwLock<R, ()> {
    type Read<'a>
        = lock_api::RwLockReadGuard<'a, R, ()>
    where
        Self: 'a;
    type Write<'a>
        = lock_api::RwLockWriteGuard<'a, R, ()>
    where
        Self: 'a;

    #[inline(always)]
    fn read(&self) -> Self::Read<'_> {
        lock_api::RwLock::read(self)
    }

    #[inline(always)]
    fn write(&self) -> Self::Write<'_> {
        lock_api::RwLock::write(self)
    }
}

impl RwTarget for std::sync::RwLock<()> {
    type Read<'a> = RwLockReadGuard<'a, ()>;
    type Write<'a> = RwLockWriteGuard<'a, ()>;

    #[inline(always)]
    fn read(&self) -> Self::Read<'_> {
        std::sync::RwLock::read(self).unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn write(&self) -> Self::Write<'_> {
        std::sync::RwLock::write(self).unwrap_or_else(PoisonError::into_inner)
    }
}

impl RwTarget for ShardedLock<()> {
    type Read<'a> = ShardedLockReadGuard<'a, ()>;
    type Write<'a> = ShardedLockWriteGuard<'a, ()>;

    #[inline(always)]
    fn read(&self) -> Self::Read<'_> {
        ShardedLock::read(self).unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn write(&self) -> Self::Write<'_> {
        ShardedLock::write(self).unwrap_or_else(PoisonError::into_inner)
    }
}

impl RwTarget for Null {
    type Read<'a> = NullGuard;
    type Write<'a> = NullGuard;

    #[inline(always)]
    fn read(&self) -> NullGuard {
        NullGuard
    }

    #[inline(always)]
    fn write(&self) -> NullGuard {
        NullGuard
    }
}

/// A lock that is acquired and released by two calls without a proof, as in C. Writes are as reads, unless it says
/// otherwise.
pub trait Calls: Send + Sync {
    /// Acquires for reading.
    fn read_lock(&self);
    /// Releases what the calling thread reads.
    fn read_unlock(&self);
    /// Acquires for writing.
    #[inline]
    fn write_lock(&self) {
        self.read_lock();
    }
    /// Releases what the calling thread writes.
    #[inline]
    fn write_unlock(&self) {
        self.read_unlock();
    }
}

/// A lock of [`Calls`].
#[derive(Debug, Default)]
pub struct Called<C>(pub C);

/// Reads until dropped.
#[derive(Debug)]
pub struct CalledRead<'a, C: Calls>(&'a C);

/// Writes until dropped.
#[derive(Debug)]
pub struct CalledWrite<'a, C: Calls>(&'a C);

impl<C: Calls> Drop for CalledRead<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.0.read_unlock();
    }
}

impl<C: Calls> Drop for CalledWrite<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.0.write_unlock();
    }
}

impl<C: Calls> RwTarget for Called<C> {
    type Read<'a>
        = CalledRead<'a, C>
    where
        C: 'a;
    type Write<'a>
        = CalledWrite<'a, C>
    where
        C: 'a;

    #[inline(always)]
    fn read(&self) -> CalledRead<'_, C> {
        self.0.read_lock();
        CalledRead(&self.0)
    }

    #[inline(always)]
    fn write(&self) -> CalledWrite<'_, C> {
        self.0.write_lock();
        CalledWrite(&self.0)
    }
}

#[cfg(unix)]
pub use pthread::Pthread;

#[cfg(unix)]
mod pthread {
    use super::Calls;
    use crossbeam_utils::CachePadded;
    use std::cell::UnsafeCell;

    /// The C library's lock. At the beginning of a cache line, as the others: else whether it lies across two depends on what
    /// was allocated before it.
    #[derive(Debug)]
    pub struct Pthread(Box<CachePadded<UnsafeCell<libc::pthread_rwlock_t>>>);

    impl Default for Pthread {
        fn default() -> Self {
            let lock = UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER);
            Self(Box::new(CachePadded::new(lock)))
        }
    }

    // SAFETY: the lock is for all threads of a process, and stays where it is.
    unsafe impl Send for Pthread {}
    // SAFETY: as above.
    unsafe impl Sync for Pthread {}

    impl Drop for Pthread {
        fn drop(&mut self) {
            // SAFETY: made by `default`, and nobody holds it: guards borrow it.
            unsafe { libc::pthread_rwlock_destroy(self.0.get()) };
        }
    }

    impl Calls for Pthread {
        #[inline]
        fn read_lock(&self) {
            // SAFETY: made by `default`, and does not move.
            let error = unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
            assert_eq!(error, 0, "no thread writes already, and readers are few");
        }

        #[inline]
        fn read_unlock(&self) {
            // SAFETY: as above.
            unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
        }

        #[inline]
        fn write_lock(&self) {
            // SAFETY: as above.
            let error = unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
            assert_eq!(error, 0, "no thread holds it already");
        }
    }
}

/// The least that a lock does whose readers do not meet: a compare-exchange, and a store, on a line of the thread's
/// own. Keeps nobody out.
#[derive(Debug, Default)]
pub struct PrivateLine;

#[derive(Debug)]
#[repr(align(128))] // two lines, because processors fetch pairs
struct Line(AtomicBool);

thread_local! {
    static LINE: Line = const { Line(AtomicBool::new(false)) };
}

impl Calls for PrivateLine {
    #[inline]
    fn read_lock(&self) {
        LINE.with(|Line(taken)| {
            let result = taken.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed);
            debug_assert!(result.is_ok(), "a thread holds one at a time");
        });
    }

    #[inline]
    fn read_unlock(&self) {
        LINE.with(|Line(taken)| taken.store(false, Ordering::Release));
    }
}

/// The least that a lock does whose readers are counted in one place: to add one, and to take it away. Keeps nobody
/// out.
#[derive(Debug, Default)]
pub struct SharedCount(AtomicU32);

impl Calls for SharedCount {
    #[inline]
    fn read_lock(&self) {
        self.0.fetch_add(1, Ordering::Acquire);
    }

    #[inline]
    fn read_unlock(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
