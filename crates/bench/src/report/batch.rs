//! W1 and W2.

use super::panel::{LEGEND, Point, panel};
use super::{distinct, source};
use crate::batch::{RANGE_BYTES, Record};
use crate::provenance::Provenance;
use crate::registry::exclusion;
use std::fmt::Write;

/// Tables: one per size of batch, a row for each lock, a column for each number of threads.
#[must_use]
pub fn batch(records: &[Record], provenance: &Provenance) -> String {
    let mut text = String::new();
    let kind = |record: &Record| (record.hold, record.ranges);
    for (hold, ranges) in distinct(records.iter().map(kind)) {
        let workload = match hold {
            1 => "W1, ranges held one at a time".to_owned(),
            _ => format!("W2, {hold} ranges held together"),
        };
        let _ = writeln!(
            text,
            "{workload}: {RANGE_BYTES} bytes of each written, of {ranges}; million ranges per second by threads"
        );
        let here = records
            .iter()
            .filter(|record| kind(record) == (hold, ranges));
        let points: Vec<_> = here
            .map(|record| Point {
                lock: &record.lock,
                exclusion: exclusion(&record.lock),
                column: record.threads,
                ops_per_sec: record
                    .ops_per_sec
                    .ok_or(record.skipped.as_deref().unwrap_or("not run")),
            })
            .collect();
        text += &panel(&points);
        text.push('\n');
    }
    text += LEGEND;
    let skipped = records.iter().filter(|record| record.skipped.is_some());
    for lock in distinct(skipped.map(|record| &record.lock)) {
        let _ = writeln!(
            text,
            "{lock} cannot hold several of these ranges at a time: it runs with a hold of 1 only"
        );
    }
    text.push('\n');
    text + &source(provenance)
}
