//! Reader-writer locks under the workloads of P2 §5.
//!
//! | module | what it is |
//! |---|---|
//! | [`target`] | what a lock under measurement offers, the public peers, and the floors |
//! | [`locks`] | all the locks, by name: to add one, add an entry |
//! | [`guarded`] | what locks guard: it shows an update that was lost and a read that was torn |
//! | [`interference`] | readers of random locks of a pool: do locks get in each other's way (§5.1)? |
//! | [`alternator`] | readers one after the other, in a ring (§5.2) |
//! | [`test_rwlock`] | readers and one writer, with fixed roles (§5.3) |
//! | [`rwbench`] | threads that read or write by chance (§5.4) |
//! | [`hash_table`] | lookups, an inserter and an eraser in one table (§5.6) |
//! | [`readers`] | nothing but reading |
//! | [`uncontended`] | what one thread pays |
//! | [`revocation`] | what a writer pays, by the size of the table |
//! | [`handoff`] | how long a cache line takes from one processor to another |
//!
//! Numbers are the paper's but for time: it measures for 10 seconds (50 for the table) and takes the median of 7. As
//! source of pauses and choices stands one small generator where the paper has several.

mod again;
#[cfg(feature = "cpp-peers")]
mod cpp;
pub mod handoff;
pub mod locks;
mod record;
pub mod revocation;
pub mod target;
pub mod uncontended;

pub use crate::loads::{
    alternator, guarded, hash_table, interference, readers, run, rwbench, test_rwlock,
};
pub use record::Record;

use crate::crew::{Run, Schedule, Throughput};
use crate::registry::Exclusion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A workload and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "load", rename_all = "snake_case")]
pub enum Load {
    /// [`interference`].
    Interference {
        /// Locks in the pool: up to [`interference::MAX_POOL`].
        pool: usize,
    },
    /// [`alternator`].
    Alternator,
    /// [`test_rwlock`].
    TestRwlock {
        /// Work of the writer between its writes.
        pause: u32,
    },
    /// [`rwbench`].
    Rwbench {
        /// The part of operations that write, from 0 to 1.
        writes: f64,
    },
    /// [`hash_table`].
    HashTable {
        /// Elements to begin with: up to [`hash_table::MAX_ENTRIES`].
        entries: usize,
    },
    /// [`readers`].
    Readers,
}

impl Load {
    /// One of each, and the paper's mixtures of RWBench.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let pools = [1, 64, 4096].map(|pool| Self::Interference { pool });
        let mixtures = rwbench::WRITES.map(|writes| Self::Rwbench { writes });
        let others = [
            Self::Alternator,
            Self::TestRwlock {
                pause: test_rwlock::PAUSE,
            },
            Self::HashTable {
                entries: hash_table::ENTRIES,
            },
            Self::Readers,
        ];
        pools.into_iter().chain(others).chain(mixtures).collect()
    }

    /// Threads that write or erase, beside those that are counted.
    #[must_use]
    pub const fn more_threads(self) -> usize {
        match self {
            Self::TestRwlock { .. } => 1,
            Self::HashTable { .. } => 2,
            Self::Interference { .. } | Self::Alternator | Self::Rwbench { .. } | Self::Readers => {
                0
            }
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interference { pool: 1 } => write!(f, "interference, 1 lock"),
            Self::Interference { pool } => write!(f, "interference, {pool} locks"),
            Self::Alternator => write!(f, "alternator"),
            Self::TestRwlock { pause } => write!(f, "test_rwlock, pause {pause}"),
            Self::Rwbench { writes } => write!(f, "rwbench, {} % writes", writes * 100.0),
            Self::HashTable { entries } => write!(f, "hash_table, {entries} entries"),
            Self::Readers => write!(f, "readers"),
        }
    }
}

/// One run, but for the lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// What threads do.
    pub load: Load,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// How long.
    pub schedule: Schedule,
    /// What random numbers follow from.
    pub seed: u64,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
}

/// What one thread did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Reads that count.
    pub reads: u64,
    /// Writes that count.
    pub writes: u64,
    /// All writes, also of the warm-up.
    pub wrote: u64,
    /// Reads that saw half of a write.
    pub torn: u64,
}

/// What a run yielded.
#[derive(Debug)]
pub struct Outcome {
    /// Reads and writes together.
    pub work: Throughput,
    /// Reads that count, of all threads.
    pub reads: u64,
    /// Writes that count, of all threads.
    pub writes: u64,
    /// What the guarded data tell.
    pub found: Found,
}

impl Outcome {
    /// Of a run; `lost` tells of all writes how many have left no trace.
    pub(crate) fn of(run: &Run<Tally>, lost: impl FnOnce(u64) -> u64) -> Self {
        let sum = |part: fn(&Tally) -> u64| run.workers.iter().map(part).sum();
        Self {
            work: Throughput::of(run, |tally| tally.reads + tally.writes),
            reads: sum(|tally| tally.reads),
            writes: sum(|tally| tally.writes),
            found: Found {
                lost: lost(sum(|tally| tally.wrote)),
                torn: sum(|tally| tally.torn),
            },
        }
    }

    /// Whether the lock kept what it claims.
    ///
    /// # Errors
    /// What was found that must not be.
    pub fn check(&self, exclusion: Exclusion) -> Result<(), Found> {
        match exclusion {
            Exclusion::Promised if self.found != Found::NOTHING => Err(self.found),
            Exclusion::Promised | Exclusion::None => Ok(()),
        }
    }
}

/// What must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Writes that left no trace, or traces of no write.
    pub lost: u64,
    /// Reads that saw half of a write.
    pub torn: u64,
}

impl Found {
    /// All is well.
    pub const NOTHING: Self = Self { lost: 0, torn: 0 };
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, torn } = self;
        write!(f, "{lost} lost updates, {torn} torn reads")
    }
}
