//! Ordered sets.

use super::layout::{Column, Table};
use super::throughput::panels;
use super::verdicts::concluded;
use super::{Width, report};
use crate::compare::Dataset;
use crate::record::provenance::Provenance;
use crate::record::{Record, SetMemory};
use crate::stats::distinct;
use std::fmt::Write;

/// A table for each panel, the bytes of each key, and the conclusions.
#[must_use]
pub fn set(
    records: &[Record],
    memory: &[SetMemory],
    provenance: &Provenance,
    width: Width,
) -> String {
    let mut text = panels(records, width, |panel| {
        format!("{panel}: million operations per second by threads")
    });
    let skipped = records.iter().filter_map(|record| {
        let why = record.skipped.as_ref()?;
        Some((&record.lock.name, why))
    });
    for (set, why) in distinct(skipped) {
        let _ = writeln!(text, "{set} is left out where keys are scanned: {why}");
    }
    text += &bytes(memory, width);
    text += &concluded(&Dataset::of(records), provenance.cores);
    report(&text, provenance, width)
}

/// A table of the bytes of each key.
#[must_use]
pub fn set_memory(memory: &[SetMemory], provenance: &Provenance, width: Width) -> String {
    report(&bytes(memory, width), provenance, width)
}

fn bytes(memory: &[SetMemory], width: Width) -> String {
    let columns: [Column<'_, SetMemory>; 3] = [
        ("set", &|record| record.lock.clone()),
        ("keys", &|record| record.keys.to_string()),
        ("bytes for each key", &|record| {
            format!("{:.1}", record.bytes as f64 / record.keys as f64)
        }),
    ];
    let table = Table::of(1, &columns, memory).text(width);
    format!("\nbytes asked of the allocator, the set itself included\n{table}\n")
}
