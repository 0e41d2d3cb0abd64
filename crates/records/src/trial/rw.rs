//! The workloads of P2 §5 for reader-writer locks.
//!
//! Numbers are the paper's but for time: it measures for 10 seconds (50 for the table) and takes the median of 7. As
//! source of pauses and choices stands one small generator where the paper has several.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Pools of the paper's figure of interference: powers of two from 1 to this.
pub const MAX_POOL: usize = 8192;

/// The paper's pause of `test_rwlock`'s writer.
pub const PAUSE: u32 = 1000;

/// The longest pause.
pub const MAX_PAUSE: u32 = 1 << 20;

/// The parts of operations that write, of the paper's six figures of RWBench.
pub const WRITES: [f64; 6] = [0.9, 0.5, 0.1, 0.01, 0.001, 0.0001];

/// The paper's work of RWBench inside.
pub const INSIDE: u32 = 10;

/// The paper's most work of RWBench outside.
pub const OUTSIDE: u32 = 199;

/// The most work of RWBench.
pub const MAX_WORK: u32 = 1 << 20;

/// Elements of the hash table to begin with, by default.
pub const ENTRIES: usize = 1 << 16;

/// The most elements.
pub const MAX_ENTRIES: usize = 1 << 24;

/// Lines of older programs lack it.
const fn the_papers_inside() -> u32 {
    INSIDE
}

/// Lines of older programs lack it.
const fn the_papers_outside() -> u32 {
    OUTSIDE
}

/// A workload and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "load", rename_all = "snake_case")]
pub enum Load {
    /// Threads read random locks of a pool (§5.1).
    Interference {
        /// Locks in the pool: up to [`MAX_POOL`].
        pool: usize,
    },
    /// Threads read one after the other, in a ring (§5.2).
    Alternator,
    /// Readers and one writer, with fixed roles (§5.3).
    TestRwlock {
        /// Work of the writer between its writes.
        pause: u32,
    },
    /// Threads read or write by chance (§5.4).
    Rwbench {
        /// The part of operations that write, from 0 to 1.
        writes: f64,
        /// Work inside.
        #[serde(default = "the_papers_inside")]
        inside: u32,
        /// The most work outside: each operation has from none to this.
        #[serde(default = "the_papers_outside")]
        outside: u32,
    },
    /// Lookups, an inserter and an eraser in one table (§5.6).
    HashTable {
        /// Elements to begin with: up to [`MAX_ENTRIES`].
        entries: usize,
    },
    /// Nothing but reading.
    Readers,
}

impl Load {
    /// RWBench with the paper's work.
    #[must_use]
    pub const fn rwbench(writes: f64) -> Self {
        Self::Rwbench {
            writes,
            inside: INSIDE,
            outside: OUTSIDE,
        }
    }

    /// One of each, and the paper's mixtures of RWBench.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let pools = [1, 64, 4096].map(|pool| Self::Interference { pool });
        let mixtures = WRITES.map(Self::rwbench);
        let others = [
            Self::Alternator,
            Self::TestRwlock { pause: PAUSE },
            Self::HashTable { entries: ENTRIES },
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
            Self::Rwbench {
                writes,
                inside,
                outside,
            } => {
                write!(f, "rwbench, {} % writes", writes * 100.0)?;
                match (inside, outside) {
                    (&INSIDE, &OUTSIDE) => Ok(()),
                    _ => write!(f, ", {inside} inside, {outside} outside"),
                }
            }
            Self::HashTable { entries } => write!(f, "hash_table, {entries} entries"),
            Self::Readers => write!(f, "readers"),
        }
    }
}

/// One run.
pub type Trial = crate::trial::run::Trial<Load>;
