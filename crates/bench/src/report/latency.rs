//! How long acquisitions take.

use super::{Table, Width, source, wrapped};
use crate::latency::Record;
use crate::provenance::Provenance;
use crate::times::AcquireTimes;

/// A table with two rows for each lock and number of threads: first acquisitions of a part, and later ones.
#[must_use]
pub fn latency(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let header = ["lock", "threads", "part locked", "times"];
    let mut table = Table::new(3, header.into_iter().chain(AcquireTimes::COLUMNS));
    let mut ordered: Vec<_> = records.iter().collect();
    ordered.sort_by_key(|record| record.threads); // stable: locks stay in order
    for record in ordered {
        let phases = [
            ("first", record.first_count, record.first_ns),
            ("again", record.again_count, record.again_ns),
        ];
        for (phase, count, times) in phases {
            let names = [
                record.lock.clone(),
                record.threads.to_string(),
                phase.to_owned(),
                count.to_string(),
            ];
            let times = times.columns().map(|time| time.to_string());
            table.add_row(names.into_iter().chain(times));
        }
    }
    let text = format!(
        "nanoseconds until one part of a resource is held, two looks at the clock included; {} parts\n\
         first: nobody has locked the part before; again: random parts, after all were locked\n{}\n{}",
        records.first().map_or(0, |record| record.parts),
        table.text(width),
        source(provenance)
    );
    wrapped(&text, width)
}
