//! Reading again while a writer waits, and releases that let those who wait go first.

use super::futex::ReadersFirst;
use super::raw::ThreadBound;
use super::raw::{Token, granted};
use super::sending::{ForeignRelease, SendGuards, SentToken};
use super::watch::{self, Mode};
use super::{
    Bravo, ForTasks, FutexRwLock, PhaseFairQueue, PhaseFairTicket, Policy, Preference, Way,
};
use crate::wait::Wait;
use lock_api::{RawRwLock, RawRwLockFair, RwLock, RwLockReadGuard};

/// A raw lock that a thread which reads may read again, although a writer waits. (`lock_api` had a trait of this name
/// before 0.5.)
///
/// [`FutexRwLock`] has it, with either preference, and [`Bravo`], [`SendGuards`] and [`ForTasks`] over it. The others
/// cannot: `docs/rwlocks.md` says why.
///
/// # Safety
/// As [`RawRwLock`]. While a reader is inside, no reader by these methods waits for a writer.
pub unsafe trait RawRwLockRecursive: RawRwLock {
    /// Acquires it to read. Waits for writers that are inside, and for none that waits.
    #[track_caller]
    fn lock_shared_recursive(&self) -> Self::SharedGuard;

    /// Acquires it to read, if that takes no waiting.
    fn try_lock_shared_recursive(&self) -> Option<Self::SharedGuard>;
}

/// The methods of a [`lock_api::RwLock`] for threads that may read it already.
///
/// ```
/// use spanlock::rw::{ReadRecursive, RwLock};
///
/// let config = RwLock::new(5);
/// let outer = config.read();
/// // Deep within a call, that does not know: a writer that waits by now does not make this hang.
/// let inner = config.read_recursive();
/// assert_eq!(*outer, *inner);
/// ```
///
/// # When not to use it
/// Where the thread does not read the lock yet: readers by this method starve writers if they keep coming.
pub trait ReadRecursive {
    /// The raw lock.
    type Raw: RawRwLockRecursive;
    /// What it protects.
    type Value: ?Sized;

    /// Reads, whether this thread reads already or not.
    ///
    /// # Panics
    /// In debug builds, when this thread writes.
    #[track_caller]
    fn read_recursive(&self) -> RwLockReadGuard<'_, Self::Raw, Self::Value>;

    /// As [`read_recursive`](Self::read_recursive), but `None` if it would block.
    fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, Self::Raw, Self::Value>>;
}

impl<R: RawRwLockRecursive, T: ?Sized> ReadRecursive for RwLock<R, T> {
    type Raw = R;
    type Value = T;

    fn read_recursive(&self) -> RwLockReadGuard<'_, R, T> {
        // SAFETY: the raw lock is acquired and not released.
        let guard = unsafe { self.raw() }.lock_shared_recursive();
        // SAFETY: that acquisition, which no other guard has.
        unsafe { self.make_read_guard_unchecked(guard) }
    }

    fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, R, T>> {
        // SAFETY: the raw lock is acquired and not released.
        let guard = unsafe { self.raw() }.try_lock_shared_recursive()?;
        // SAFETY: that acquisition, which no other guard has.
        Some(unsafe { self.make_read_guard_unchecked(guard) })
    }
}

// SAFETY: the same word, asked as one that prefers readers: then no reader waits for a mark of a writer.
unsafe impl<P: Preference> RawRwLockRecursive for FutexRwLock<P> {
    #[track_caller]
    fn lock_shared_recursive(&self) -> ThreadBound {
        let lock = self.preferring::<ReadersFirst>();
        watch::acquire(self, Mode::Read, || granted(lock.read(Wait::Forever)))
    }

    fn try_lock_shared_recursive(&self) -> Option<ThreadBound> {
        let lock = self.preferring::<ReadersFirst>();
        watch::attempt(self, Mode::Read, || lock.read(Wait::Never))
    }
}

