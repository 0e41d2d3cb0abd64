//! Throughput by locks and threads.

use super::costs::{by_place, latency, percentiles};
use super::layout::Table;
use super::rw::rw;
use super::verdicts::concluded;
use super::vm::stats;
use super::{SPREADS, Width, groups, measured, or_dash, report};
use crate::compare::Dataset;
use crate::record::batch::{Load, RANGE_BYTES};
use crate::record::blob::{Parts, RECORD_BYTES};
use crate::record::counters::{Event, Rate};
use crate::record::lock::Exclusion;
use crate::record::provenance::Provenance;
use crate::record::{Panel, Record};
use crate::stats::{Summary, distinct};
use std::fmt::Write;

/// Runs of one workload, each compared by its throughput: grids, and what else records have: what was left out, times
/// of acquisitions, parts of reads, waits. Beside them `more` that was measured; then what it all shows.
#[must_use]
pub fn runs(records: &[Record], more: &str, provenance: &Provenance, width: Width) -> String {
    match records.first().map(|record| record.panel) {
        Some(Panel::Rw(_)) => return rw(records, provenance, width),
        Some(Panel::Latency { .. }) => return latency(records, provenance, width),
        _ => {}
    }
    let text = grids(records, width) + more + &compared(records, provenance.cores);
    report(&text, provenance, width)
}

/// The fastest locks and the papers' claims, of workloads that the text below a table judges.
pub(super) fn compared(records: &[Record], cores: usize) -> String {
    if is_judged(records) {
        concluded(&Dataset::of(records), cores)
    } else {
        "\n".to_owned()
    }
}

/// Whether the locks of these runs are judged below their table, or by their lines of JSON.
pub(super) fn is_judged(records: &[Record]) -> bool {
    let is_judged = |run: &Record| {
        use Panel::{Latency, Micro, Rw, Waiting};
        !matches!(run.panel, Latency { .. } | Micro | Rw(_) | Waiting { .. })
    };
    records.first().is_some_and(is_judged)
}

/// The grids of all panels, and what else records have, on hardware or on one simulated machine.
pub(super) fn grids(records: &[Record], width: Width) -> String {
    let simulated = records.iter().any(|record| record.simulated.is_some());
    let (second, times) = if simulated {
        let times = "virtual nanoseconds until a range is held, two readings of the clock included, worst of all seeds";
        ("virtual second", times)
    } else {
        ("second", "acquisition in ns, worst repeat")
    };
    let title = |panel: Panel| {
        let (_, unit) = panel.unit();
        let of = match panel {
            Panel::Arr { .. } => format!("ArrBench, {panel}: {unit} operations"),
            Panel::Batch(Load { ranges, .. }) => {
                format!("{panel}: {RANGE_BYTES} bytes of each written, of {ranges}; {unit} ranges")
            }
            Panel::Blob(_) => format!("{panel}: {unit} records of {RECORD_BYTES} bytes"),
            Panel::Vm { .. } => format!("{panel}: {unit} calls and faults"),
            _ => format!("{panel}: {unit} operations"),
        };
        format!("{of} per {second} by threads")
    };
    let mut text = panels(records, width, title) + &left_out(records);
    if let Some(table) = percentiles(records, width, |record| record.acquire_ns) {
        let _ = write!(text, "\n{times}\n{table}");
    }
    if let Some(parts) = parts(records, width) {
        let _ = write!(
            text,
            "\nmean ns of a read's parts; the lock's share of the first three, in percent. The lock's part includes \
            readings of the clock: without a lock it is nothing else\n{parts}"
        );
    }
    text + &stats(records, width)
}

/// A line for each lock that was not run in a panel, and why.
fn left_out(records: &[Record]) -> String {
    let skipped = records.iter().filter(|record| record.skipped.is_some());
    let why = skipped.map(|record| (&record.lock.name, record.panel, &record.skipped));
    let lines = distinct(why)
        .into_iter()
        .map(|(lock, panel, why)| format!("{lock} is not in {panel}: {}\n", or_dash(why.as_ref())));
    lines.collect()
}

