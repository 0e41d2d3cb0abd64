//! Measurements as tables for people and as lines of JSON for programs.

mod arr;
mod batch;
mod compared;
mod latency;
mod layout;
mod locks;
mod memory;
mod micro;
mod panel;
mod rw;
mod sim;
mod soak;
mod uncontended;
mod waiting;

pub use arr::arr;
pub use batch::batch;
pub use compared::{conclusion_lines, conclusions};
pub use latency::latency;
pub use layout::Width;
pub use locks::{Entry, entries, locks};
pub use memory::memory;
pub use micro::micro;
pub use rw::{harm, preload, rw, rw_revocation, rw_uncontended};
pub use sim::{sim, sim_panels, sim_times};
pub use soak::soak;
pub use uncontended::uncontended;
pub use waiting::waiting;

use crate::provenance::Provenance;
use crate::stats::Summary;
use layout::{COMMAND, Table, hanging, wrapped};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One line of JSON: what it reports is in its field `workload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "lowercase")]
pub enum Line {
    /// Where the lines that follow come from.
    Meta(Provenance),
    /// A run of ArrBench.
    Arr(crate::arr::Record),
    /// A run of W1 or W2.
    Batch(crate::batch::Record),
    /// The best of each family of locks, in one panel at one number of threads.
    Standing(crate::compare::Standing),
    /// What a paper says, and whether it holds here.
    Claim(crate::compare::Judgement),
    /// A lock that there is.
    Lock(Entry),
    /// A round of a soak of one lock.
    Soak(crate::soak::Record),
    /// Acquisition times of one lock.
    Latency(crate::latency::Record),
    /// What one lock and its holders take of memory.
    Memory(crate::memory::Record),
    /// A run of a microbenchmark.
    Micro(crate::micro::Record),
    /// A run of a workload of reader-writer locks.
    Rw(crate::rw::Record),
    /// A round without contention, of a reader-writer lock.
    #[serde(rename = "rw_uncontended")]
    RwUncontended(crate::rw::uncontended::Record),
    /// What a writer pays for a table of one size.
    #[serde(rename = "rw_revocation")]
    RwRevocation(crate::rw::revocation::Record),
    /// A simulated run of ArrBench.
    #[serde(rename = "sim-arr")]
    SimArr(crate::sim::arr::Record),
    /// A simulated run of W1 or W2.
    #[serde(rename = "sim-batch")]
    SimBatch(crate::sim::batch::Record),
    /// Simulated acquisition times of one lock.
    #[serde(rename = "sim-latency")]
    SimLatency(crate::sim::latency::Record),
    /// What becomes of the order of locks on other machines.
    #[serde(rename = "sim-ranking")]
    SimRanking(crate::sim::sweep::Ranking),
    /// A simulated run of a workload of reader-writer locks.
    #[serde(rename = "sim-rw")]
    SimRw(crate::sim::rw::Record),
    /// A simulated run of a microbenchmark.
    #[serde(rename = "sim-micro")]
    SimMicro(crate::sim::micro::Record),
    /// The machine of the simulated runs that follow.
    #[serde(rename = "sim-machine")]
    SimMachine(crate::sim::Machine),
    /// A round without contention.
    Uncontended(crate::uncontended::Record),
    /// What waiting costs with one lock.
    Waiting(crate::waiting::Record),
}

/// As JSON, on one line, without the line's end.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Reads back what was written.
impl FromStr for Line {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// The list of all reader-writer locks, for people.
#[must_use]
pub fn rw_locks(width: Width) -> String {
    let locks = crate::rw::locks::LOCKS.iter();
    let longest = locks.clone().map(|lock| lock.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(longest + 3);
    let told = locks.map(|lock| {
        let name = format!(" {:<1$}", lock.name, longest + 2);
        hanging(lock.about, &name, &indent, width) + "\n"
    });
    told.collect()
}

/// What stands below every table.
fn source(provenance: &Provenance) -> String {
    let Provenance {
        machine,
        cores,
        kernel,
        commit,
        command,
        ..
    } = provenance;
    format!("machine: {machine}, {cores} cores, {kernel}\ncommit:  {commit}\n{COMMAND}{command}\n")
}

/// What stands below tables of such values.
const SPREADS: &str = "median ±half the distance between extremes";

/// Median and spread, in a unit of so much. A single value has no spread.
fn measured(summary: Summary, unit: f64, decimals: usize) -> String {
    let median = format!("{:.decimals$}", summary.median / unit);
    match summary.percent() {
        Some(percent) => format!("{median} ±{percent:.0}%"),
        None => median,
    }
}

/// What there is, or a dash.
fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}
