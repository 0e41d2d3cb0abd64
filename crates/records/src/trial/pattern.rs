//! Patterns: what users do with range locks and no paper measures, and what is meant to hurt a lock that adapts to what
//! it saw. The table of their sizes is [`Pattern::shape`].

use crate::trial::arr::{Percent, SLOTS, Timing};
use crate::trial::named::by_name;
use crate::trial::setting::Resource;
use serde::{Deserialize, Serialize};

/// A pattern of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Many files, each with a lock of its own. Few are popular (Zipf's law); ranges are of all sizes.
    Files,
    /// Random pages of one file.
    Pages,
    /// One thread appends to a log and locks everything behind its end; the others use random records before the end.
    Append,
    /// Each thread uses its own part, then all use random ranges, then each its own part, and so on.
    Phases,
    /// The same with short phases: they end about when a lock has adapted to them.
    Restless,
    /// Parts that pass to the next thread after each operation.
    Alternate,
    /// Parts that pass to the next thread when it has used its part a few times.
    Owners,
    /// Each thread uses its own part, and now and then writes everything.
    Sweep,
    /// One thread writes everything, over and over, with pauses; the others use random ranges. Only its acquisitions
    /// are timed.
    Everything,
    /// Each thread uses its own part and soon ends; another takes its place.
    Churn,
    /// Many locks, which each thread uses once, one after the other; then again.
    Once,
}

by_name!(Pattern);

/// The largest number of threads: each must have a part of its own.
pub const MAX_THREADS: usize = SLOTS;

/// The most threads that exist beside those that work.
pub const MAX_BYSTANDERS: u16 = 1000;

/// Bytes of a line, the smallest part of a resource.
pub const LINE_BYTES: usize = 64;

/// Operations of all threads in a long phase: many times as many as a lock needs to adapt. A simulated run of a few
/// milliseconds has several such phases.
pub const LONG: u64 = 1024;

/// Operations of all threads in a short phase, and of one thread between two sweeps and until a part passes on: about
/// as many as a lock needs to adapt, so that it adapts in vain.
pub const SHORT: u64 = 64;

/// Operations of a thread that another replaces: about as long as it takes to start one.
pub const LIFE: u64 = 512;

/// What the locks of a pattern are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of locks.
    pub locks: usize,
    /// Lines of the resource of each.
    pub lines: usize,
    /// All ranges begin and end at multiples of so many lines.
    pub grain: usize,
}

impl Shape {
    /// The resource of each lock, in bytes.
    #[must_use]
    pub const fn resource(self) -> Resource {
        Resource {
            units: (self.lines * LINE_BYTES) as u64,
            grain: (self.grain * LINE_BYTES) as u64,
        }
    }
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Files,
        Self::Pages,
        Self::Append,
        Self::Phases,
        Self::Restless,
        Self::Alternate,
        Self::Owners,
        Self::Sweep,
        Self::Everything,
        Self::Churn,
        Self::Once,
    ];

    /// Its sizes.
    #[must_use]
    pub const fn shape(self) -> Shape {
        let (locks, lines, grain) = match self {
            // Files of 64 KiB: 16 MiB in all.
            Self::Files => (256, 1024, 1),
            // Pages of 4 KiB: 16 MiB in all.
            Self::Pages => (1, 1 << 18, 64),
            // Records of 512 bytes: 4 MiB in all.
            Self::Append => (1, 1 << 16, 8),
            Self::Once => (100_000, 1, 1),
            // An array as ArrBench's.
            Self::Phases
            | Self::Restless
            | Self::Alternate
            | Self::Owners
            | Self::Sweep
            | Self::Everything
            | Self::Churn => (1, SLOTS, 1),
        };
        Shape {
            locks,
            lines,
            grain,
        }
    }
}

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// What threads do.
    pub pattern: Pattern,
    /// How many operations read, of those that the pattern leaves to chance.
    pub reads: Percent,
    /// Threads that exist meanwhile and sleep. Each has used another lock of the same kind once.
    pub bystanders: usize,
    /// Whether acquisitions are timed.
    pub timing: Timing,
}

/// One run, of up to [`MAX_THREADS`] threads.
pub type Trial = crate::trial::run::Trial<Load>;
