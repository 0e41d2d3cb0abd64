//! ArrBench, panel by panel, and what follows.

use super::compared::{concluded, panels};
use super::{lines, source, table};
use crate::arr::Record;
use crate::compare::{Field, distinct};
use crate::provenance::Provenance;
use crate::times::AcquireTimes;

/// Tables: one per variant and share of reads, a row for each lock, a column for each number of threads; and what
/// follows.
#[must_use]
pub fn arr(records: &[Record], provenance: &Provenance) -> String {
    let field = Field::of(records);
    let mut text = panels(&field, |panel| {
        format!("ArrBench, {panel}: million operations per second by threads")
    });
    if let Some(latency) = latency_table(records) {
        text += &format!("\nacquisition in ns, worst repeat\n{latency}");
    }
    text + &concluded(&field, provenance.cores) + &source(provenance)
}

/// The largest of each percentile over the repeats, if acquisitions were timed.
fn latency_table(records: &[Record]) -> Option<String> {
    let timed = || records.iter().filter(|record| record.acquire_ns.is_some());
    timed().next()?;
    let mut table = table(std::iter::once("run").chain(AcquireTimes::COLUMNS));
    let run = |record: &Record| {
        let Record {
            variant,
            reads,
            threads,
            lock,
            ..
        } = record;
        format!("{variant}, {reads} % reads, {threads} threads, {lock}")
    };
    for name in distinct(timed().map(run)) {
        let times = timed().filter(|record| run(record) == name);
        let worst = times
            .filter_map(|record| record.acquire_ns)
            .map(|times| times.columns())
            .reduce(|a, b| std::array::from_fn(|k| a[k].max(b[k])))
            .unwrap_or_default();
        table.add_row(std::iter::once(name).chain(worst.iter().map(u64::to_string)));
    }
    Some(lines(&table))
}
