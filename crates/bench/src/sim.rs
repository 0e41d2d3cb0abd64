//! The locks that can be simulated: those of the common tables, compiled against `prim-sim`.

pub use prim_sim::heap::OnLines;
pub use prim_sim::{Failure, Machine, Placement, Setup};

use derive_more::Deref;
use spanlock_records::trial::lock::{Described, Over, RwDescribed, described};
use spanlock_records::trial::setting::{Resource, Setting, Values};
use spanlock_sim::range::raw::Mode;
use spanlock_sim::range::{RangeLock, RangeMutex};
use spanlock_workbench_sim::baseline::{ParkingRwLock, StdRwLock, TriedTree};
use spanlock_workbench_sim::locks::{self, Maker};
use spanlock_workbench_sim::rw;
use spanlock_workbench_sim::target::{Readers, Target};
use std::ops::Range;
use std::sync::LazyLock;
use std::time::Duration;

/// A lock of any type. Workloads are compiled once for all of them: what a call through a pointer takes the host, no
/// simulated machine sees.
trait AnyLock: Send + Sync {
    /// Waits as long as it takes.
    fn hold(&self, mode: Mode, range: Range<u64>) -> Box<dyn Held + '_>;

    /// Exclusively, if it is free.
    fn try_hold(&self, range: Range<u64>) -> Option<Box<dyn Held + '_>>;
}

/// A lock held: until dropped.
pub trait Held {}

impl<T> Held for T {}

/// A lock on lines of its own.
#[repr(align(128))]
struct Lines<T>(T);

impl<T: Target> AnyLock for Lines<T> {
    fn hold(&self, mode: Mode, range: Range<u64>) -> Box<dyn Held + '_> {
        match mode {
            Mode::Shared => Box::new(self.0.read(range)),
            Mode::Exclusive => Box::new(self.0.write(range)),
        }
    }

    fn try_hold(&self, range: Range<u64>) -> Option<Box<dyn Held + '_>> {
        let held = self.0.write_within(range, Duration::ZERO)?;
        Some(Box::new(held))
    }
}

/// Any lock, as workloads use it.
pub struct Erased(Box<dyn AnyLock>);

impl Erased {
    fn new(lock: impl Target + 'static) -> Self {
        Self(Box::new(Lines(lock)))
    }
}

impl Target for Erased {
    const READERS: Readers = Readers::Share;
    type Read<'a> = Box<dyn Held + 'a>;
    type Write<'a> = Box<dyn Held + 'a>;

    fn read(&self, range: Range<u64>) -> Box<dyn Held + '_> {
        self.0.hold(Mode::Shared, range)
    }

    fn write(&self, range: Range<u64>) -> Box<dyn Held + '_> {
        self.0.hold(Mode::Exclusive, range)
    }

    fn write_within(&self, range: Range<u64>, limit: Duration) -> Option<Box<dyn Held + '_>> {
        match limit {
            Duration::ZERO => self.0.try_hold(range),
            _ => Some(self.write(range)),
        }
    }
}

/// A range lock that can be simulated.
#[derive(Deref)]
pub struct Lock {
    /// Its row.
    #[deref]
    pub described: Described,
    make: Box<dyn Fn(Resource) -> Erased + Send + Sync>,
}

/// All rows, in the order of tables. Of what other packages have, there are models.
pub static LOCKS: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let mut rows = Rows(Vec::new());
    locks::all(&mut rows);
    rows.add(described("std-rwlock"), |_| {
        lock_api::RwLock::<StdRwLock, ()>::new(())
    });
    rows.add(described("parking-lot"), |_| {
        lock_api::RwLock::<ParkingRwLock, ()>::new(())
    });
    rows.add(described("range-lock"), |_| {
        RangeMutex::from_raw(TriedTree::new())
    });
    rows.0
});

struct Rows(Vec<Lock>);

