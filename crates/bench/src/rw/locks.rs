//! All reader-writer locks, by name.

use super::harm::ControlLock;
use crate::pairs;
use crate::peers::called::{Called, PrivateLine, SharedCount};
#[cfg(feature = "cpp-peers")]
use crate::peers::cpp;
use crate::peers::{AnyLock, Null, ParkingLot, Sharded, Std, Target, any};
use derive_more::Deref;
use lock_api::RwLock;
use spanlock::range::raw::Mode;
use spanlock::rw::{FutexRwLock, PhaseFairQueue, PhaseFairTicket};
#[cfg(unix)]
use spanlock_records::record::lock::PTHREAD;
use spanlock_records::record::lock::{CONTROL, FLOOR, NULL};
use spanlock_records::trial::lock::{Exclusion, Over, Role, RwDescribed};
use spanlock_records::trial::setting::named;
use spanlock_workbench::baseline::{CohortRwLock, MutexRwLock, PaperBravo, PerCpu};
use spanlock_workbench::rw::locks as table;
use std::sync::LazyLock;
use std::time::Duration;

/// A lock that can be measured. It derefs to its row.
#[derive(Deref, Clone, Copy)]
pub struct Lock {
    /// Its row.
    #[deref]
    pub described: RwDescribed,
    /// How it is made and measured.
    pub measure: &'static dyn Measure,
}

/// A lock of one type.
pub trait Measure: Sync {
    /// Makes one for a workload.
    fn make(&self) -> Box<dyn AnyLock>;

    /// Runs [`pairs`]: how long so many acquisitions and releases take one thread.
    fn uncontended(&self, mode: Mode, pairs: u32) -> Duration;
}

/// How to make a lock.
pub struct Make<T>(pub fn() -> T);

impl<T: Target + 'static> Measure for Make<T> {
    fn make(&self) -> Box<dyn AnyLock> {
        any((self.0)())
    }

    fn uncontended(&self, mode: Mode, count: u32) -> Duration {
        pairs::time_rw(&(self.0)(), mode, count)
    }
}

/// The control of a comparison: a lock of that name and type, as large as under a bias and compiled again.
macro_rules! control {
    ($name:literal, $raw:ty) => {
        Lock {
            described: RwDescribed {
                name: concat!($name, "-again"),
                about: concat!(
                    $name,
                    " itself, as large as under a bias and compiled again"
                ),
                over: Some(Over {
                    lock: $name,
                    policy: CONTROL,
                }),
                ..RwDescribed::ANY
            },
            measure: &Make(RwLock::<ControlLock<$raw>, ()>::default),
        }
    };
}

/// Locks that are on hardware only: of each whether it excludes, its name, what it is, and how it is made.
macro_rules! peers {
    ($($(#[$only:meta])? $exclusion:ident $name:tt $about:literal $make:expr;)+) => {
        &[$($(#[$only])? Lock {
            described: RwDescribed {
                name: $name,
                about: $about,
                exclusion: Exclusion::$exclusion,
                ..RwDescribed::ANY
            },
            measure: &Make($make),
        },)+]
    };
}

/// As the paper's, of phase-fair locks: one for each of up to 16 processors.
const PROCESSORS: usize = 16;
const NODES: usize = 2;

/// All of them, in the order of tables: those of the common table, then peers that are on hardware only.
pub static LOCKS: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let mut table = Measured(Vec::new());
    table::words(&mut table);
    table::by_node::<NODES>(&mut table);
    table::by_processor::<PROCESSORS>(&mut table);
    table::exclusive(&mut table);
    let Measured(mut all) = table;
    let paper = all.iter().position(|lock| lock.name == "bravo-futex-paper");
    let after = paper.expect("it is there") + 1;
    all.splice(after..after, SMALLER_TABLES.iter().copied());
    all.extend(PEERS);
    all
});

/// Rows that are measured on hardware.
struct Measured(Vec<Lock>);

impl table::Table for Measured {
    fn untimed<L: table::Untimed>(&mut self, described: RwDescribed, make: table::Maker<L>) {
        if described.role != Role::Configuration {
            self.0.push(Lock {
                described,
                measure: Box::leak(Box::new(Make(make))),
            });
        }
    }
}

/// The paper's table of visible readers, smaller than the paper's.
static SMALLER_TABLES: &[Lock] = peers! {
    Promised "bravo-futex-paper-1024" "bravo-futex-paper with a table of 1024 slots for 4096: does its size matter?"
        RwLock::<PaperBravo<FutexRwLock, 1024>, ()>::default;
    Promised "bravo-futex-paper-64" "bravo-futex-paper with a table of 64 slots"
        RwLock::<PaperBravo<FutexRwLock, 64>, ()>::default;
};

/// Peers that are on hardware only.
static PEERS: &[Lock] = peers! {
    #[cfg(all(feature = "c", target_os = "linux", target_pointer_width = "64"))]
    Promised "c-rwlock" "bravo-futex by the calls of C"
        Called::<crate::peers::c::CRwLock>::default;
    Promised "std-rwlock" "std::sync::RwLock" Std::default;
    Promised "parking-lot" "parking_lot::RwLock" ParkingLot::default;
    Promised "sharded" "crossbeam's ShardedLock: eight locks, a reader takes one and a writer all" Sharded::default;
    #[cfg(unix)]
    Promised PTHREAD "the C library's pthread_rwlock_t: readers first"
        Called::<crate::peers::called::Pthread>::default;
    #[cfg(feature = "cpp-peers")]
    Promised "tbb-spin" "tbb::spin_rw_mutex" cpp::tbb_spin;
    #[cfg(feature = "cpp-peers")]
    Promised "tbb" "tbb::rw_mutex" cpp::tbb;
    #[cfg(feature = "cpp-peers")]
    Promised "ck-pflock" "ck_pflock: phase-fair tickets; spins without end" cpp::ck_pflock;
    #[cfg(feature = "cpp-peers")]
    Promised "ck-brlock" "ck_brlock: readers register once per thread; spins without end" cpp::ck_brlock;
    #[cfg(feature = "cpp-peers")]
    Promised "absl" "absl::Mutex, with its reader lock" cpp::absl;
    None NULL "no lock: the ceiling. Loses updates when threads overlap, and is not checked" || Null;
};

/// Lower bounds of the cost of reading.
pub static FLOORS: &[Lock] = peers! {
    None FLOOR "one compare-exchange and one store on a line of each thread's own" Called::<PrivateLine>::default;
    None "floor-shared" "one addition and one subtraction on a shared line" Called::<SharedCount>::default;
};

/// Underlying locks once more, for comparisons only: what chance makes of a ratio.
pub static CONTROLS: &[Lock] = &[
    control!("futex", FutexRwLock),
    control!("pf-t", PhaseFairTicket),
    control!("pf-q", PhaseFairQueue),
    control!("c-rw-wp", CohortRwLock<NODES>),
    control!("per-cpu", PerCpu<PhaseFairQueue, PROCESSORS>),
    control!("mutex", MutexRwLock),
];

/// All there are.
pub fn known() -> impl Iterator<Item = &'static Lock> {
    CONTROLS.iter().chain(LOCKS.iter()).chain(FLOORS)
}

/// The lock of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Lock> {
    known().find(|lock| lock.name == name)
}

/// The lock of that name, among those.
///
/// # Errors
/// The names that were expected instead.
pub fn parse(
    name: &str,
    among: impl Iterator<Item = &'static Lock>,
) -> Result<&'static Lock, String> {
    named(name, among, |lock| lock.name)
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
