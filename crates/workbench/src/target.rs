//! A lock under measurement. A reader-writer lock is a range lock that takes every range for the whole resource.
//! Peers that are on hardware only are in `bench`.

use lock_api::{RawRwLock, RwLockReadGuard, RwLockWriteGuard};
use prim::clock::Duration;
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{LockGuard, RangeLock, RangeMutex, ReadGuard, WriteGuard};
use std::ops::Range;

/// The range for which reader-writer locks are acquired.
pub const WHOLE: Range<u64> = 0..u64::MAX;

/// How a lock treats readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Lets them in together.
    Share,
    /// Treats them as writers: it knows no other mode.
    Exclude,
}

/// How a lock serves a request that must not wait as long as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivesUp {
    /// Nothing: all requests wait as long as it takes.
    Never,
    /// It can try. It knows no time, and any limit is none at all.
    AtOnce,
    /// It can try, and wait for a limited time.
    InTime,
}

/// A lock under measurement, by the calls that its users write.
///
/// Workloads are compiled for each, so that there is no call through a pointer between them; and reader-writer locks
/// are always inlined, since whether what users call is inlined is not to be decided here.
pub trait Target: Send + Sync {
    /// How it treats readers.
    const READERS: Readers;

    /// Which requests may give up.
    const GIVES_UP: GivesUp = GivesUp::Never;

    /// Holds a range for reading until dropped.
    type Read<'a>
    where
        Self: 'a;

    /// Holds a range for writing until dropped.
    type Write<'a>
    where
        Self: 'a;

    /// Acquires a range, which is not empty, for reading; waits as long as it takes.
    fn read(&self, range: Range<u64>) -> Self::Read<'_>;

    /// Acquires a range, which is not empty, for writing; waits as long as it takes.
    fn write(&self, range: Range<u64>) -> Self::Write<'_>;

    /// As [`read`](Self::read), but gives up after `limit`, as far as [`GIVES_UP`](Self::GIVES_UP) says. A limit of
    /// zero is a try.
    fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<Self::Read<'_>> {
        let _ = limit;
        Some(self.read(range))
    }

    /// As [`write`](Self::write), but gives up after `limit`, as far as [`GIVES_UP`](Self::GIVES_UP) says. A limit of
    /// zero is a try.
    fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<Self::Write<'_>> {
        let _ = limit;
        Some(self.write(range))
    }

    /// The holders and the waiters, for people; `None` if the lock cannot name them.
    fn snapshot(&self) -> Option<String> {
        None
    }
}

/// A range lock of the library, by its own calls: for reading and for writing each a guard, and how it is acquired
/// without a limit, by a try, and within a limit.
macro_rules! library {
    (
        $lock:ident over $raw:ident, $readers:expr,
        read: $read_guard:ident, $read:ident $try_read:ident $read_for:ident,
        write: $write_guard:ident, $write:ident $try_write:ident $write_for:ident
    ) => {
        impl<L: $raw + Send + Sync> Target for $lock<L> {
            const READERS: Readers = $readers;
            const GIVES_UP: GivesUp = GivesUp::InTime;
            type Read<'a>
                = $read_guard<'a, L>
            where
                Self: 'a;
            type Write<'a>
                = $write_guard<'a, L>
            where
                Self: 'a;

            #[inline]
            fn read(&self, range: Range<u64>) -> Self::Read<'_> {
                $lock::$read(self, range)
            }

            #[inline]
            fn write(&self, range: Range<u64>) -> Self::Write<'_> {
                $lock::$write(self, range)
            }

            fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<Self::Read<'_>> {
                match limit {
                    Duration::ZERO => self.$try_read(range),
                    limit => self.$read_for(range, limit),
                }
            }

            fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<Self::Write<'_>> {
                match limit {
                    Duration::ZERO => self.$try_write(range),
                    limit => self.$write_for(range, limit),
                }
            }

            fn snapshot(&self) -> Option<String> {
                Some(self.raw().snapshot()?.to_string())
            }
        }
    };
}

library!(RangeLock over RawRangeLock, Readers::Share,
    read: ReadGuard, read try_read try_read_for,
    write: WriteGuard, write try_write try_write_for);
library!(RangeMutex over RawRangeMutex, Readers::Exclude,
    read: LockGuard, lock try_lock try_lock_for,
    write: LockGuard, lock try_lock try_lock_for);

/// Our reader-writer locks, and `parking_lot`'s.
impl<R: RawRwLock + Send + Sync> Target for lock_api::RwLock<R, ()> {
    const READERS: Readers = Readers::Share;
    type Read<'a>
        = RwLockReadGuard<'a, R, ()>
    where
        Self: 'a;
    type Write<'a>
        = RwLockWriteGuard<'a, R, ()>
    where
        Self: 'a;

    #[inline(always)]
    fn read(&self, _: Range<u64>) -> Self::Read<'_> {
        lock_api::RwLock::read(self)
    }

    #[inline(always)]
    fn write(&self, _: Range<u64>) -> Self::Write<'_> {
        lock_api::RwLock::write(self)
    }
}

/// No lock at all.
#[derive(Debug)]
pub struct Null;

/// Does not hold anything, and is dropped all the same.
#[derive(Debug)]
pub struct NullGuard;

impl Drop for NullGuard {
    #[inline]
    fn drop(&mut self) {}
}

impl Target for Null {
    const READERS: Readers = Readers::Share;
    type Read<'a> = NullGuard;
    type Write<'a> = NullGuard;

    #[inline(always)]
    fn read(&self, _: Range<u64>) -> NullGuard {
        NullGuard
    }

    #[inline(always)]
    fn write(&self, _: Range<u64>) -> NullGuard {
        NullGuard
    }
}
