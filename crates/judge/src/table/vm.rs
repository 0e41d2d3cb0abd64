//! Traffic of address spaces.

use super::layout::Table;
use super::throughput::panels;
use super::verdicts::concluded;
use super::{Width, groups, report};
use crate::compare::Dataset;
use crate::record::Record;
use crate::record::provenance::Provenance;
use crate::record::vm::Stat;
use crate::stats::{Summary, distinct};
use std::fmt::Write;

/// A table of throughput for each trace or pattern, the waits and speculations, and the conclusions.
#[must_use]
pub fn vm(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let text = panels(records, width, |panel| {
        format!("{panel}: million calls and faults per second by threads")
    });
    let text = text + &stats(records, width) + &concluded(&Dataset::of(records), provenance.cores);
    report(&text, provenance, width)
}

type Column = (&'static str, fn(&Stat) -> f64);

/// What is counted of each lock, with the word for it.
const COLUMNS: [Column; 6] = [
    ("readers' ns", |stat| stat.read_wait_ns),
    ("writers' ns", |stat| stat.write_wait_ns),
    ("in place %", |stat| percent(stat, stat.in_place)),
    ("structural %", |stat| percent(stat, stat.structural)),
    ("retried %", |stat| percent(stat, stat.retried)),
    ("whole %", |stat| percent(stat, stat.whole)),
];

fn percent(stat: &Stat, count: u64) -> f64 {
    count as f64 / stat.protects.max(1) as f64 * 100.0
}

/// For each trace or pattern at its largest number of threads: how long acquisitions waited on average, and what became
/// of a hundred calls of `mprotect`.
pub(super) fn stats(records: &[Record], width: Width) -> String {
    let mut text = String::new();
    for runs in groups(records, |record| record.panel) {
        let most = runs.iter().map(|run| run.threads).max().unwrap_or(0);
        let here: Vec<_> = runs.iter().filter(|run| run.threads == most).collect();
        let columns = COLUMNS.map(|(name, _)| name);
        let mut table = Table::new(1, ["lock"], columns);
        for lock in distinct(here.iter().map(|run| &run.lock.name)) {
            let stats = here.iter().filter(|run| run.lock.name == *lock);
            let stats: Vec<_> = stats.filter_map(|run| run.space.as_ref()).collect();
            let cells = COLUMNS.map(|(_, value)| {
                let values = stats.iter().map(|stat| value(stat));
                Summary::of(values)
                    .map_or_else(|| "-".to_owned(), |all| format!("{:.1}", all.median))
            });
            table.add_row([lock], cells);
        }
        let panel = runs[0].panel;
        let table = table.text(width);
        let _ = writeln!(
            text,
            "{panel}, {most} threads: average wait of an acquisition, and outcomes per hundred mprotect\n{table}"
        );
    }
    text
}
