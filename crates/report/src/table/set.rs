//! The memory of ordered sets.

use super::layout::{Column, Table};
use super::{Width, report};
use spanlock_records::record::SetMemory;
use spanlock_records::record::provenance::Provenance;

/// The memory of ordered sets.
#[must_use]
pub fn set_memory(memory: &[SetMemory], provenance: &Provenance, width: Width) -> String {
    report(&set_bytes(memory, width), provenance, width)
}

/// The same, to stand beside runs.
#[must_use]
pub fn set_bytes(memory: &[SetMemory], width: Width) -> String {
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
