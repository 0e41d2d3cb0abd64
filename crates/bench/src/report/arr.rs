//! ArrBench, panel by panel, and where we lose.

use super::panel::{self, LEGEND, Point};
use super::{distinct, lines, source, table};
use crate::arr::Record;
use crate::provenance::Provenance;
use crate::registry::{OURS, RIVALS, exclusion};
use crate::stats::Summary;
use crate::times::AcquireTimes;
use std::fmt::{self, Write};

/// One panel of P1's Figure 3.
type Panel<'a> = (&'a str, u8);

fn panel(record: &Record) -> Panel<'_> {
    (&record.variant, record.reads)
}

/// Operations per second of a lock at a number of threads in a panel, over all repeats.
fn throughput(records: &[Record], at: Panel<'_>, lock: &str, threads: usize) -> Option<Summary> {
    let runs = records
        .iter()
        .filter(|run| panel(run) == at && run.lock == lock && run.threads == threads);
    Summary::of(runs.map(|run| run.ops_per_sec))
}

/// Tables: one per variant and share of reads, a row for each lock, a column for each number of threads.
#[must_use]
pub fn arr(records: &[Record], provenance: &Provenance) -> String {
    let mut text = String::new();
    for at in distinct(records.iter().map(panel)) {
        let (variant, reads) = at;
        let _ = writeln!(
            text,
            "ArrBench, {variant} range, {reads} % reads: million operations per second by threads"
        );
        let here = records.iter().filter(|record| panel(record) == at);
        let points: Vec<_> = here
            .map(|record| Point {
                lock: &record.lock,
                exclusion: exclusion(&record.lock),
                column: record.threads,
                ops_per_sec: Ok(record.ops_per_sec),
            })
            .collect();
        text += &panel::panel(&points);
        text.push('\n');
    }
    text += LEGEND;
    if let Some(latency) = latency_table(records) {
        text += &format!("\nacquisition in ns, worst repeat\n{latency}");
    }
    text.push('\n');
    text += &verdict(records);
    text.push('\n');
    text + &source(provenance)
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

/// Where our lock is slower than a rival's.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    /// `full`, `disjoint` or `random`.
    pub variant: &'a str,
    /// Of a hundred operations, those that read.
    pub reads: u8,
    /// Threads.
    pub threads: usize,
    /// The rival's name.
    pub rival: &'static str,
    /// Our median throughput as a fraction of the rival's.
    pub ratio: f64,
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            variant,
            reads,
            threads,
            rival,
            ratio,
        } = self;
        write!(
            f,
            "{variant} range, {reads} % reads, {threads} threads: {ratio:.2} of {rival}"
        )
    }
}

impl<'a> Comparison<'a> {
    /// All pairs of medians in the same panel at the same number of threads.
    #[must_use]
    pub fn all(records: &'a [Record]) -> Vec<Self> {
        let places = records.iter().map(|record| (panel(record), record.threads));
        let mut all = Vec::new();
        for (at, threads) in distinct(places) {
            let median = |lock| Some(throughput(records, at, lock, threads)?.median);
            for rival in RIVALS {
                if let Some((ours, theirs)) = median(OURS).zip(median(rival)) {
                    let (variant, reads) = at;
                    all.push(Self {
                        variant,
                        reads,
                        threads,
                        rival,
                        ratio: ours / theirs,
                    });
                }
            }
        }
        all
    }
}

fn verdict(records: &[Record]) -> String {
    let rivals = RIVALS.join(" or ");
    let all = Comparison::all(records);
    let below: Vec<_> = all.iter().filter(|one| one.ratio < 1.0).collect();
    if all.is_empty() {
        format!("no run of {OURS} together with {rivals}: nothing to compare\n")
    } else if below.is_empty() {
        format!(
            "{OURS} is at or above {} in every panel\n",
            RIVALS.join(" and ")
        )
    } else {
        let mut text = format!("where {OURS} is below {rivals}:\n");
        for one in below {
            let _ = writeln!(text, "  {one}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, arr};
    use crate::arr::Record;
    use crate::provenance::Provenance;

    fn run(lock: &str, threads: usize, ops_per_sec: f64) -> Record {
        Record {
            variant: "full".to_owned(),
            reads: 80,
            threads,
            lock: lock.to_owned(),
            ops_per_sec,
            repeat: 0,
            seed: 1,
            seconds: 1.0,
            min_ops_per_thread: 1,
            max_ops_per_thread: 1,
            cpu_seconds: None,
            lost_updates: 0,
            acquire_ns: None,
        }
    }

    fn report(records: &[Record]) -> String {
        arr(records, &Provenance::here([]))
    }

    #[test]
    fn medians_decide_where_we_lose() {
        let records = [
            run("list-rw", 1, 2e6),
            run("list-rw", 2, 1e6),
            run("list-rw", 2, 1e6),
            run("kernel-rw", 1, 1e6),
            run("kernel-rw", 2, 4e6),
        ];
        let ratios: Vec<_> = Comparison::all(&records).iter().map(|c| c.ratio).collect();
        assert_eq!(ratios, [2.0, 0.25]);
        let text = report(&records);
        assert!(text.contains("where list-rw is below"), "{text}");
        assert!(text.contains("2 threads: 0.25 of kernel-rw"), "{text}");
        assert!(!text.contains("1 threads:"), "{text}");
    }

    #[test]
    fn the_best_is_marked_and_null_is_not() {
        let text = report(&[
            run("list-rw", 1, 2e6),
            run("kernel-rw", 1, 1e6),
            run("null", 1, 9e6),
        ]);
        assert!(text.contains("2.000 ±0%*"), "{text}");
        assert!(text.contains("9.000 ±0% "), "{text}");
        assert!(text.contains("at or above kernel-rw and range-lock in every panel"));
    }
}
