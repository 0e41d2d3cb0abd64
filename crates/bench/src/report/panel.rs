//! Throughput by locks and threads, or another number: a table that several workloads share.

use super::{SPREADS, Table, Width, measured, or_dash};
use crate::compare::distinct;
use crate::registry::Exclusion;
use crate::stats::Summary;

/// What stands below such tables.
pub(super) fn legend() -> String {
    format!("{SPREADS}; * best, null aside\n")
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) lock: &'a str,
    pub(super) exclusion: Exclusion,
    /// Threads, if these are what columns tell apart.
    pub(super) column: usize,
    /// Operations per second; or why there is none.
    pub(super) ops_per_sec: Result<f64, &'a str>,
}

/// A row for each lock, a column for each number, in million operations per second over all repeats.
pub(super) fn panel(points: &[Point<'_>], width: Width) -> String {
    let columns = distinct(points.iter().map(|point| point.column));
    let locks = distinct(points.iter().map(|point| (point.lock, point.exclusion)));
    let here = |lock: &str, column: usize| {
        let runs = points
            .iter()
            .filter(move |point| point.lock == lock && point.column == column);
        runs.map(|point| point.ops_per_sec).collect::<Vec<_>>()
    };
    let throughput = |lock: &str, column: usize| {
        Summary::of(here(lock, column).into_iter().filter_map(Result::ok))
    };
    let best: Vec<f64> = columns
        .iter()
        .map(|&column| {
            let medians = locks
                .iter()
                .filter(|(_, exclusion)| *exclusion == Exclusion::Promised)
                .filter_map(|(lock, _)| throughput(lock, column));
            medians.fold(0.0, |best, summary| summary.median.max(best))
        })
        .collect();
    let header = std::iter::once("lock".to_owned()).chain(columns.iter().map(usize::to_string));
    let mut table = Table::new(1, header);
    for (lock, exclusion) in locks {
        let cells = columns.iter().zip(&best).map(|(&column, &best)| {
            let why = here(lock, column).into_iter().find_map(Result::err);
            let measured = throughput(lock, column).map(|summary| {
                let is_best = exclusion == Exclusion::Promised && summary.median >= best;
                let mark = if is_best { "*" } else { " " };
                format!("{}{mark}", measured(summary, 1e6, 3))
            });
            or_dash(measured.or(why.map(str::to_owned)))
        });
        table.add_row(std::iter::once(lock.to_owned()).chain(cells));
    }
    table.text(width)
}
