//! Locks that are acquired and released by calls, as in C; and the floors: the least that any lock does.

use super::{Readers, Target};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A lock that is acquired and released by two calls without a proof, as in C. Writes are as reads, unless it says
/// otherwise.
pub trait Calls: Send + Sync {
    /// How it treats readers.
    const READERS: Readers = Readers::Share;

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

impl<C: Calls> Target for Called<C> {
    const READERS: Readers = C::READERS;
    type Read<'a>
        = CalledRead<'a, C>
    where
        C: 'a;
    type Write<'a>
        = CalledWrite<'a, C>
    where
        C: 'a;

    #[inline(always)]
    fn read(&self, _: Range<u64>) -> CalledRead<'_, C> {
        self.0.read_lock();
        CalledRead(&self.0)
    }

    #[inline(always)]
    fn write(&self, _: Range<u64>) -> CalledWrite<'_, C> {
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

    /// The C library's lock. At the beginning of a cache line, as the others: else whether it lies across two depends
    /// on what was allocated before it.
    #[derive(Debug)]
    pub struct Pthread(Box<CachePadded<UnsafeCell<libc::pthread_rwlock_t>>>);

    impl Default for Pthread {
        fn default() -> Self {
            let lock = UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER);
            Self(Box::new(CachePadded::new(lock)))
        }
    }

    // SAFETY: the box moves and the lock does not, so any thread may own it.
    unsafe impl Send for Pthread {}
    // SAFETY: threads share the lock by the C library's calls alone, which are for all threads of a process.
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
            // SAFETY: made by `default`, and held by this thread, whose guard calls this.
            unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
        }

        #[inline]
        fn write_lock(&self) {
            // SAFETY: made by `default`, and does not move.
            let error = unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
            assert_eq!(error, 0, "no thread holds it already");
        }
    }
}

/// The least that any lock does, on a line of its own: one compare-exchange, and `RELEASES` more to release, or else
/// a store. It is a spin lock for the whole resource.
#[derive(Debug, Default)]
#[repr(align(128))] // two lines, because processors fetch pairs
pub struct Floor<const RELEASES: usize>(AtomicBool);

impl<const RELEASES: usize> Calls for Floor<RELEASES> {
    const READERS: Readers = Readers::Exclude;

    #[inline]
    fn read_lock(&self) {
        let take = || {
            let taken = &self.0;
            taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
        };
        while take().is_err() {
            std::thread::yield_now();
        }
    }

    #[inline]
    fn read_unlock(&self) {
        let Self(taken) = self;
        if RELEASES == 0 {
            taken.store(false, Ordering::Release);
        } else {
            let released =
                taken.compare_exchange(true, false, Ordering::Release, Ordering::Relaxed);
            debug_assert!(released.is_ok(), "released by its holder alone");
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
