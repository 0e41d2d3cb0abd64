//! ArrBench, panel by panel, and what follows.

use super::compared::{concluded, panels};
use super::{Table, Width, source, wrapped};
use crate::arr::Record;
use crate::compare::{Field, distinct};
use crate::provenance::Provenance;
use crate::times::AcquireTimes;

/// Tables: one per variant and share of reads, a row for each lock, a column for each number of threads; and what
/// follows.
#[must_use]
pub fn arr(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let field = Field::of(records);
    let mut text = panels(&field, width, |panel| {
        format!("ArrBench, {panel}: million operations per second by threads")
    });
    if let Some(latency) = latency_table(records, width) {
        text += &format!("\nacquisition in ns, worst repeat\n{latency}");
    }
    text += &concluded(&field, provenance.cores);
    wrapped(&(text + &source(provenance)), width)
}

/// The largest of each percentile over the repeats, if acquisitions were timed.
fn latency_table(records: &[Record], width: Width) -> Option<String> {
    let timed = || records.iter().filter(|record| record.acquire_ns.is_some());
    timed().next()?;
    let names = ["panel", "threads", "lock"];
    let mut table = Table::new(3, names.into_iter().chain(AcquireTimes::COLUMNS));
    let run = |record: &Record| {
        let Record {
            variant,
            reads,
            threads,
            lock,
            ..
        } = record;
        let panel = format!("{variant}, {reads} % reads");
        [panel, threads.to_string(), lock.clone()]
    };
    for names in distinct(timed().map(run)) {
        let times = timed().filter(|record| run(record) == names);
        let worst = times
            .filter_map(|record| record.acquire_ns)
            .map(|times| times.columns())
            .reduce(|a, b| std::array::from_fn(|k| a[k].max(b[k])))
            .unwrap_or_default();
        table.add_row(names.into_iter().chain(worst.iter().map(u64::to_string)));
    }
    Some(table.text(width))
}
