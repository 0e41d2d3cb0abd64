//! Traffic of an address space, replayed: what a run yields.

use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

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

/// What operations waited for, and what became of their speculations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// Calls of `mprotect`.
    pub protects: u64,
    /// What became of the ranges that `mprotect` locked.
    pub speculations: Speculations,
    /// Acquisitions by operation and mode.
    pub waits: Vec<Waits>,
    /// What happened inside a lock that has a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeWaits>,
}

/// What became of ranges that were locked in the hope that they suffice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculations {
    /// Changes that were made in place, under a part of the space.
    pub in_place: u64,
    /// Changes that inserted or removed areas, under a part of the space.
    pub structural: u64,
    /// Attempts that began anew because an area had changed.
    pub retried: u64,
    /// Attempts that began anew with more.
    pub widened: u64,
    /// Attempts that began anew with everything, because they insert or remove areas.
    pub whole_for_structure: u64,
    /// Attempts that began anew with everything, because they need more than they had locked.
    pub whole_for_range: u64,
    /// Attempts that began anew with everything, because they were retried too often.
    pub whole_for_retries: u64,
}

/// The acquisitions by an operation in one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The operation.
    pub operation: Name,
    /// The mode.
    pub mode: Mode,
    /// Acquisitions.
    pub acquired: u64,
    /// Those of them that waited.
    pub waited: u64,
    /// Nanoseconds that they waited, together.
    pub ns: u64,
    /// Nanoseconds that the longest waited.
    pub longest_ns: u64,
}

/// What requests of a tree lock waited for (P1, Fig. 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeWaits {
    /// Requests, those among them that were refused.
    pub requests: u64,
    /// Nanoseconds that they waited for the spin lock of the tree, together.
    pub tree_ns: u64,
    /// Nanoseconds that they waited for other requests, together.
    pub range_ns: u64,
}

impl TreeWaits {
    /// Nanoseconds that a request waited for the spin lock, on average.
    #[must_use]
    pub fn average_ns(&self) -> f64 {
        self.tree_ns as f64 / self.requests.max(1) as f64
    }

    /// Of a hundred nanoseconds that requests waited, those for the spin lock; zero if none waited.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.tree_ns as f64 / (self.tree_ns + self.range_ns).max(1) as f64 * 100.0
    }
}

/// How the lock is acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// With others that read.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

impl Stat {
    /// Nanoseconds that an acquisition in this mode waited, on average over all operations; zero if there was none.
    #[must_use]
    pub fn average_ns(&self, mode: Mode) -> f64 {
        let of_mode = self.waits.iter().filter(|waits| waits.mode == mode);
        let (acquired, ns) = of_mode.fold((0, 0), |(acquired, ns), waits| {
            (acquired + waits.acquired, ns + waits.ns)
        });
        ns as f64 / acquired.max(1) as f64
    }

    /// Of a hundred calls of `mprotect`, so many.
    #[must_use]
    pub fn percent(&self, count: u64) -> f64 {
        count as f64 / self.protects.max(1) as f64 * 100.0
    }
}

impl Waits {
    /// These and others of the same operation in the same mode.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            acquired: self.acquired + other.acquired,
            waited: self.waited + other.waited,
            ns: self.ns + other.ns,
            longest_ns: self.longest_ns.max(other.longest_ns),
            ..self
        }
    }

    /// Nanoseconds that one of them waited, on average.
    #[must_use]
    pub fn average_ns(&self) -> f64 {
        self.ns as f64 / self.acquired.max(1) as f64
    }
}
