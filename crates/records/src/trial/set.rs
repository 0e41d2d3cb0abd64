//! Ordered sets (P1 §7.1): threads search, insert and remove keys of a set that is half full.

use crate::trial::named::by_name;
use serde::{Deserialize, Serialize};

/// Keys from which threads choose, by default: as in P1, of which half are in the set.
pub const KEYS: usize = 8 << 20;

/// The most keys.
pub const MAX_KEYS: usize = 1 << 28;

/// The longest stall, in cycles.
pub const MAX_STALL: u32 = 1_000_000;

/// The keys that a scan looks at.
pub const SCANNED: usize = 100;

/// How often a key is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// As often as any other.
    Uniform,
    /// The n-th key, in a random order, with a probability in proportion to 1/n.
    Zipfian,
}

impl Chosen {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipfian];
}

by_name!(Chosen);

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// P1's: of a hundred operations 80 search, 10 insert and 10 remove.
    Updates,
    /// 70 search, 10 look at [`SCANNED`] keys in a row, 10 insert and 10 remove.
    Scans,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Updates, Self::Scans];
}

by_name!(Mix);

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Keys from which threads choose.
    pub keys: usize,
    /// How often each is chosen.
    pub chosen: Chosen,
    /// What threads do.
    pub mix: Mix,
    /// Cycles that each operation takes besides, on a simulated machine. Its caches have no limit, so searches there
    /// lack the misses of a set that exceeds real caches.
    #[serde(default)]
    pub stall: u32,
}

/// One run.
pub type Trial = crate::trial::run::Trial<Load>;

/// The description of a set.
#[derive(Debug, Clone, Copy)]
pub struct SetDescribed {
    /// Its name for users.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}
