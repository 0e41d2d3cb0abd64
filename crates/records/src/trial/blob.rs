//! Reads of large objects from an aliasing area (P4 §4.4).

use crate::trial::named::by_name;
use crate::trial::setting::Resource;
use serde::{Deserialize, Serialize};

/// The bytes of a record (P4 §4.4.2: "a payload size of 1 MB").
pub const RECORD_BYTES: usize = 1 << 20;

/// The page size of the extents below.
pub const PAGE_BYTES: usize = 4096;

/// The pages of a record's extents: LeanStore's tiers, of which each is twice the one before, and the rest.
pub const EXTENTS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 1];

/// Records, as in P4 §4.4.2.
pub const RECORDS: usize = 1000;

/// The most records: 64 GiB.
pub const MAX_RECORDS: usize = 1 << 16;

/// The largest cache of a thread.
pub const MAX_CACHE: usize = 64;

/// The area: 4 GiB of addresses, so that threads with full caches find a place at once.
pub const RESOURCE: Resource = Resource {
    units: 4 << 30,
    grain: RECORD_BYTES as u64,
};

/// How often each record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// All alike.
    #[default]
    Uniform,
    /// As YCSB has it: the n-th most frequent one `n^-0.99` times as often as the first.
    Zipfian,
}

impl Draw {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipfian];
}

by_name!(Draw);

/// How much of a record a read reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// All of it, which is copied to the thread's own memory.
    #[default]
    Whole,
    /// Its first word: what is left is the cost of an alias.
    Word,
}

impl Payload {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Word];
}

by_name!(Payload);

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// How often each record is read.
    pub draw: Draw,
    /// How much of it.
    pub payload: Payload,
    /// Aliases that each thread keeps: up to [`MAX_CACHE`].
    pub cache: usize,
    /// Records: from 1 to [`MAX_RECORDS`].
    pub records: usize,
}

/// One run.
pub type Trial = crate::trial::run::Trial<Load>;

/// Where the time of a read goes, on average, in nanoseconds: part of a line of JSON. Each includes a reading of the
/// clock or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// To acquire and to release ranges of the area.
    pub lock: f64,
    /// To make and to hide the alias, without the lock.
    pub alias: f64,
    /// To copy what is read; page faults are in here.
    pub copy: f64,
    /// To check what was copied: not part of a read.
    pub check: f64,
}

impl Parts {
    /// The part of a read that is the lock's, from 0 to 1.
    #[must_use]
    pub fn lock_share(&self) -> f64 {
        let Self {
            lock, alias, copy, ..
        } = self;
        lock / (lock + alias + copy)
    }
}

#[cfg(test)]
mod tests {
    use super::{EXTENTS, PAGE_BYTES, RECORD_BYTES};

    #[test]
    fn the_extents_are_a_record() {
        assert_eq!(EXTENTS.iter().sum::<usize>() * PAGE_BYTES, RECORD_BYTES);
    }
}
