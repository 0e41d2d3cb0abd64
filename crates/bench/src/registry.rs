//! All the locks, by name.

use crate::arr::{self, SLOTS};
use crate::baseline::{KernelRw, LustreEx};
use crate::target::{Floor, Null, RangeLockCrate, Readers, Target};
use crate::{uncontended, waiting};
use spanlock::range::list::{Fairness, FastPath, ListEx, ListRw};
use spanlock::range::raw::Mode;
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::{RangeLock, RangeMutex};
use std::time::Duration;

/// What a lock claims, and so what the check at the end of a run demands of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// Holders that conflict never meet: no update may be lost.
    Promised,
    /// Nobody is kept out: updates get lost when threads overlap.
    None,
}

/// A lock that can be measured.
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What it claims.
    pub exclusion: Exclusion,
    /// The atomic read-modify-writes of an uncontended acquisition and release, found by reading its code.
    pub rmw: &'static str,
    /// How it is measured.
    pub measure: &'static dyn Measure,
}

/// The measurements, each compiled for one lock and run on a fresh one.
pub trait Measure: Sync {
    /// What the lock does with readers.
    fn readers(&self) -> Readers;

    /// Runs [`arr`].
    fn arr(&self, trial: &arr::Trial) -> arr::Outcome;

    /// Runs [`uncontended`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, mode: Mode, pairs: u32) -> Duration;

    /// Runs [`waiting::sleeper`]: processor time of a thread that waits while another holds for so long.
    fn sleeper(&self, hold: Duration) -> Option<Duration>;
}

/// How to make a lock.
pub struct Make<T>(pub fn() -> T);

impl<T: Target> Measure for Make<T> {
    fn readers(&self) -> Readers {
        T::READERS
    }

    fn arr(&self, trial: &arr::Trial) -> arr::Outcome {
        arr::run(&(self.0)(), trial)
    }

    fn uncontended(&self, mode: Mode, pairs: u32) -> Duration {
        uncontended::time(&(self.0)(), mode, pairs)
    }

    fn sleeper(&self, hold: Duration) -> Option<Duration> {
        waiting::sleeper(&(self.0)(), hold)
    }
}

/// The lock that the comparisons below tables are about.
pub const OURS: &str = "list-rw";

/// Those that [`OURS`] is to be compared with.
pub const RIVALS: [&str; 2] = ["kernel-rw", "range-lock"];

/// All of them, in the order of tables.
pub static LOCKS: &[Lock] = &[
    Lock {
        name: OURS,
        about: "readers and writers in a list (P1 §4.2): fair, fast path; the default RangeLock",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(RangeLock::new),
    },
    Lock {
        name: "list-rw-nofast",
        about: "list-rw without the fast path of an empty list",
        exclusion: Exclusion::Promised,
        rmw: "3",
        measure: &Make(|| RangeLock::from_raw(ListRw::builder().fast_path(FastPath::Off).build())),
    },
    Lock {
        name: "list-rw-unfair",
        about: "list-rw where a request may be overtaken without end",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(|| {
            RangeLock::from_raw(ListRw::builder().fairness(Fairness::Unfair).build())
        }),
    },
    Lock {
        name: "list-ex",
        about: "exclusive ranges in a list (P1 §4.1): fair, fast path; the default RangeMutex",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(RangeMutex::new),
    },
    Lock {
        name: "list-ex-nofast",
        about: "list-ex without the fast path of an empty list",
        exclusion: Exclusion::Promised,
        rmw: "3",
        measure: &Make(|| RangeMutex::from_raw(ListEx::builder().fast_path(FastPath::Off).build())),
    },
    Lock {
        name: "srl-array",
        about: "a reader-writer word for each slot (P3 §IV): fair, never waits with full hands",
        exclusion: Exclusion::Promised,
        rmw: "2 a slot",
        measure: &Make(|| RangeLock::from_raw(SrlArray::builder().segments(SLOTS).build())),
    },
    Lock {
        name: "srl-tree",
        about: "srl-array with its words in a radix tree of 16 by 16, made on demand (P3 §IV)",
        exclusion: Exclusion::Promised,
        rmw: "2 a slot",
        measure: &Make(|| RangeLock::from_raw(SrlTree::builder().fan_out(16).depth(2).build())),
    },
    Lock {
        name: "kernel-rw",
        about: "readers and writers in an interval tree under a spin lock, first come first served (P1 §3)",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(|| RangeLock::from_raw(KernelRw::new())),
    },
    Lock {
        name: "lustre-ex",
        about: "kernel-rw for exclusive ranges only (P1 §3)",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(|| RangeMutex::from_raw(LustreEx::new())),
    },
    Lock {
        name: "std-rwlock",
        about: "std::sync::RwLock over the whole resource",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(|| std::sync::RwLock::new(())),
    },
    Lock {
        name: "parking-lot",
        about: "parking_lot::RwLock over the whole resource",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(|| parking_lot::RwLock::new(())),
    },
    Lock {
        name: "range-lock",
        about: "the crate range-lock: exclusive, a mutex over a B-tree; tries, spins, then yields",
        exclusion: Exclusion::Promised,
        rmw: "4",
        measure: &Make(|| RangeLockCrate::new(SLOTS)),
    },
    Lock {
        name: "null",
        about: "no lock: the ceiling. Loses updates when threads overlap, and is not held to the check",
        exclusion: Exclusion::None,
        rmw: "0",
        measure: &Make(|| Null),
    },
];

/// What no lock can do better than, for [`uncontended`] only.
pub static FLOORS: &[Lock] = &[
    Lock {
        name: "floor",
        about: "one compare-exchange and one store on a private line",
        exclusion: Exclusion::Promised,
        rmw: "1",
        measure: &Make(Floor::<0>::default),
    },
    Lock {
        name: "floor-2rmw",
        about: "two compare-exchanges on a private line",
        exclusion: Exclusion::Promised,
        rmw: "2",
        measure: &Make(Floor::<1>::default),
    },
];

/// The lock of that name.
pub fn find(name: &str) -> Option<&'static Lock> {
    LOCKS.iter().chain(FLOORS).find(|lock| lock.name == name)
}

#[cfg(test)]
mod tests {
    use super::{FLOORS, LOCKS, OURS, RIVALS, find};
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_found() {
        let all = || LOCKS.iter().chain(FLOORS);
        let names: HashSet<_> = all().map(|lock| lock.name).collect();
        assert_eq!(names.len(), all().count());
        for name in RIVALS.iter().chain([&OURS]) {
            assert!(find(name).is_some_and(|lock| lock.name == *name), "{name}");
        }
    }
}
