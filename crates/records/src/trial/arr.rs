//! ArrBench (P1 §7.1): threads read or increment ranges of an array, under a range lock.

use crate::trial::named::by_name;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The number of slots.
pub const SLOTS: usize = 256;

/// The largest number of threads: each must have a slot of its own in [`Variant::Disjoint`].
pub const MAX_THREADS: usize = SLOTS;

/// The ranges that are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The whole array.
    Full,
    /// The array divided by the threads, one part for each; traversed as many times as there are threads, so that
    /// an operation is the same work for any number of them.
    Disjoint,
    /// Between two random slots, both included.
    Random,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Disjoint, Self::Random];
}

by_name!(Variant);

/// How many of a hundred operations read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Percent(u8);

impl Percent {
    /// So many of a hundred; `None` if more than all.
    #[must_use]
    pub const fn new(percent: u8) -> Option<Self> {
        if percent <= 100 {
            Some(Self(percent))
        } else {
            None
        }
    }

    /// So many of a hundred.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.parse().ok().and_then(Self::new);
        percent.ok_or_else(|| "expected a whole number from 0 to 100".to_owned())
    }
}

/// What threads do between operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pauses {
    /// Up to so many no-ops, uniformly random.
    UpTo(u32),
    /// The next operation.
    None,
}

impl Pauses {
    /// As in P1.
    pub const P1: Self = Self::UpTo(2048);
}

/// Whether each acquisition is timed, which costs two reads of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// It is not.
    Off,
    /// It is.
    On,
}

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The ranges that are locked.
    pub variant: Variant,
    /// How many operations read.
    pub reads: Percent,
    /// What threads do between operations.
    pub pauses: Pauses,
    /// Whether acquisitions are timed.
    pub timing: Timing,
}

/// One run, of up to [`MAX_THREADS`] threads.
pub type Trial = crate::trial::run::Trial<Load>;
