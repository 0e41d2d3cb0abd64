//! A reader-writer lock in the place of a range lock.

use crate::range::Span;
use crate::range::raw::{Ask, RawRangeLock, RawRangeMutex, Wait};
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use prim::clock::Instant;
use std::fmt;

/// A reader-writer lock as a range lock: it takes every range for the whole.
///
/// ```
/// use spanlock::range::RangeLock;
/// use spanlock::rw::{FutexRwLock, WholeRange};
///
/// let lock = RangeLock::from_raw(WholeRange::new(<FutexRwLock>::new()));
/// let reader = lock.read(0..10);
/// assert!(lock.try_read(5..20).is_some());
/// assert!(lock.try_write(100..200).is_none());
/// # drop(reader);
/// ```
///
/// # When not to use it
/// When threads write different ranges: they exclude each other. It serves resources that are written as a whole, and
/// programs that compare range locks with one lock.
///
/// # Cost, fairness, blocking, panics, misuse
/// Those of the reader-writer lock. A thread that holds a range and asks for another asks for the whole again.
pub struct WholeRange<R>(R);

impl<R> WholeRange<R> {
    /// A range lock over `lock`.
    #[must_use]
    pub const fn new(lock: R) -> Self {
        Self(lock)
    }
}

impl<R> fmt::Debug for WholeRange<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WholeRange")
    }
}

/// How a [`WholeRange`] is held.
pub enum WholeToken<R: RawRwLock> {
    /// With other readers.
    Shared(R::SharedGuard),
    /// Alone.
    Exclusive(R::ExclusiveGuard),
}

impl<R: RawRwLock> fmt::Debug for WholeToken<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

/// An acquisition in a mode, by the forms that the lock has of it.
macro_rules! acquisition {
    ($lock:ident as $Mode:ident: $try_lock:ident, $try_lock_until:ident) => {
        #[track_caller]
        fn $lock(&self, ask: Ask<'_, WholeToken<R>>) -> Option<WholeToken<R>> {
            let guard = match ask.wait {
                Wait::Forever => Some(self.0.$lock()),
                Wait::Never => self.0.$try_lock(),
                Wait::Until(deadline) => self.0.$try_lock_until(deadline),
            };
            guard.map(WholeToken::$Mode)
        }
    };
}

// SAFETY: a holder in exclusive mode excludes all others, whatever their ranges, and the lock orders its holders.
unsafe impl<R> RawRangeMutex for WholeRange<R>
where
    R: RawRwLockDowngrade + RawRwLockTimed<Instant = Instant>,
{
    type Token = WholeToken<R>;

    acquisition!(lock_exclusive as Exclusive: try_lock_exclusive, try_lock_exclusive_until);

    unsafe fn unlock(&self, token: WholeToken<R>) {
        match token {
            // SAFETY: the guard came from this lock, on this thread, as the caller promises of the token.
            WholeToken::Shared(guard) => unsafe { self.0.unlock_shared(guard) },
            // SAFETY: the same.
            WholeToken::Exclusive(guard) => unsafe { self.0.unlock_exclusive(guard) },
        }
    }

    fn granule(&self, _: Span) -> Span {
        Span::ALL
    }
}

// SAFETY: as above. Holders in shared mode are inside together, and not beside one in exclusive mode.
unsafe impl<R> RawRangeLock for WholeRange<R>
where
    R: RawRwLockDowngrade + RawRwLockTimed<Instant = Instant>,
{
    acquisition!(lock_shared as Shared: try_lock_shared, try_lock_shared_until);

    unsafe fn downgrade(&self, token: WholeToken<R>) -> WholeToken<R> {
        match token {
            // SAFETY: the guard came from this lock, on this thread, as the caller promises of the token.
            WholeToken::Exclusive(guard) => WholeToken::Shared(unsafe { self.0.downgrade(guard) }),
            shared @ WholeToken::Shared(_) => shared,
        }
    }
}
