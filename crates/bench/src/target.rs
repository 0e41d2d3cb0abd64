//! What a lock under measurement offers.

use range_lock::{VecRangeLock, VecRangeLockGuard};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{LockGuard, RangeLock, RangeMutex, ReadGuard, WriteGuard};
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

/// What a lock does with readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Lets them in together.
    Share,
    /// Treats them as writers: it knows no other mode.
    Exclude,
}

/// What a lock does for a request that is not to wait as long as it takes.
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
/// Workloads are compiled for each, so that there is no call through a pointer between them.
pub trait Target: Sync {
    /// What it does with readers.
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

    /// Who holds and who waits, for people; `None` if the lock cannot tell.
    fn snapshot(&self) -> Option<String> {
        None
    }
}

impl<L: RawRangeLock + Sync> Target for RangeLock<L> {
    const READERS: Readers = Readers::Share;
    const GIVES_UP: GivesUp = GivesUp::InTime;
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

    fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<ReadGuard<'_, L>> {
        match limit {
            Duration::ZERO => self.try_read(range),
            limit => self.try_read_for(range, limit),
        }
    }

    fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<WriteGuard<'_, L>> {
        match limit {
            Duration::ZERO => self.try_write(range),
            limit => self.try_write_for(range, limit),
        }
    }

    fn snapshot(&self) -> Option<String> {
        Some(self.raw().snapshot()?.to_string())
    }
}

impl<L: RawRangeMutex + Sync> Target for RangeMutex<L> {
    const READERS: Readers = Readers::Exclude;
    const GIVES_UP: GivesUp = GivesUp::InTime;
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

    fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<LockGuard<'_, L>> {
        self.write_within(range, limit)
    }

    fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<LockGuard<'_, L>> {
        match limit {
            Duration::ZERO => self.try_lock(range),
            limit => self.try_lock_for(range, limit),
        }
    }

    fn snapshot(&self) -> Option<String> {
        Some(self.raw().snapshot()?.to_string())
    }
}

/// Locks the whole resource, whatever the range.
impl Target for std::sync::RwLock<()> {
    const READERS: Readers = Readers::Share;
    const GIVES_UP: GivesUp = GivesUp::AtOnce;
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

    fn read_within(&self, _: Range<u64>, _: Duration) -> Option<Self::Read<'_>> {
        granted(self.try_read())
    }

    fn write_within(&self, _: Range<u64>, _: Duration) -> Option<Self::Write<'_>> {
        granted(self.try_write())
    }
}

/// A poisoned lock is as good as any.
fn granted<G>(tried: TryLockResult<G>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Locks the whole resource, whatever the range.
impl Target for parking_lot::RwLock<()> {
    const READERS: Readers = Readers::Share;
    const GIVES_UP: GivesUp = GivesUp::InTime;
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

    fn read_within(&self, _: Range<u64>, limit: Duration) -> Option<Self::Read<'_>> {
        match limit {
            Duration::ZERO => self.try_read(),
            limit => self.try_read_for(limit),
        }
    }

    fn write_within(&self, _: Range<u64>, limit: Duration) -> Option<Self::Write<'_>> {
        match limit {
            Duration::ZERO => self.try_write(),
            limit => self.try_write_for(limit),
        }
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
    const GIVES_UP: GivesUp = GivesUp::AtOnce;
    type Read<'a> = VecRangeLockGuard<'a, u8>;
    type Write<'a> = VecRangeLockGuard<'a, u8>;

    #[inline]
    fn read(&self, range: Range<u64>) -> Self::Read<'_> {
        self.write(range)
    }

    #[inline]
    fn write(&self, range: Range<u64>) -> Self::Write<'_> {
        let mut tries = 0;
        loop {
            if let Some(guard) = self.write_within(range.clone(), Duration::ZERO) {
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
    fn read_within(&self, range: Range<u64>, limit: Duration) -> Option<Self::Read<'_>> {
        self.write_within(range, limit)
    }

    #[inline]
    fn write_within(&self, range: Range<u64>, _: Duration) -> Option<Self::Write<'_>> {
        self.0.try_lock(index(range.start)..index(range.end)).ok()
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
