//! All reader-writer locks, by name.

use super::again::Again;
use super::target::{Called, PrivateLine, RwTarget, SharedCount};
use super::{Outcome, Trial, uncontended};
use crate::registry::Exclusion;
use crate::target::Null;
use crossbeam_utils::sync::ShardedLock;
use lock_api::{RawRwLock, RwLock};
use spanlock::range::raw::Mode;
use spanlock::rw::{
    Bias, Bravo, CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, PhaseFairQueue,
    PhaseFairTicket, Tuning,
};
use spanlock_baseline::PaperBravo;
use std::time::Duration;

/// A lock that can be measured.
#[derive(Clone, Copy)]
pub struct Lock {
    /// What users call it.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What it claims.
    pub exclusion: Exclusion,
    /// What it is made of and compared with, if it is.
    pub over: Option<Over>,
    /// How it is measured.
    pub measure: &'static dyn Measure,
}

/// What a lock is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The name of the underlying lock.
    pub lock: &'static str,
    /// When it is biased, or `again` for what is the underlying lock itself: a column of the table of harm.
    pub policy: &'static str,
}

impl Lock {
    /// What entries have in common.
    const ANY: Self = Self {
        name: "",
        about: "",
        exclusion: Exclusion::Promised,
        over: None,
        measure: &Make(|| Null),
    };
}

/// The measurements, each compiled for one lock and run on fresh ones.
pub trait Measure: Sync {
    /// Runs a workload.
    fn run(&self, trial: &Trial) -> Outcome;

    /// Runs [`uncontended`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, mode: Mode, pairs: u32) -> Duration;
}

/// How to make a lock.
pub struct Make<T>(pub fn() -> T);

impl<T: RwTarget> Measure for Make<T> {
    fn run(&self, trial: &Trial) -> Outcome {
        super::run(self.0, trial)
    }

    fn uncontended(&self, mode: Mode, pairs: u32) -> Duration {
        uncontended::time(&(self.0)(), mode, pairs)
    }
}

/// Ours as it is.
fn bravo<L: RawRwLock>() -> RwLock<Bravo<L>, ()> {
    RwLock::new(())
}

/// Ours without a bias.
fn off<L: RawRwLock>() -> RwLock<Bravo<L, Tuning>, ()> {
    let tuning = Tuning {
        bias: Bias::Off,
        ..Tuning::STANDARD
    };
    RwLock::from_raw(Bravo::with_policy(L::INIT, tuning), ())
}

/// The paper's.
fn paper<L: RawRwLock>() -> RwLock<PaperBravo<L>, ()> {
    RwLock::new(())
}

/// The lock itself.
fn again<L: RawRwLock>() -> RwLock<Again<L>, ()> {
    RwLock::new(())
}

/// The policy of those that are the underlying lock itself.
pub(crate) const AGAIN: &str = "again";

/// An entry for the control of a comparison: its name, the underlying lock's, and that lock's type.
macro_rules! again {
    ($name:literal, $lock:literal, $raw:ty) => {
        Lock {
            name: $name,
            about: concat!(
                $lock,
                " itself, as large as under a bias and compiled again"
            ),
            over: Some(Over {
                lock: $lock,
                policy: AGAIN,
            }),
            measure: &Make(again::<$raw>),
            ..Lock::ANY
        }
    };
}

/// An entry for a biased lock: its name, the underlying lock's, and one of [`bravo`], [`off`] and [`paper`] for the
/// underlying lock's type.
macro_rules! over {
    ($name:literal, $lock:literal, $policy:ident::<$raw:ty>) => {
        Lock {
            name: $name,
            about: concat!("BRAVO over ", $lock, ", policy ", stringify!($policy)),
            over: Some(Over {
                lock: $lock,
                policy: stringify!($policy),
            }),
            measure: &Make($policy::<$raw>),
            ..Lock::ANY
        }
    };
}

/// As the paper's, of phase-fair locks: one for each of up to 16 processors.
type PerProcessor = PerCpu<PhaseFairQueue, 16>;
type Cohort = CohortRwLock<2>;
type Mutex = MutexRwLock<FutexMutex>;

/// What no lock can do better than whose readers do not meet.
pub const FLOOR: &str = "floor-private";

/// The name of no lock at all.
pub const NULL: &str = "null";

