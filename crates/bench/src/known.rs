//! Locks, and what takes their place in a workload: known to users by name, and to records with what is compared.

#[cfg(feature = "sim")]
use crate::sim;
use crate::{registry, rw, sets};
use spanlock_records::record::lock::{Entry, Lock};
use spanlock_records::trial::lock::{Described, RwDescribed};
use spanlock_records::trial::run::{Outcome, Trial};
use spanlock_records::trial::setting::named;
use spanlock_workbench::crew::Meter;
use spanlock_workbench::keys::table as keys;
use spanlock_workbench::micro::Kernel;
#[cfg(feature = "sim")]
use {
    prim_sim::Machine, spanlock_records::trial::lock::Role,
    spanlock_workbench_sim::keys::table as simulated,
};

/// A lock or the like: a row of a table, from which users choose by name.
pub trait Known: Copy + Send + Sync + 'static {
    /// The argument by which users choose.
    const ARGUMENT: &'static str = "locks";

    /// What users are told of the choice.
    const ABOUT: &'static str = "Locks, by name; all of them by default";

    /// The row as records have it.
    fn known(self) -> Lock;

    /// Those that users can name.
    fn all() -> Vec<Self>;

    /// Those that run unless users name some.
    fn usual() -> Vec<Self> {
        Self::all()
    }

    /// The row of that name.
    ///
    /// # Errors
    /// The names that there are.
    fn find(name: &str) -> Result<Self, String> {
        named(name, Self::all(), |row| row.known().name)
    }

    /// The rows that an argument names.
    ///
    /// # Errors
    /// The names that there are.
    fn parse(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(Self::find).collect()
    }
}

/// A row of a table, with how a trial is run on it.
pub struct Row<F: ?Sized> {
    /// Its name for users.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    pub(crate) run: Box<F>,
}

impl<F: ?Sized> Row<F> {
    pub(crate) fn new(name: &'static str, about: &'static str, run: Box<F>) -> Self {
        Self { name, about, run }
    }
}

/// A row that is measured on hardware.
pub type Measured<L> =
    Row<dyn Fn(&Trial<L>, &mut dyn Meter) -> Result<Outcome, &'static str> + Send + Sync>;

/// A row that is simulated.
#[cfg(feature = "sim")]
pub type Simulated<L> = Row<dyn Fn(&Trial<L>, &Machine) -> Outcome + Send + Sync>;

/// Implements [`Known`] for references to the rows of tables.
macro_rules! known {
    ($($Row:ty: |$row:ident| $known:expr, $all:expr $(, $usual:expr)? $(; $argument:literal $about:literal)?)+) => {$(
        impl $crate::known::Known for &'static $Row {
            $(const ARGUMENT: &'static str = $argument;
            const ABOUT: &'static str = $about;)?

            fn known(self) -> ::spanlock_records::record::lock::Lock {
                let $row = self;
                $known
            }

            fn all() -> Vec<Self> {
                $all.collect()
            }

            $(fn usual() -> Vec<Self> {
                $usual.collect()
            })?
        }
    )+};
}
pub(crate) use known;

fn range(row: &Described) -> Lock {
    Lock {
        name: row.name.to_owned(),
        family: row.family.to_owned(),
        exclusion: row.exclusion,
        policy: None,
    }
}

fn whole(row: &RwDescribed) -> Lock {
    let family = row.over.map_or(row.name, |over| over.lock);
    Lock {
        name: row.name.to_owned(),
        family: family.to_owned(),
        exclusion: row.exclusion,
        policy: row.over.map(|over| over.policy.to_owned()),
    }
}

known! {
    rw::locks::Lock: |row| whole(row),
        rw::locks::known(), rw::locks::LOCKS.iter()
    sets::Stock: |row| Lock::named(row.described.name), sets::STOCKS.iter();
        "sets" "Sets, by name; all of them by default"
    keys::Row: |row| Lock::named(row.described.name), keys::ROWS.iter();
        "locks" "Locks over keys, by name; all of them by default"
}

/// Those that lock ranges of keys.
#[cfg(feature = "sim")]
fn has_ranges(row: &simulated::Row) -> bool {
    row.described.name != "stripes"
}

/// Those that are measured on hardware too.
#[cfg(feature = "sim")]
const fn is_measured(role: Role) -> bool {
    !matches!(role, Role::Configuration)
}

#[cfg(feature = "sim")]
known! {
    sim::Lock: |row| range(row),
        sim::LOCKS.iter(), sim::LOCKS.iter().filter(|row| is_measured(row.role));
        "locks" "Locks, by name; by default, all range locks that `bench` has too"
    sim::RwLock: |row| whole(row),
        sim::RW_LOCKS.iter().filter(|row| is_measured(row.role))
    sets::Simulated: |row| Lock::named(row.described.name), sets::SIMULATED.iter();
        "sets" "Sets, by name; by default, all that can be simulated"
    simulated::Row: |row| Lock::named(row.described.name),
        simulated::ROWS.iter(), simulated::ROWS.iter().filter(|row| has_ranges(row));
        "locks" "Locks over keys, by name; by default, those that have ranges"
}

impl Known for &'static registry::Lock {
    const ABOUT: &'static str = "Locks, by name; all of them by default. Some take parameters (song:h=4), of which several \
        values make several locks (song:h=1..8, both included, or song:h=1,2,4)";

    fn known(self) -> Lock {
        range(self)
    }

    fn all() -> Vec<Self> {
        registry::LOCKS.iter().collect()
    }

    fn parse(text: &str) -> Result<Vec<Self>, String> {
        registry::parse(text, &[&registry::LOCKS])
    }
}

/// Implements [`Known`] for kernels.
macro_rules! kernels {
    ($Kernel:ty) => {
        impl Known for $Kernel {
            const ARGUMENT: &'static str = "kernels";
            const ABOUT: &'static str = "The operations to repeat; all of them by default";

            fn known(self) -> Lock {
                Lock::named(&self.to_string())
            }

            fn all() -> Vec<Self> {
                Self::ALL.to_vec()
            }
        }
    };
}

kernels!(Kernel);
#[cfg(feature = "sim")]
kernels!(spanlock_workbench_sim::micro::Kernel);

/// The range locks as a list for users has them.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let entry = |lock: &registry::Lock| Entry {
        lock: lock.name.to_owned(),
        family: lock.family.to_owned(),
        about: lock.about.to_owned(),
        use_when: lock.when.to_owned(),
        avoid_when: lock.avoid.to_owned(),
        cost: format!("atomic read-modify-writes, uncontended: {}", lock.rmw),
        memory: lock.memory.to_owned(),
        source: lock.source.to_owned(),
        parameters: lock.params.iter().map(ToString::to_string).collect(),
    };
    registry::LOCKS.iter().map(entry).collect()
}
