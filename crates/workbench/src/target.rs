//! A lock under measurement. A reader-writer lock is a range lock that takes every range for the whole resource.
//! Peers that are on hardware only are in `bench`.
//!
//! Workloads take an [`AnyLock`], so that each is compiled once: of all locks each acquisition is a call through a
//! pointer, and so is each release.

use crate::crew::{Signal, Timekeeper};
use lock_api::{RawRwLock, RwLockReadGuard, RwLockWriteGuard};
use smallbox::{SmallBox, smallbox};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{LockGuard, RangeLock, RangeMutex, ReadGuard, WriteGuard};
use std::hint::black_box;
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

/// A lock under measurement, by the calls that its users write.
///
/// What one thread pays is measured by these. Reader-writer locks are always inlined, since whether what users call is
/// inlined is not to be decided here.
pub trait Target: Send + Sync {
    /// How it treats readers.
    const READERS: Readers;

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

    /// Acquires a range, which is not empty, for writing, unless that takes waiting; a lock that cannot try waits.
    fn try_write(&self, range: Range<u64>) -> Option<Self::Write<'_>> {
        Some(self.write(range))
    }
}

/// A lock of any type under measurement.
pub trait AnyLock: Send + Sync {
    /// How it treats readers.
    fn readers(&self) -> Readers;

    /// Acquires a range, which is not empty, for reading; waits as long as it takes.
    fn read(&self, range: Range<u64>) -> Held<'_>;

    /// Acquires a range, which is not empty, for writing; waits as long as it takes.
    fn write(&self, range: Range<u64>) -> Held<'_>;

    /// [`Target::try_write`].
    fn try_write(&self, range: Range<u64>) -> Option<Held<'_>>;

    /// Acquires everything for reading and releases it, until the end. Returns how many of these counted. The loop is
    /// compiled for each lock, since nothing else is measured by it.
    fn reads(&self, signal: &Signal) -> u64;

    /// Bytes of the lock itself, and of a guard that writes, as users have them.
    fn bytes(&self) -> [usize; 2];
}

/// A range that is held until this is dropped: a guard of any type.
pub type Held<'a> = SmallBox<dyn Guard + 'a, Room>;

/// What is held until it is dropped.
pub trait Guard {}

impl<T> Guard for T {}

/// The room for a guard: none is allocated.
type Room = [usize; 12];

#[inline]
fn held<'a, G: 'a>(guard: G) -> Held<'a> {
    const {
        assert!(
            size_of::<G>() <= size_of::<Room>() && align_of::<G>() <= align_of::<Room>(),
            "a guard needs more room"
        )
    };
    smallbox!(guard)
}

/// A lock on lines of its own.
#[repr(align(128))]
struct Lines<T>(T);

/// A lock as workloads have it: on lines of its own, whatever its type.
pub fn any(lock: impl Target + 'static) -> Box<dyn AnyLock> {
    Box::new(Lines(lock))
}

impl<T: Target> AnyLock for Lines<T> {
    fn readers(&self) -> Readers {
        T::READERS
    }

    fn read(&self, range: Range<u64>) -> Held<'_> {
        held(self.0.read(range))
    }

    fn write(&self, range: Range<u64>) -> Held<'_> {
        held(self.0.write(range))
    }

    fn try_write(&self, range: Range<u64>) -> Option<Held<'_>> {
        self.0.try_write(range).map(held)
    }

    fn reads(&self, signal: &Signal) -> u64 {
        let mut reads = 0;
        signal.until_stop(|phase| {
            drop(black_box(self.0.read(WHOLE)));
            reads += phase.counts();
        });
        reads
    }

    fn bytes(&self) -> [usize; 2] {
        [size_of::<T>(), size_of::<T::Write<'_>>()]
    }
}

/// A range lock of the library, by its own calls: for reading and for writing each a guard, and how it is acquired;
/// and how it is tried for writing.
macro_rules! library {
    (
        $lock:ident over $raw:ident, $readers:expr,
        read: $read_guard:ident, $read:ident,
        write: $write_guard:ident, $write:ident $try_write:ident
    ) => {
        impl<L: $raw + Send + Sync> Target for $lock<L> {
            const READERS: Readers = $readers;
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

            fn try_write(&self, range: Range<u64>) -> Option<Self::Write<'_>> {
                $lock::$try_write(self, range)
            }
        }
    };
}

library!(RangeLock over RawRangeLock, Readers::Share, read: ReadGuard, read, write: WriteGuard, write try_write);
library!(RangeMutex over RawRangeMutex, Readers::Exclude, read: LockGuard, lock, write: LockGuard, lock try_lock);

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
