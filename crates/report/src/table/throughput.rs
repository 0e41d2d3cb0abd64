//! Throughput by locks and threads.

use super::advice::compared;
use super::costs::{by_place, latency, percentiles};
use super::grid::{grid, legend, unit};
use super::rw::rw;
use super::vm::stats;
use super::{Width, groups, measured, or_dash, report};
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{Kind, Panel, Record};
use spanlock_records::stats::{Summary, distinct};
use spanlock_records::trial::counters::{Event, Rate};
use spanlock_records::trial::run::Parts;
use std::fmt::Write;

/// Runs of one workload, each compared by its throughput: grids, and what else records have: what was left out, times
/// of acquisitions, parts of reads, waits. Beside them `more` that was measured; then what it all shows.
#[must_use]
pub fn runs(records: &[Record], more: &str, provenance: &Provenance, width: Width) -> String {
    match records.first() {
        Some(run) if run.panel.kind() == Kind::Whole => return rw(records, provenance, width),
        Some(run) if run.first_ns.is_some() => return latency(records, provenance, width),
        _ => {}
    }
    let text = grids(records, width) + more + &compared(records, provenance.cores);
    report(&text, provenance, width)
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
    let title =
        |panel: Panel, unit: &str| format!("{panel}: {unit} operations per {second} by threads");
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
pub(super) fn panels(
    records: &[Record],
    width: Width,
    title: impl Fn(Panel, &str) -> String,
) -> String {
    let mut text = String::new();
    for runs in groups(records, |record| record.panel) {
        let grid = grid(runs.iter().copied(), |record| record.threads, width);
        let (_, unit) = unit(runs.iter().copied());
        let _ = writeln!(text, "{}\n{grid}", title(runs[0].panel, unit));
    }
    text + &legend(records) + &counters(records, width)
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

#[cfg(test)]
mod tests {
    use super::{Event, Panel, Rate, Record, Width, panels};
    use crate::compare::Dataset;
    use crate::compare::tests::{arr, listed, record};
    use crate::table::concluded;

    fn full() -> Panel {
        arr("full", 80)
    }

    #[test]
    fn runs_without_an_operation_are_told() {
        let text = |runs| {
            panels(&listed(full(), runs), Width::USUAL, |panel, _| {
                panel.to_string()
            })
        };
        let told = text("slots 1 0, list-rw 1 1e6");
        assert!(told.contains("no operation ended in "), "{told}");
        assert!(!text("list-rw 1 1e6").contains("no operation"));
    }

    #[test]
    fn the_best_is_marked_and_null_is_not() {
        let runs = listed(full(), "slots 1 2e6, kernel-rw 1 1e6, null 1 9e6");
        let text = panels(&runs, Width::USUAL, |panel, _| panel.to_string());
        let data = Dataset::of(&runs);
        assert!(text.contains("2.000 ±1%*"), "{text}");
        assert!(text.contains("9.000 ±1% "), "{text}");
        let advice = "slots was ahead of all others in 1, level in 0, behind in 0\n";
        assert!(concluded(&data, None).contains(advice));
    }

    #[test]
    fn a_single_run_has_no_spread() {
        let runs = [("list-rw", 2e6), ("kernel-rw", 1e6)];
        let runs = runs.map(|(lock, ops)| record(full(), lock, 1, ops));
        let text = panels(&runs, Width::USUAL, |panel, _| panel.to_string());
        assert!(text.contains("2.000*"), "{text}");
        assert!(!text.contains("0%"), "{text}");
    }

    #[test]
    fn counters_that_are_there_are_shown_and_others_said_to_be_absent() {
        let rate = |event, per_op: Result<f64, &str>| Rate {
            event,
            per_op: per_op.ok(),
            absent: per_op.err().map(str::to_owned),
        };
        let run = |counters| Record {
            counters,
            ..record(full(), "list-rw", 2, 1e6)
        };
        let counted = [
            rate(Event::Cycles, Ok(123.4)),
            rate(Event::L1dMisses, Err("this machine has none")),
        ];
        let text = |counters: &[Rate]| {
            let runs = [run(counters.to_vec()), run(counters.to_vec())];
            panels(&runs, Width::USUAL, |panel, _| panel.to_string())
        };
        let both = text(&counted);
        assert!(
            both.contains("123.4 ±0%") && both.contains("in user mode"),
            "{both}"
        );
        assert!(
            both.contains("no L1d misses: this machine has none\n"),
            "{both}"
        );
        let none = text(&counted[1..]);
        assert!(
            !none.contains("in user mode") && none.contains("no L1d misses"),
            "{none}"
        );
        assert!(!text(&[]).contains("misses"));
    }
}