impl Rows {
    fn add<T: Target + 'static>(
        &mut self,
        described: Described,
        make: impl Fn(&Setting) -> T + Send + Sync + 'static,
    ) {
        let values = Values::NONE;
        let make = move |resource| Erased::new(make(&Setting { resource, values }));
        let make = Box::new(make);
        self.0.push(Lock { described, make });
    }
}

impl locks::Table for Rows {
    fn shared<L: locks::Shared>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move |setting| RangeLock::from_raw(make(setting)));
    }

    fn exclusive<L: locks::Exclusive>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move |setting| {
            RangeMutex::from_raw(make(setting))
        });
    }
}

impl Lock {
    /// Why a thread cannot hold several ranges of a resource at a time; `None` if it can.
    pub(crate) fn holds_one_because(&self, resource: Resource) -> Option<&'static str> {
        let values = Values::NONE;
        self.holds.one_because(&Setting { resource, values })
    }

    /// Makes one, within a run.
    pub(crate) fn make(&self, resource: Resource) -> Erased {
        (self.make)(resource)
    }
}

/// A reader-writer lock that can be simulated.
#[derive(Deref)]
pub struct RwLock {
    /// Its row.
    #[deref]
    pub described: RwDescribed,
    /// How it is made: the first that is large enough for the machine, or else the last.
    makers: Vec<(UpTo, Box<dyn Fn() -> Erased + Send + Sync>)>,
}

/// The largest machine for which a lock is made so.
#[derive(Clone, Copy)]
struct UpTo {
    contexts: usize,
    nodes: usize,
}

/// All rows, in the order of tables.
pub static RW_LOCKS: LazyLock<Vec<RwLock>> = LazyLock::new(|| {
    let any = UpTo {
        contexts: usize::MAX,
        nodes: usize::MAX,
    };
    let mut all = RwRows(Vec::new(), any);
    rw::locks::words(&mut all);
    all.1.nodes = 2;
    rw::locks::by_node::<2>(&mut all);
    all.1.nodes = 4;
    rw::locks::by_node::<4>(&mut all);
    macro_rules! by_processor {
        ($($contexts:literal)+) => {$(
            all.1 = UpTo { contexts: $contexts, ..any };
            rw::locks::by_processor::<$contexts>(&mut all);
        )+};
    }
    by_processor!(2 40 72 128 256);
    all.1 = any;
    rw::locks::exclusive(&mut all);
    rw::locks::configurations(&mut all);
    all.0
});

/// Rows, and the machine for which those that follow are made.
struct RwRows(Vec<RwLock>, UpTo);

impl rw::locks::Table for RwRows {
    fn untimed<L: rw::locks::Untimed>(
        &mut self,
        described: RwDescribed,
        make: rw::locks::Maker<L>,
    ) {
        let Self(rows, up_to) = self;
        let at = rows
            .iter()
            .position(|row| row.described.name == described.name);
        let at = at.unwrap_or_else(|| {
            let makers = Vec::new();
            rows.push(RwLock { described, makers });
            rows.len() - 1
        });
        let make = move || Erased::new(make());
        rows[at].makers.push((*up_to, Box::new(make)));
    }
}

impl RwLock {
    /// The measured locks, and further configurations of the library's.
    pub fn simulated() -> impl Iterator<Item = &'static Self> {
        let is_eager = |over: Over| over.policy == rw::locks::EAGER;
        RW_LOCKS
            .iter()
            .filter(move |lock| !lock.described.over.is_some_and(is_eager))
    }

    /// Makes one for a machine, within a run.
    pub(crate) fn make(&self, machine: &Machine) -> Erased {
        let fits =
            |up_to: &UpTo| machine.contexts() <= up_to.contexts && machine.sockets <= up_to.nodes;
        let maker = self.makers.iter().find(|(up_to, _)| fits(up_to));
        let (_, make) = maker.or(self.makers.last()).expect("a row makes locks");
        make()
    }
}
