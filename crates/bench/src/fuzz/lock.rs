//! The locks by name: those of the common tables, on the simulated machine.

use crate::fuzz::{Case, Run, range, rw, set, vm};
use spanlock_records::trial::lock::Role;
use std::fmt;
use std::sync::LazyLock;

type Runner = Box<dyn Fn(&Case) -> Run + Send + Sync>;

/// A lock that cases can run on.
pub struct Lock {
    name: &'static str,
    role: Role,
    run: Runner,
}

static RANGE: LazyLock<Vec<Lock>> = LazyLock::new(range::locks);

static RW: LazyLock<Vec<Lock>> = LazyLock::new(rw::locks);

static VM: LazyLock<Vec<Lock>> = LazyLock::new(vm::variants);
static MAPS: LazyLock<Vec<Lock>> = LazyLock::new(set::maps);

impl Lock {
    pub(crate) fn new(
        name: &'static str,
        role: Role,
        run: impl Fn(&Case) -> Run + Send + Sync + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self { name, role, run }
    }

    /// The range locks, and those that they are compared with.
    pub fn range() -> impl Iterator<Item = &'static Self> {
        RANGE.iter()
    }

    /// The reader-writer locks, and those that they are compared with.
    pub fn rw() -> impl Iterator<Item = &'static Self> {
        RW.iter()
    }

    /// The variants of address spaces.
    pub fn vm() -> impl Iterator<Item = &'static Self> {
        VM.iter()
    }

    /// The ordered maps, by what excludes their updates.
    pub fn maps() -> impl Iterator<Item = &'static Self> {
        MAPS.iter()
    }

    /// The lock of that name, the address space or the map.
    ///
    /// # Errors
    /// The names that were expected instead.
    pub fn find(name: &str) -> Result<&'static Self, String> {
        let mut all = Self::range()
            .chain(Self::rw())
            .chain(Self::vm())
            .chain(Self::maps());
        all.find(|lock| lock.name == name).ok_or_else(|| {
            let names =
                |locks: &[Self]| locks.iter().map(Self::name).collect::<Vec<_>>().join(", ");
            let expected =
                [&RANGE, &RW, &VM, &MAPS].map(|locks| format!("expected one of {}", names(locks)));
            expected.join("; or ")
        })
    }

    /// The name that users give it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is a lock that the library's are compared with.
    #[must_use]
    pub fn is_baseline(&self) -> bool {
        self.role == Role::Baseline
    }

    /// Runs a case on it.
    ///
    /// # Errors
    /// The failure of the case.
    pub fn run(&self, case: &Case) -> Run {
        (self.run)(case)
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
