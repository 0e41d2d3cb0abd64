//! The public peers, and the floors, as what a lock under measurement offers.
//!
//! | module | what it is |
//! |---|---|
//! | [`called`] | locks that are acquired and released by calls, as in C; the floors |
//! | `c` | the library's own locks, by its face for C |
//! | `cpp` | peers in C and C++ |
//! | [`tasks`] | slots, whose ranges tasks await |

#[cfg(all(feature = "c", target_os = "linux", target_pointer_width = "64"))]
pub(crate) mod c;
pub mod called;
#[cfg(feature = "cpp-peers")]
pub(crate) mod cpp;
pub mod tasks;

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use range_lock::{VecRangeLock, VecRangeLockGuard};
pub use spanlock_workbench::target::*;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// The standard library's lock for the whole resource, whatever the range.
#[derive(Debug, Default)]
pub struct Std(std::sync::RwLock<()>);

/// Locks that are poisoned by panics: a poisoned lock is as good as any.
macro_rules! poisoned {
    ($Lock:ident, $Read:ident, $Write:ident $(, { $($more:tt)* })?) => {
        impl Target for $Lock {
            const READERS: Readers = Readers::Share;
            type Read<'a> = $Read<'a, ()>;
            type Write<'a> = $Write<'a, ()>;

            #[inline(always)]
            fn read(&self, _: Range<u64>) -> Self::Read<'_> {
                self.0.read().unwrap_or_else(PoisonError::into_inner)
            }

            #[inline(always)]
            fn write(&self, _: Range<u64>) -> Self::Write<'_> {
                self.0.write().unwrap_or_else(PoisonError::into_inner)
            }

            $($($more)*)?
        }
    };
}

poisoned! {
    Std, RwLockReadGuard, RwLockWriteGuard, {
        fn try_write(&self, _: Range<u64>) -> Option<Self::Write<'_>> {
            match self.0.try_write() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}

/// `parking_lot`'s lock for the whole resource, whatever the range.
#[derive(Debug, Default)]
pub struct ParkingLot(parking_lot::RwLock<()>);

impl Target for ParkingLot {
    const READERS: Readers = Readers::Share;
    type Read<'a> = parking_lot::RwLockReadGuard<'a, ()>;
    type Write<'a> = parking_lot::RwLockWriteGuard<'a, ()>;

    #[inline(always)]
    fn read(&self, _: Range<u64>) -> Self::Read<'_> {
        self.0.read()
    }

    #[inline(always)]
    fn write(&self, _: Range<u64>) -> Self::Write<'_> {
        self.0.write()
    }

    fn try_write(&self, _: Range<u64>) -> Option<Self::Write<'_>> {
        self.0.try_write()
    }
}

/// Crossbeam's lock, for the whole resource.
#[derive(Debug, Default)]
pub struct Sharded(ShardedLock<()>);

poisoned!(Sharded, ShardedLockReadGuard, ShardedLockWriteGuard);

/// The crate `range-lock`: a mutex over a B-tree of held ranges, which owns the vector it guards and can only try.
///
/// It guards a vector of bytes that nobody reads, and tries until it succeeds.
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
        let mut tries = 0;
        loop {
            if let Some(guard) = self.try_write(range.clone()) {
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

    #[inline]
    fn try_write(&self, range: Range<u64>) -> Option<Self::Write<'_>> {
        self.0.try_lock(index(range.start)..index(range.end)).ok()
    }
}
