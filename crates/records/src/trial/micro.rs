//! Microbenchmarks of the machine: contended words, and the simplest locks on them.

use crate::trial::named::by_name;
use serde::{Deserialize, Serialize};

/// The operation that is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// An atomic addition to one word.
    Add,
    /// The same by a load and a compare-exchange, until one succeeds.
    CompareExchange,
    /// A lock that is tested, then tested and set.
    Ttas,
    /// A queue lock in which each thread waits on a line of its own.
    Mcs,
    /// A reader-writer lock of one count; one operation of a hundred writes.
    RwCounter,
}

impl Kernel {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Add,
        Self::CompareExchange,
        Self::Ttas,
        Self::Mcs,
        Self::RwCounter,
    ];
}

by_name!(Kernel);

/// The workload, which has no numbers: the kernel takes the place of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load;

/// One run, but for the kernel.
pub type Trial = crate::trial::run::Trial<Load>;
