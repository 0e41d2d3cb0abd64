//! What a lock under measurement offers.

use range_lock::{VecRangeLock, VecRangeLockGuard};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{LockGuard, RangeLock, RangeMutex, ReadGuard, WriteGuard};
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a lock does with readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Lets them in together.
    Share,
    /// Treats them as writers: it knows no other mode.
    Exclude,
}

/// A lock under measurement, by the calls that its users write.
///
/// Workloads are compiled for each, so that there is no call through a pointer between them.
pub trait Target: Sync {
    /// What it does with readers.
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
}

impl<L: RawRangeLock + Sync> Target for RangeLock<L> {
    const READERS: Readers = Readers::Share;
    type Read<'a>
        = ReadGuard<'a, L>
    where
        Self: 'a;
    type Write<'a>
        = WriteGuard<'a, L>
    where
        Self: 'a;

    #[inline]
    fn read(&self, range: Range<u64>) -> ReadGuard<'_, L> {
        RangeLock::read(self, range)
    }

    #[inline]
    fn write(&self, range: Range<u64>) -> WriteGuard<'_, L> {
        RangeLock::write(self, range)
    }
}

impl<L: RawRangeMutex + Sync> Target for RangeMutex<L> {
    const READERS: Readers = Readers::Exclude;
    type Read<'a>
        = LockGuard<'a, L>
    where
        Self: 'a;
    type Write<'a>
        = LockGuard<'a, L>
    where
        Self: 'a;

    #[inline]
    fn read(&self, range: Range<u64>) -> LockGuard<'_, L> {
        self.lock(range)
    }

    #[inline]
    fn write(&self, range: Range<u64>) -> LockGuard<'_, L> {
        self.lock(range)
    }
}

/// Locks the whole resource, whatever the range.
impl Target for std::sync::RwLock<()> {
    const READERS: Readers = Readers::Share;
    type Read<'a> = std::sync::RwLockReadGuard<'a, ()>;
    type Write<'a> = std::sync::RwLockWriteGuard<'a, ()>;

    #[inline]
    fn read(&self, _: Range<u64>) -> Self::Read<'_> {
        std::sync::RwLock::read(self).unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn write(&self, _: Range<u64>) -> Self::Write<'_> {
        std::sync::RwLock::write(self).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks the whole resource, whatever the range.
impl Target for parking_lot::RwLock<()> {
    const READERS: Readers = Readers::Share;
    type Read<'a> = parking_lot::RwLockReadGuard<'a, ()>;
    type Write<'a> = parking_lot::RwLockWriteGuard<'a, ()>;

    #[inline]
    fn read(&self, _: Range<u64>) -> Self::Read<'_> {
        parking_lot::RwLock::read(self)
    }

    #[inline]
    fn write(&self, _: Range<u64>) -> Self::Write<'_> {
        parking_lot::RwLock::write(self)
    }
}

/// The crate `range-lock`: a mutex over a B-tree of held ranges, which owns the vector it guards and can only try.
///
/// It guards a vector of bytes that nobody looks at, and tries until it succeeds.
#[derive(Debug)]
pub struct RangeLockCrate(VecRangeLock<u8>);

/// Tries in a row before a waiter gives the processor away after each.
const TRIES: u32 = 64;

impl RangeLockCrate {
    /// A lock for positions up to `units`.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self(VecRangeLock::new(vec![0; index(units)]))
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("as many as there is memory for")
}

impl Target for RangeLockCrate {
    const READERS: Readers = Readers::Exclude;
    type Read<'a> = VecRangeLockGuard<'a, u8>;
    type Write<'a> = VecRangeLockGuard<'a, u8>;

    #[inline]
    fn read(&self, range: Range<u64>) -> Self::Read<'_> {
        self.write(range)
    }

    #[inline]
    fn write(&self, range: Range<u64>) -> Self::Write<'_> {
        let range = index(range.start)..index(range.end);
        let mut tries = 0;
        loop {
            if let Ok(guard) = self.0.try_lock(range.clone()) {
                return guard;
            }
            if tries < TRIES {
                tries += 1;
                spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
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

    #[inline]
    fn read(&self, _: Range<u64>) -> NullGuard {
        NullGuard
    }

    #[inline]
    fn write(&self, _: Range<u64>) -> NullGuard {
        NullGuard
    }
}

/// The least that any lock does, on a line of its own: one compare-exchange, and `RELEASES` more to release, or else
/// a store. It is a spin lock for the whole resource.
#[derive(Debug, Default)]
#[repr(align(128))] // two lines, because processors fetch pairs
pub struct Floor<const RELEASES: usize>(AtomicBool);

/// Releases a [`Floor`] when dropped.
#[derive(Debug)]
pub struct FloorGuard<'a, const RELEASES: usize>(&'a AtomicBool);

impl<const RELEASES: usize> Drop for FloorGuard<'_, RELEASES> {
    #[inline]
    fn drop(&mut self) {
        if RELEASES == 0 {
            self.0.store(false, Ordering::Release);
        } else {
            let released =
                self.0
                    .compare_exchange(true, false, Ordering::Release, Ordering::Relaxed);
            debug_assert!(released.is_ok(), "released by its holder alone");
        }
    }
}

impl<const RELEASES: usize> Target for Floor<RELEASES> {
    const READERS: Readers = Readers::Exclude;
    type Read<'a> = FloorGuard<'a, RELEASES>;
    type Write<'a> = FloorGuard<'a, RELEASES>;

    #[inline]
    fn read(&self, range: Range<u64>) -> Self::Read<'_> {
        self.write(range)
    }

    #[inline]
    fn write(&self, _: Range<u64>) -> Self::Write<'_> {
        let Self(taken) = self;
        while taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::thread::yield_now();
        }
        FloorGuard(taken)
    }
}