// SAFETY: a reader waits for the path for a bounded time, and then asks the underlying lock, where no writer that waits
// for a fast reader is inside.
unsafe impl<L: RawRwLockRecursive, P: Policy> RawRwLockRecursive for Bravo<L, P> {
    #[track_caller]
    fn lock_shared_recursive(&self) -> Self::SharedGuard {
        let under = |raw: &L, _| Some(raw.lock_shared_recursive());
        watch::acquire(self, Mode::Read, || {
            granted(self.read_by(Wait::Forever, under))
        })
    }

    fn try_lock_shared_recursive(&self) -> Option<Self::SharedGuard> {
        let under = |raw: &L, _| raw.try_lock_shared_recursive();
        watch::attempt(self, Mode::Read, || self.read_by(Wait::Never, under))
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockRecursive> RawRwLockRecursive for SendGuards<L> {
    fn lock_shared_recursive(&self) -> SentToken<L::SharedGuard> {
        self.sent(L::lock_shared_recursive)
    }

    fn try_lock_shared_recursive(&self) -> Option<SentToken<L::SharedGuard>> {
        self.try_sent(L::try_lock_shared_recursive)
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockRecursive> RawRwLockRecursive for ForTasks<L> {
    fn lock_shared_recursive(&self) -> Self::SharedGuard {
        self.inside().lock_shared_recursive()
    }

    fn try_lock_shared_recursive(&self) -> Option<Self::SharedGuard> {
        self.tried(SendGuards::try_lock_shared_recursive)
    }
}

/// Each release lets those who wait go first: the phases, and the tickets or the queue, have an order, and who comes
/// later is behind them. Only timed requests wait without a place in it.
macro_rules! fair_by_itself {
    ($($lock:ty),+) => {$(
        // SAFETY: as the other releases.
        unsafe impl RawRwLockFair for $lock {
            #[inline]
            unsafe fn unlock_shared_fair(&self, guard: Self::SharedGuard) {
                // SAFETY: the caller's promise.
                unsafe { self.unlock_shared(guard) };
            }

            #[inline]
            unsafe fn unlock_exclusive_fair(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: the caller's promise.
                unsafe { self.unlock_exclusive(guard) };
            }
        }
    )+};
}

fair_by_itself!(PhaseFairTicket, PhaseFairQueue);

// SAFETY: as the other releases.
unsafe impl<L: RawRwLockFair, P: Policy> RawRwLockFair for Bravo<L, P> {
    unsafe fn unlock_shared_fair(&self, token: Self::SharedGuard) {
        watch::leave(self, Mode::Read);
        match token.what() {
            // A writer that waits for it keeps newcomers out.
            bias @ Way::Bias(_) => self.leave_shared(Token::new(bias)),
            // SAFETY: the caller promises that the token is this lock's, so the guard in it is the underlying lock's.
            Way::Under(guard) => unsafe { self.underlying().unlock_shared_fair(guard) },
        }
    }

    unsafe fn unlock_exclusive_fair(&self, token: Self::ExclusiveGuard) {
        watch::leave(self, Mode::Write);
        let guard = self.leave(token);
        // SAFETY: the same.
        unsafe { self.underlying().unlock_exclusive_fair(guard) };
    }
}

// SAFETY: as the lock inside.
unsafe impl<L: ForeignRelease + RawRwLockFair> RawRwLockFair for SendGuards<L> {
    unsafe fn unlock_shared_fair(&self, guard: SentToken<L::SharedGuard>) {
        // SAFETY: the caller's promise, and any thread may release it.
        self.leave(guard, |lock, guard| unsafe {
            lock.unlock_shared_fair(guard)
        });
    }

    unsafe fn unlock_exclusive_fair(&self, guard: SentToken<L::ExclusiveGuard>) {
        // SAFETY: the same.
        self.leave(guard, |lock, guard| unsafe {
            lock.unlock_exclusive_fair(guard)
        });
    }
}
