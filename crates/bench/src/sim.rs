//! The locks that can be simulated: those of the common tables, compiled against `prim-sim`.

pub use prim_sim::heap::OnLines;
pub use prim_sim::{Failure, Machine, Placement, Setup};

use derive_more::Deref;
use spanlock_records::trial::lock::{Described, Over, RwDescribed, described};
use spanlock_records::trial::setting::{Resource, Setting, Values};
use spanlock_sim::range::{RangeLock, RangeMutex};
use spanlock_workbench_sim::baseline::{ParkingRwLock, StdRwLock, TriedTree};
use spanlock_workbench_sim::locks;
use spanlock_workbench_sim::rw;
use spanlock_workbench_sim::target::{AnyLock, Target, any};
use std::sync::LazyLock;

/// A range lock that can be simulated.
#[derive(Deref)]
pub struct Lock {
    /// Its row.
    #[deref]
    pub described: Described,
    make: Box<dyn Fn(Resource) -> Box<dyn AnyLock> + Send + Sync>,
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
        let make = move |resource| any(make(&Setting { resource, values }));
        let make = Box::new(make);
        self.0.push(Lock { described, make });
    }
}

impl locks::Table for Rows {
    fn shared<L: locks::Shared>(&mut self, described: Described, make: locks::Maker<L>) {
        self.add(described, move |setting| RangeLock::from_raw(make(setting)));
    }

    fn exclusive<L: locks::Exclusive>(&mut self, described: Described, make: locks::Maker<L>) {
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
    pub(crate) fn make(&self, resource: Resource) -> Box<dyn AnyLock> {
        (self.make)(resource)
    }
}

/// How one is made.
type Maker = Box<dyn Fn() -> Box<dyn AnyLock> + Send + Sync>;

/// A reader-writer lock that can be simulated.
#[derive(Deref)]
pub struct RwLock {
    /// Its row.
    #[deref]
    pub described: RwDescribed,
    /// How it is made: the first that is large enough for the machine, or else the last.
    makers: Vec<(UpTo, Maker)>,
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
        let make = move || any(make());
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
    pub(crate) fn make(&self, machine: &Machine) -> Box<dyn AnyLock> {
        let fits =
            |up_to: &UpTo| machine.contexts() <= up_to.contexts && machine.sockets <= up_to.nodes;
        let maker = self.makers.iter().find(|(up_to, _)| fits(up_to));
        let (_, make) = maker.or(self.makers.last()).expect("a row makes locks");
        make()
    }
}
