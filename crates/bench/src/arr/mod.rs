//! ArrBench (P1 §7.1): threads read or increment ranges of an array, under a range lock.
//!
//! An operation locks a range of slots and then adds up what they hold, or adds one to each. Between operations a
//! thread does nothing, for a while of random length. At the end the array must hold exactly what was added: a lock
//! that let two writers meet has most likely lost some of it.

mod array;
mod drive;
mod record;

pub(crate) use array::Ranges;
pub use array::{Array, SLOTS};
pub use drive::run;
pub use record::Record;

use crate::counters::Event;
use crate::crew::{Schedule, Throughput};
use crate::registry::Exclusion;
use crate::times::Times;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The largest number of threads: each must have a slot of its own in [`Variant::Disjoint`].
pub const MAX_THREADS: usize = SLOTS;

/// Which ranges are locked.
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

    /// What users call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Disjoint => "disjoint",
            Self::Random => "random",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

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

/// Whether each acquisition is timed, which costs two looks at the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// It is not.
    Off,
    /// It is.
    On,
}

/// One run of the benchmark, but for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Which ranges are locked.
    pub variant: Variant,
    /// How many operations read.
    pub reads: Percent,
    /// From 1 to [`MAX_THREADS`].
    pub threads: usize,
    /// What threads do between operations.
    pub pauses: Pauses,
    /// How long it lasts.
    pub schedule: Schedule,
    /// What is counted meanwhile.
    pub events: &'static [Event],
    /// Whether acquisitions are timed.
    pub timing: Timing,
    /// Random numbers follow from this, from `repeat` and from the thread's number.
    pub seed: u64,
    /// Which of several equal runs it is, from 0.
    pub repeat: u32,
}

/// What a run yielded.
#[derive(Debug)]
pub struct Outcome {
    /// What was done in the measured time.
    pub work: Throughput,
    /// Nanoseconds that acquisitions took, if they were timed.
    pub acquire: Option<Times>,
    /// What writers added to the array, from start to end.
    pub added: u64,
    /// What it held in the end.
    pub found: u64,
}

impl Outcome {
    /// Holds the lock to what it claims.
    ///
    /// # Errors
    /// When updates were lost although the lock promises exclusion.
    pub fn check(&self, exclusion: Exclusion) -> Result<(), LostUpdates> {
        let Self { added, found, .. } = *self;
        if added == found || exclusion == Exclusion::None {
            Ok(())
        } else {
            Err(LostUpdates { added, found })
        }
    }
}

/// A lock let holders meet that exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostUpdates {
    /// What writers added to the array.
    pub added: u64,
    /// What it held in the end.
    pub found: u64,
}

impl fmt::Display for LostUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, found } = self;
        write!(
            f,
            "the array holds {found} where {added} was added: holders met that exclude each other"
        )
    }
}

impl std::error::Error for LostUpdates {}
