//! Throughput by locks and threads: a table that several workloads share.

use super::{distinct, lines, measured, or_dash, table};
use crate::registry::{Exclusion, find};
use crate::stats::Summary;

/// What stands below such tables.
pub(super) const LEGEND: &str = "median ±half the distance between extremes; * best, null aside\n";

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) lock: &'a str,
    pub(super) threads: usize,
    /// Operations per second; or why there is none.
    pub(super) ops_per_sec: Result<f64, &'a str>,
}

/// A row for each lock, a column for each number of threads, in million operations per second over all repeats.
pub(super) fn panel(points: &[Point<'_>]) -> String {
    let threads = distinct(points.iter().map(|point| point.threads));
    let locks = distinct(points.iter().map(|point| point.lock));
    let excludes = |name: &str| find(name).is_none_or(|lock| lock.exclusion == Exclusion::Promised);
    let here = |lock: &str, threads: usize| {
        let runs = points
            .iter()
            .filter(move |point| point.lock == lock && point.threads == threads);
        runs.map(|point| point.ops_per_sec).collect::<Vec<_>>()
    };
    let throughput = |lock: &str, threads: usize| {
        Summary::of(here(lock, threads).into_iter().filter_map(Result::ok))
    };
    let best: Vec<f64> = threads
        .iter()
        .map(|&threads| {
            let medians = locks
                .iter()
                .filter(|lock| excludes(lock))
                .filter_map(|lock| throughput(lock, threads));
            medians.fold(0.0, |best, summary| summary.median.max(best))
        })
        .collect();
    let header = std::iter::once("lock".to_owned()).chain(threads.iter().map(usize::to_string));
    let mut table = table(header);
    for lock in &locks {
        let cells = threads.iter().zip(&best).map(|(&threads, &best)| {
            let why = here(lock, threads).into_iter().find_map(Result::err);
            let measured = throughput(lock, threads).map(|summary| {
                let is_best = excludes(lock) && summary.median >= best;
                let mark = if is_best { "*" } else { " " };
                format!("{}{mark}", measured(summary, 1e6, 3))
            });
            or_dash(measured.or(why.map(str::to_owned)))
        });
        table.add_row(std::iter::once((*lock).to_owned()).chain(cells));
    }
    lines(&table)
}
