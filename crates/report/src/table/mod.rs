//! Measurements as tables for people.
//!
//! | module | its tables |
//! |---|---|
//! | `throughput` | throughput by locks and threads: ArrBench, batches, BLOBs, patterns, files, microbenchmarks |
//! | `rw` | reader-writer locks: throughput, and ratios between locks |
//! | `set` | ordered sets: throughput and memory |
//! | `sim` | simulated runs |
//! | `costs` | acquisition times, memory, waiting, uncontended locks, revocation |
//! | `locks` | the lists of locks |
//! | `advice` | the text below tables: what to use by these runs |
//! | `grid` | the table of throughput that the first two share |
//! | `layout` | how a table looks, and its width |
//!
//! A table is a list of columns: each has a head, and a function from a row to the text of its cell.

mod advice;
mod costs;
mod grid;
mod layout;
mod locks;
mod rw;
mod set;
mod sim;
mod throughput;
mod vm;

pub use advice::concluded;
pub use costs::{
    among, many_locks, memory, rw_revocation, rw_uncontended, tasks, uncontended, waiting,
};
pub use layout::Width;
pub use locks::{locks, rw_locks};
pub use rw::{harm, preload};
pub use set::{set_bytes, set_memory};
pub use sim::sim;
pub use throughput::runs;

use layout::{COMMAND, wrapped};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::stats::{Summary, distinct};

/// A report: its text, and the origin of its numbers below. No line is wider than `width`.
fn report(text: &str, provenance: &Provenance, width: Width) -> String {
    let Provenance {
        machine,
        cores,
        kernel,
        commit,
        command,
        ..
    } = provenance;
    let origin = format!(
        "machine: {machine}, {cores} cores, {kernel}\ncommit:  {commit}\n{COMMAND}{command}\n"
    );
    wrapped(&format!("{text}{origin}"), width)
}

/// The explanation below a table of [`measured`] values.
const SPREADS: &str = "median ±half the distance between extremes";

/// The median of several values in some unit, and their spread. A single value has no spread; no value is a dash.
pub(crate) fn measured(summary: Option<Summary>, unit: f64, decimals: usize) -> String {
    or_dash(summary.map(|summary| {
        let median = format!("{:.decimals$}", summary.median / unit);
        match summary.percent() {
            Some(percent) => format!("{median} ±{percent:.0}%"),
            None => median,
        }
    }))
}

/// A value, or a dash.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The records of each key together, in order of first appearance.
fn groups<'a, R, K: PartialEq>(
    records: impl IntoIterator<Item = &'a R> + Clone,
    key: impl Fn(&'a R) -> K,
) -> Vec<Vec<&'a R>> {
    let keys = distinct(records.clone().into_iter().map(&key)).into_iter();
    let group = |wanted: K| {
        let records = records.clone().into_iter();
        records.filter(|&record| key(record) == wanted).collect()
    };
    keys.map(group).collect()
}
