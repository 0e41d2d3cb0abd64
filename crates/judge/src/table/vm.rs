//! Traffic of address spaces.

use super::layout::Table;
use super::{Width, groups};
use crate::record::Record;
use crate::record::vm::{Mode, Speculations, Stat, Waits};
use crate::stats::{Summary, distinct};
use std::fmt::Write;

type Column = (&'static str, fn(&Stat) -> f64);

/// What is counted of each lock, with the word for it.
const COLUMNS: [Column; 9] = [
    ("readers' ns", |stat| stat.average_ns(Mode::Shared)),
    ("writers' ns", |stat| stat.average_ns(Mode::Exclusive)),
    ("in place %", |stat| percent(stat, |of| of.in_place)),
    ("structural %", |stat| percent(stat, |of| of.structural)),
    ("retried %", |stat| percent(stat, |of| of.retried)),
    ("widened %", |stat| percent(stat, |of| of.widened)),
    ("whole for structure %", |stat| {
        percent(stat, |of| of.whole_for_structure)
    }),
    ("whole for range %", |stat| {
        percent(stat, |of| of.whole_for_range)
    }),
    ("whole for retries %", |stat| {
        percent(stat, |of| of.whole_for_retries)
    }),
];

fn percent(stat: &Stat, of: impl Fn(Speculations) -> u64) -> f64 {
    stat.percent(of(stat.speculations))
}

/// For each trace or pattern at its largest number of threads: how long acquisitions waited on average, and what became
/// of a hundred calls of `mprotect`; and the waits by operation.
pub(super) fn stats(records: &[Record], width: Width) -> String {
    let mut text = String::new();
    let counted = records.iter().filter(|record| record.space.is_some());
    for runs in groups(counted, |record| record.panel) {
        let most = runs.iter().map(|run| run.threads).max().unwrap_or(0);
        let here = runs.iter().filter(|run| run.threads == most);
        let here: Vec<&Record> = here.copied().collect();
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
        if let Some(waits) = waits(&here) {
            let table = waits.text(width);
            let _ = writeln!(text, "the operations that waited, of all runs\n{table}");
        }
    }
    text
}

/// A row for each operation in each mode that waited, as in `/proc/lock_stat`.
fn waits(runs: &[&Record]) -> Option<Table> {
    let values = ["acquired", "waited %", "average ns", "longest us"];
    let mut table = Table::new(3, ["lock", "operation", "mode"], values);
    let mut is_empty = true;
    for lock in distinct(runs.iter().map(|run| &run.lock.name)) {
        let stats = runs.iter().filter(|run| run.lock.name == *lock);
        let stats = stats.filter_map(|run| run.space.as_ref());
        let all: Vec<&Waits> = stats.flat_map(|stat| &stat.waits).collect();
        for kind in distinct(all.iter().map(|waits| (waits.operation, waits.mode))) {
            let of_kind = all
                .iter()
                .filter(|waits| (waits.operation, waits.mode) == kind);
            let sum = of_kind.copied().copied().reduce(Waits::with)?;
            if sum.waited == 0 {
                continue;
            }
            is_empty = false;
            let (operation, mode) = kind;
            let names = [lock.as_str(), operation.text(), mode.name()];
            let cells = [
                sum.acquired.to_string(),
                format!("{:.1}", sum.waited as f64 / sum.acquired as f64 * 100.0),
                format!("{:.0}", sum.average_ns()),
                format!("{:.1}", sum.longest_ns as f64 / 1e3),
            ];
            table.add_row(names, cells);
        }
    }
    (!is_empty).then_some(table)
}
