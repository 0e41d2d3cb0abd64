//! Microbenchmarks.

use super::panel::{Point, legend, panel};
use super::{Width, source, wrapped};
use crate::micro::Record;
use crate::provenance::Provenance;
use crate::registry::Exclusion;

/// A table with a row for each kernel and a column for each number of threads.
#[must_use]
pub fn micro(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let points: Vec<_> = records
        .iter()
        .map(|record| Point {
            lock: record.lock.name(),
            exclusion: Exclusion::Promised,
            column: record.threads,
            ops_per_sec: Ok(record.ops_per_sec),
        })
        .collect();
    let text = format!(
        "microbenchmarks: million operations per second by threads\n{}{}\n{}",
        panel(&points, width),
        legend(),
        source(provenance)
    );
    wrapped(&text, width)
}
