//! Locks over keys: threads lock single keys and ranges of keys that are byte strings, as YCSB chooses them.

use crate::trial::named::by_name;
pub use crate::trial::set::{Chosen, SetDescribed as Described};
use serde::{Deserialize, Serialize};

/// Keys from which threads choose, by default.
pub const KEYS: usize = 1 << 16;

/// The most keys.
pub const MAX_KEYS: usize = 1 << 24;

/// The bytes of a key, at least: its number must find room.
pub const MIN_LENGTH: usize = 16;

/// The most.
pub const MAX_LENGTH: usize = 1 << 12;

/// The most keys that a range has.
pub const SCANNED: usize = 16;

/// What threads lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// A key.
    Points,
    /// Up to [`SCANNED`] keys in a row.
    Scans,
    /// A key of the thread's own part of them.
    Own,
    /// Keys in a row in that part.
    Apart,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Points, Self::Scans, Self::Own, Self::Apart];

    /// Whether threads keep to their own parts.
    #[must_use]
    pub fn is_disjoint(self) -> bool {
        matches!(self, Self::Own | Self::Apart)
    }

    /// Whether ranges are locked.
    #[must_use]
    pub fn is_scan(self) -> bool {
        matches!(self, Self::Scans | Self::Apart)
    }

    /// In words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Scans => "scans",
            Self::Own => "points in own parts",
            Self::Apart => "scans in own parts",
        }
    }
}

by_name!(Access);

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Keys from which threads choose.
    pub keys: usize,
    /// The bytes of a key.
    pub length: usize,
    /// How often each is chosen.
    pub chosen: Chosen,
    /// What is locked.
    pub access: Access,
    /// Of a hundred operations, those that lock alone.
    pub writes: u8,
}

/// One run.
pub type Trial = crate::trial::run::Trial<Load>;