/// The C library's lock.
pub const PTHREAD: &str = "pthread";

/// The same in a process with the preload library, as reports have it.
pub const PRELOADED: &str = "pthread, preloaded";

/// All of them, in the order of tables.
pub static LOCKS: &[Lock] = &[
    Lock {
        name: "futex",
        about: "spanlock's FutexRwLock: two words, writers first",
        measure: &Make(RwLock::<FutexRwLock, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-futex", "futex", bravo::<FutexRwLock>),
    over!("bravo-futex-off", "futex", off::<FutexRwLock>),
    over!("bravo-futex-paper", "futex", paper::<FutexRwLock>),
    Lock {
        name: "bravo-futex-paper-1024",
        about: "bravo-futex-paper with a table of 1024 slots for 4096: does its size matter?",
        measure: &Make(RwLock::<PaperBravo<FutexRwLock, 1024>, ()>::default),
        ..Lock::ANY
    },
    Lock {
        name: "bravo-futex-paper-64",
        about: "bravo-futex-paper with a table of 64 slots",
        measure: &Make(RwLock::<PaperBravo<FutexRwLock, 64>, ()>::default),
        ..Lock::ANY
    },
    Lock {
        name: "pf-t",
        about: "spanlock's PhaseFairTicket: phases of readers and writers take turns",
        measure: &Make(RwLock::<PhaseFairTicket, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-pf-t", "pf-t", bravo::<PhaseFairTicket>),
    over!("bravo-pf-t-off", "pf-t", off::<PhaseFairTicket>),
    over!("bravo-pf-t-paper", "pf-t", paper::<PhaseFairTicket>),
    Lock {
        name: "pf-q",
        about: "spanlock's PhaseFairQueue: the same, and who waits does so in a queue",
        measure: &Make(RwLock::<PhaseFairQueue, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-pf-q", "pf-q", bravo::<PhaseFairQueue>),
    over!("bravo-pf-q-off", "pf-q", off::<PhaseFairQueue>),
    over!("bravo-pf-q-paper", "pf-q", paper::<PhaseFairQueue>),
    Lock {
        name: "c-rw-wp",
        about: "spanlock's CohortRwLock of two nodes: writers first",
        measure: &Make(RwLock::<Cohort, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-c-rw-wp", "c-rw-wp", bravo::<Cohort>),
    over!("bravo-c-rw-wp-off", "c-rw-wp", off::<Cohort>),
    over!("bravo-c-rw-wp-paper", "c-rw-wp", paper::<Cohort>),
    Lock {
        name: "per-cpu",
        about: "spanlock's PerCpu: 16 of pf-q, a reader takes one and a writer all",
        measure: &Make(RwLock::<PerProcessor, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-per-cpu", "per-cpu", bravo::<PerProcessor>),
    over!("bravo-per-cpu-off", "per-cpu", off::<PerProcessor>),
    over!("bravo-per-cpu-paper", "per-cpu", paper::<PerProcessor>),
    Lock {
        name: "mutex",
        about: "spanlock's FutexMutex: readers exclude each other",
        measure: &Make(RwLock::<Mutex, ()>::default),
        ..Lock::ANY
    },
    over!("bravo-mutex", "mutex", bravo::<Mutex>),
    over!("bravo-mutex-off", "mutex", off::<Mutex>),
    over!("bravo-mutex-paper", "mutex", paper::<Mutex>),
    Lock {
        name: "std-rwlock",
        about: "std::sync::RwLock",
        measure: &Make(|| std::sync::RwLock::new(())),
        ..Lock::ANY
    },
    Lock {
        name: "parking-lot",
        about: "parking_lot::RwLock",
        measure: &Make(|| parking_lot::RwLock::new(())),
        ..Lock::ANY
    },
    Lock {
        name: "sharded",
        about: "crossbeam's ShardedLock: eight locks, a reader takes one and a writer all",
        measure: &Make(|| ShardedLock::new(())),
        ..Lock::ANY
    },
    #[cfg(unix)]
    Lock {
        name: PTHREAD,
        about: "the C library's pthread_rwlock_t: readers first",
        measure: &Make(Called::<super::target::Pthread>::default),
        ..Lock::ANY
    },
    #[cfg(feature = "cpp-peers")]
    Lock {
        name: "tbb-spin",
        about: "tbb::spin_rw_mutex",
        measure: &Make(super::cpp::tbb_spin),
        ..Lock::ANY
    },
    #[cfg(feature = "cpp-peers")]
    Lock {
        name: "tbb",
        about: "tbb::rw_mutex",
        measure: &Make(super::cpp::tbb),
        ..Lock::ANY
    },
    #[cfg(feature = "cpp-peers")]
    Lock {
        name: "ck-pflock",
        about: "ck_pflock: phase-fair tickets; spins without end",
        measure: &Make(super::cpp::ck_pflock),
        ..Lock::ANY
    },
    #[cfg(feature = "cpp-peers")]
    Lock {
        name: "ck-brlock",
        about: "ck_brlock: readers register once per thread; spins without end",
        measure: &Make(super::cpp::ck_brlock),
        ..Lock::ANY
    },
    #[cfg(feature = "cpp-peers")]
    Lock {
        name: "absl",
        about: "absl::Mutex, with its reader lock",
        measure: &Make(super::cpp::absl),
        ..Lock::ANY
    },
    Lock {
        name: NULL,
        about: "no lock: the ceiling. Loses updates when threads overlap, and is not held to the check",
        exclusion: Exclusion::None,
        ..Lock::ANY
    },
];

/// What locks are compared with, where nobody writes.
pub static FLOORS: &[Lock] = &[
    Lock {
        name: FLOOR,
        about: "one compare-exchange and one store on a line of each thread's own",
        exclusion: Exclusion::None,
        measure: &Make(Called::<PrivateLine>::default),
        ..Lock::ANY
    },
    Lock {
        name: "floor-shared",
        about: "one addition and one subtraction on a shared line",
        exclusion: Exclusion::None,
        measure: &Make(Called::<SharedCount>::default),
        ..Lock::ANY
    },
];

/// Underlying locks once more, for comparisons only: what chance makes of a ratio.
pub static CONTROLS: &[Lock] = &[
    again!("futex-again", "futex", FutexRwLock),
    again!("pf-t-again", "pf-t", PhaseFairTicket),
    again!("pf-q-again", "pf-q", PhaseFairQueue),
    again!("c-rw-wp-again", "c-rw-wp", Cohort),
    again!("per-cpu-again", "per-cpu", PerProcessor),
    again!("mutex-again", "mutex", Mutex),
];

/// All there are.
fn known() -> impl Iterator<Item = &'static Lock> {
    CONTROLS.iter().chain(LOCKS).chain(FLOORS)
}

/// The lock of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Lock> {
    known().find(|lock| lock.name == name)
}

/// The lock of that name, among those.
///
/// # Errors
/// What was expected instead.
pub fn parse(
    name: &str,
    mut among: impl Iterator<Item = &'static Lock> + Clone,
) -> Result<&'static Lock, String> {
    let names = among.clone().map(|lock| lock.name);
    among.find(|lock| lock.name == name).ok_or_else(|| {
        let names: Vec<_> = names.collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// What the lock of that name claims. One that is not known is taken at its word.
pub(crate) fn exclusion(name: &str) -> Exclusion {
    find(name).map_or(Exclusion::Promised, |lock| lock.exclusion)
}

/// Whether the lock of that name is the control of a comparison, and no lock of its own.
pub(crate) fn is_control(name: &str) -> bool {
    find(name).is_some_and(|lock| lock.over.is_some_and(|over| over.policy == AGAIN))
}

/// Those that others are made of: each with its control, and what is made of it.
#[must_use]
pub fn families() -> Vec<(&'static Lock, Vec<&'static Lock>)> {
    let made_of = |base: &'static str| {
        let over = move |lock: &&Lock| lock.over.is_some_and(|over| over.lock == base);
        known().filter(over).collect::<Vec<_>>()
    };
    let families = LOCKS.iter().map(|base| (base, made_of(base.name)));
    families.filter(|(_, made)| !made.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{FLOOR, find, known};
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_bases_are_there() {
        let names: HashSet<_> = known().map(|lock| lock.name).collect();
        assert_eq!(names.len(), known().count());
        assert!(find(FLOOR).is_some());
        for lock in known() {
            if let Some(over) = lock.over {
                assert!(names.contains(over.lock), "{}", lock.name);
            }
        }
    }
}
