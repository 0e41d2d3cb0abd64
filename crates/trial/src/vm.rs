//! Traffic of an address space, replayed: what a run is asked for, and what it yields.

use serde::{Deserialize, Deserializer, Serialize};
use spanlock_vm_trace::Trace;
use spanlock_vm_trace::metis::Program;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// Where calls and faults come from.
#[derive(Debug, Clone, Copy)]
pub enum Traffic {
    /// A recorded trace, with its name.
    Recorded(Name, &'static Trace),
    /// The pattern of a Metis program, which has as many threads as the run, and so many growths of heaps altogether.
    Pattern(Program, usize),
}

impl Traffic {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> Name {
        match self {
            Self::Recorded(name, _) => *name,
            Self::Pattern(program, _) => Name(program.name()),
        }
    }

    /// The most threads that it occupies.
    #[must_use]
    pub fn most_threads(&self) -> usize {
        match self {
            Self::Recorded(_, trace) => trace.threads(),
            Self::Pattern(..) => spanlock_vm_trace::metis::MAX_THREADS,
        }
    }
}

/// A name that users give: kept for as long as the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(&'static str);

impl Name {
    /// A name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        static ALL: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut all = ALL.lock().expect("nothing panics while it is held");
        if let Some(known) = all.get(name) {
            return Self(known);
        }
        let kept: &'static str = name.to_owned().leak();
        all.insert(kept);
        Self(kept)
    }

    /// Its text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        Ok(Self::new(&Cow::<'_, str>::deserialize(text)?))
    }
}

/// What threads do between calls and faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Nothing.
    FlatOut,
    /// They pass the time that the program took, computing and waiting.
    Recorded,
}

impl Pace {
    /// Both.
    pub const ALL: [Self; 2] = [Self::FlatOut, Self::Recorded];
}

crate::named::by_name!(Pace);

/// The workload and its numbers.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// What is replayed.
    pub traffic: Traffic,
    /// How fast.
    pub pace: Pace,
}

/// One run, but for the variant.
pub type Trial = crate::run::Trial<Load>;

/// Waits for the lock of the space, and what became of speculations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// Acquisitions in shared mode.
    pub reads: u64,
    /// Nanoseconds that they waited, on average.
    pub read_wait_ns: f64,
    /// Acquisitions in exclusive mode.
    pub writes: u64,
    /// Nanoseconds that they waited, on average.
    pub write_wait_ns: f64,
    /// Calls of `mprotect`.
    pub protects: u64,
    /// Of these, those that were made in place, under a part of the space.
    pub in_place: u64,
    /// Those that inserted or removed areas under a part of the space.
    pub structural: u64,
    /// Attempts to make them that began anew with the same or more, but not with everything.
    pub retried: u64,
    /// Attempts that began anew with everything.
    pub whole: u64,
}
