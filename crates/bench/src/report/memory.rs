//! What locks and holders take of memory.

use super::{Table, Width, or_dash, source, wrapped};
use crate::compare::distinct;
use crate::memory::{Bytes, Record};
use crate::provenance::Provenance;

/// A table with a row for each lock and number of ranges held.
#[must_use]
pub fn memory(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let header = [
        "lock",
        "held at once",
        "idle lock",
        "all holders",
        "per holder",
        "its guard",
        "kept after",
        "per part touched",
    ];
    let mut table = Table::new(2, header);
    for hold in distinct(records.iter().map(|record| record.hold)) {
        for record in records.iter().filter(|record| record.hold == hold) {
            let cell = |bytes: Option<Bytes>| or_dash(bytes.map(|bytes| bytes.to_string()));
            let each = |bytes: Option<Bytes>| {
                or_dash(bytes.map(|bytes| format!("{:.1}", bytes as f64 / hold as f64)))
            };
            table.add_row([
                record.lock.clone(),
                hold.to_string(),
                cell(record.idle_bytes),
                cell(record.held_bytes),
                each(record.held_bytes),
                cell(record.guard_bytes),
                cell(record.kept_bytes),
                each(record.touched_bytes),
            ]);
        }
    }
    let skipped = |record: &Record| Some((record.lock.clone(), record.skipped.clone()?));
    let skipped = distinct(records.iter().filter_map(skipped)).into_iter();
    let skipped = skipped.map(|(lock, why)| format!("- {lock} holds one range at a time: {why}\n"));
    let text = format!(
        "bytes asked of the allocator; one thread, new to locks, in a process of its own for each row\n\
         what is kept once for the process does not count: another thread has used such a lock before\n\
         holders: heap beyond the idle lock's, with what is kept for the thread; guards are apart\n\
         part touched: what a lock keeps of parts that were held one at a time, by a thread that is warm\n{}{}\n{}",
        table.text(width),
        skipped.collect::<String>(),
        source(provenance)
    );
    wrapped(&text, width)
}