/// A row for each panel, number of threads and lock, with the parts of a read; `None` if there are none.
fn parts(records: &[Record], width: Width) -> Option<String> {
    let timed = records.iter().filter(|record| record.read_ns.is_some());
    let heads = ["lock", "alias", "copy", "check", "lock's share"];
    by_place(timed, "read by", &heads, width, |runs| {
        let mean = |of: fn(&Parts) -> f64, decimals| {
            let parts = runs.iter().filter_map(|run| run.read_ns.as_ref());
            measured(Summary::of(parts.map(of)), 1.0, decimals)
        };
        vec![
            mean(|parts| parts.lock, 0),
            mean(|parts| parts.alias, 0),
            mean(|parts| parts.copy, 0),
            mean(|parts| parts.check, 0),
            mean(|parts| parts.lock_share() * 100.0, 3),
        ]
    })
}

/// A titled table for each panel; below them, the hardware counters.
pub(super) fn panels(records: &[Record], width: Width, title: impl Fn(Panel) -> String) -> String {
    let mut text = String::new();
    for runs in groups(records, |record| record.panel) {
        let grid = grid(runs.iter().copied(), |record| record.threads, width);
        let _ = writeln!(text, "{}\n{grid}", title(runs[0].panel));
    }
    text + &legend() + &counters(records, width)
}

/// The explanation below a [`grid`].
pub(super) fn legend() -> String {
    format!("{SPREADS}; * best of those that promise exclusion\n")
}

/// A row for each lock and a column for each number, in the unit of its panel over all repeats.
pub(super) fn grid<'a>(
    runs: impl IntoIterator<Item = &'a Record> + Clone,
    column: impl Fn(&Record) -> usize,
    width: Width,
) -> String {
    let of_lock = groups(runs.clone(), |run| &run.lock);
    let throughput = |runs: &[&Record], number| {
        let here = runs.iter().filter(|run| column(run) == number);
        Summary::of(here.filter_map(|run| run.ops_per_sec))
    };
    let competes = |runs: &&Vec<&Record>| runs[0].lock.exclusion == Exclusion::Promised;
    let best = |number| {
        let all = of_lock.iter().filter(competes);
        let medians = all.filter_map(|runs| throughput(runs, number));
        medians.fold(0.0, |best, summary| summary.median.max(best))
    };
    let columns = distinct(runs.into_iter().map(&column)).into_iter();
    let columns: Vec<_> = columns.map(|number| (number, best(number))).collect();
    let mut table = Table::new(1, ["lock"], columns.iter().map(|(number, _)| number));
    for runs in &of_lock {
        let cells = columns.iter().map(|&(number, best)| {
            let Some(summary) = throughput(runs, number) else {
                let here = runs.iter().filter(|run| column(run) == number);
                return or_dash(here.filter_map(|run| run.skipped.as_ref()).next());
            };
            let is_best = competes(&runs) && summary.median >= best;
            let mark = if is_best { "*" } else { " " };
            let (unit, _) = runs[0].panel.unit();
            measured(Some(summary), unit, 3) + mark
        });
        table.add_row([runs[0].lock.name.clone()], cells);
    }
    table.text(width)
}

/// Events per operation, if any were counted; and below, why others were not.
fn counters(records: &[Record], width: Width) -> String {
    let rates = || records.iter().flat_map(|record| &record.counters);
    let has = |event: &Event| rates().any(|rate| rate.event == *event && rate.per_op.is_some());
    let events = distinct(rates().map(|rate| rate.event));
    let (present, absent): (Vec<_>, Vec<_>) = events.into_iter().partition(has);
    let mut text = String::new();
    if !present.is_empty() {
        let names: Vec<_> = present.iter().map(|event| event.name()).collect();
        let table = by_place(records.iter(), "lock", &names, width, |runs| {
            let cell = |event: &Event| {
                let rates = runs.iter().flat_map(|run| &run.counters);
                let counted = rates.filter(|rate| rate.event == *event);
                measured(Summary::of(counted.filter_map(|rate| rate.per_op)), 1.0, 1)
            };
            present.iter().map(cell).collect()
        });
        let _ = write!(text, "\nper operation, in user mode\n{}", or_dash(table));
    }
    for event in absent {
        let reason = |rate: &Rate| (rate.event == event).then(|| rate.absent.clone())?;
        let why = or_dash(rates().find_map(reason));
        let _ = writeln!(text, "no {}: {why}", event.name());
    }
    text
}
