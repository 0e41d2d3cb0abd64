//! Traffic of address spaces.

use super::layout::Table;
use super::{Width, groups, or_dash};
use spanlock_records::record::Record;
use spanlock_records::stats::{Summary, distinct};
use spanlock_records::trial::vm::{Mode, Speculations, Stat, Waits};
use std::fmt::Write;

/// What becomes of calls of `mprotect`: the word for it, and how many.
type Outcome = (&'static str, fn(Speculations) -> u64);

/// All that becomes of them.
const OUTCOMES: [Outcome; 7] = [
    ("in place %", |of| of.in_place),
    ("structural %", |of| of.structural),
    ("retried %", |of| of.retried),
    ("widened %", |of| of.widened),
    ("whole for structure %", |of| of.whole_for_structure),
    ("whole for range %", |of| of.whole_for_range),
    ("whole for retries %", |of| of.whole_for_retries),
];

/// For each trace or pattern at its largest number of threads: how long acquisitions waited on average, and what became
/// of a hundred calls of `mprotect`; and the waits by operation.
pub(super) fn stats(records: &[Record], width: Width) -> String {
    let mut text = String::new();
    let counted = records.iter().filter(|record| record.space.is_some());
    for runs in groups(counted, |record| record.panel) {
        let most = runs.iter().map(|run| run.threads).max().unwrap_or(0);
        let here = runs.iter().filter(|run| run.threads == most);
        let here: Vec<&Record> = here.copied().collect();
        let names = OUTCOMES.map(|(name, _)| name);
        let names = ["readers' ns", "writers' ns"].into_iter().chain(names);
        let mut table = Table::new(1, ["lock"], names);
        for lock in distinct(here.iter().map(|run| &run.lock.name)) {
            let stats = here.iter().filter(|run| run.lock.name == *lock);
            let stats: Vec<_> = stats.filter_map(|run| run.space.as_ref()).collect();
            let cell = |value: &dyn Fn(&Stat) -> f64| {
                let all = Summary::of(stats.iter().map(|stat| value(stat)));
                or_dash(all.map(|all| format!("{:.1}", all.median)))
            };
            let waits = [Mode::Shared, Mode::Exclusive];
            let waits = waits.map(|mode| cell(&|stat| stat.average_ns(mode)));
            let outcomes =
                OUTCOMES.map(|(_, of)| cell(&|stat| stat.percent(of(stat.speculations))));
            table.add_row([lock], waits.into_iter().chain(outcomes));
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
