//! The reader-writer locks of the common table, each in one shape.

use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use prim_sim::Machine;
use prim_sim::clock::{Duration, Instant};
use spanlock_records::trial::lock::{Over, Readers, Role, RwDescribed};
use spanlock_sim::rw::Bias;
use spanlock_workbench_sim::rw::locks::{self as table, BIASED, EAGER, Table};
use std::sync::LazyLock;

/// A lock held: until dropped.
pub(super) trait Held {}

impl<T> Held for T {}

type Holding<'a> = Box<dyn Held + 'a>;

/// A reader-writer lock. What it does not offer is `None`.
pub(super) trait Subject: Send + Sync {
    fn read(&self) -> Holding<'_>;
    fn write(&self) -> Holding<'_>;
    fn try_read(&self) -> Option<Holding<'_>>;
    fn try_write(&self) -> Option<Holding<'_>>;

    /// Whether it has the timed forms.
    fn is_timed(&self) -> bool {
        false
    }

    /// As a try unless the lock is timed, as are all that follow.
    fn read_until(&self, _: Instant) -> Option<Holding<'_>> {
        self.try_read()
    }

    fn write_until(&self, _: Instant) -> Option<Holding<'_>> {
        self.try_write()
    }

    /// Reads, calls `seen`, and goes on as a writer without letting others write between; `None` if it cannot.
    fn read_and_write(&self, _seen: &mut dyn FnMut()) -> Option<Holding<'_>> {
        None
    }

    /// Writes, calls `written`, and goes on as a reader without letting go; `None` if it cannot.
    fn write_and_read(&self, _written: &mut dyn FnMut()) -> Option<Holding<'_>> {
        None
    }
}

/// A lock on lines of its own that waits forever or not at all.
#[repr(align(128))]
struct Untimed<L>(RwLock<L, ()>);

/// A lock on lines of its own with the timed forms, of which a writer can become a reader.
#[repr(align(128))]
struct Whole<L>(RwLock<L, ()>);

/// The same, with readers who can become writers.
#[repr(align(128))]
struct Upgradable<L>(RwLock<L, ()>);

macro_rules! basic {
    () => {
        fn read(&self) -> Holding<'_> {
            Box::new(self.0.read())
        }

        fn write(&self) -> Holding<'_> {
            Box::new(self.0.write())
        }

        fn try_read(&self) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_read()?))
        }

        fn try_write(&self) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_write()?))
        }
    };
}

macro_rules! timed {
    () => {
        fn is_timed(&self) -> bool {
            true
        }

        fn read_until(&self, deadline: Instant) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_read_until(deadline)?))
        }

        fn write_until(&self, deadline: Instant) -> Option<Holding<'_>> {
            Some(Box::new(self.0.try_write_until(deadline)?))
        }

        fn write_and_read(&self, written: &mut dyn FnMut()) -> Option<Holding<'_>> {
            let writing = self.0.write();
            written();
            Some(Box::new(RwLockWriteGuard::downgrade(writing)))
        }
    };
}

impl<L: RawRwLock + Send + Sync> Subject for Untimed<L> {
    basic!();
}

impl<L> Subject for Whole<L>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant> + RawRwLockDowngrade + Send + Sync,
{
    basic!();
    timed!();
}

impl<L> Subject for Upgradable<L>
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant>
        + RawRwLockDowngrade
        + RawRwLockUpgrade
        + Send
        + Sync,
{
    basic!();
    timed!();

    fn read_and_write(&self, seen: &mut dyn FnMut()) -> Option<Holding<'_>> {
        let reading = self.0.upgradable_read();
        seen();
        Some(Box::new(RwLockUpgradableReadGuard::upgrade(reading)))
    }
}

type Maker = Box<dyn Fn() -> Box<dyn Subject> + Send + Sync>;

/// The rows of a machine with so many hardware threads: some locks have a part for each.
fn rows_for<const CONTEXTS: usize>() -> Vec<(RwDescribed, Maker)> {
    let mut rows = Rows(Vec::new());
    table::words(&mut rows);
    table::by_node::<2>(&mut rows);
    table::by_processor::<CONTEXTS>(&mut rows);
    table::exclusive(&mut rows);
    table::configurations(&mut rows);
    rows.0
}

/// The rows of the two machines that cases run on.
static SMALL: LazyLock<Vec<(RwDescribed, Maker)>> = LazyLock::new(rows_for::<2>);
static LARGE: LazyLock<Vec<(RwDescribed, Maker)>> = LazyLock::new(rows_for::<40>);

struct Rows(Vec<(RwDescribed, Maker)>);

impl Table for Rows {
    fn untimed<L: table::Untimed>(&mut self, described: RwDescribed, make: table::Maker<L>) {
        let maker = move || Box::new(Untimed(make())) as Box<dyn Subject>;
        self.0.push((described, Box::new(maker)));
    }

    fn whole<L: table::Whole>(&mut self, described: RwDescribed, make: table::Maker<L>) {
        let maker = move || Box::new(Whole(make())) as Box<dyn Subject>;
        self.0.push((described, Box::new(maker)));
    }

    fn upgradable<L: table::Upgradable>(&mut self, described: RwDescribed, make: table::Maker<L>) {
        let maker = move || Box::new(Upgradable(make())) as Box<dyn Subject>;
        self.0.push((described, Box::new(maker)));
    }
}

/// A lock that is fuzzed.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) readers: Readers,
    over: Option<Over>,
}

/// All rows but those that are biased from birth: a case chooses that.
pub(super) fn fuzzed() -> impl Iterator<Item = Row> {
    let rows = SMALL.iter().map(|(described, _)| Row {
        name: described.name,
        role: described.role,
        readers: described.readers,
        over: described.over,
    });
    rows.filter(|row| row.over.is_none_or(|over| over.policy != EAGER))
}

impl Row {
    /// Makes one for a machine, within a run. A lock that is biased as users have it gets this bias.
    pub(super) fn make(&self, machine: &Machine, bias: Bias) -> Box<dyn Subject> {
        let rows = match machine.contexts() {
            ..=2 => &SMALL,
            _ => &LARGE,
        };
        let eager = self
            .over
            .filter(|over| over.policy == BIASED && bias == Bias::EAGER);
        let policy = EAGER;
        let eager = eager.map(|over| Over { policy, ..over });
        let is_wanted = |described: &RwDescribed| match eager {
            Some(_) => described.over == eager,
            None => described.name == self.name,
        };
        let row = rows.iter().find(|(described, _)| is_wanted(described));
        let (_, make) = row.expect("each biased lock is there biased from birth");
        make()
    }
}
