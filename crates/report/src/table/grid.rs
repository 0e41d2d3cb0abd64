//! The table of throughput by locks and numbers, of threads or of what else varies.

use super::layout::Table;
use super::{SPREADS, Width, groups, measured, or_dash};
use spanlock_records::record::Record;
use spanlock_records::stats::{Summary, distinct};
use spanlock_records::trial::lock::Exclusion;

/// The explanation below a [`grid`] of these runs.
pub(super) fn legend(runs: &[Record]) -> String {
    let idle = idle(runs);
    format!("{SPREADS}; * best of those that promise exclusion\n{idle}")
}

/// A line that says in how many of these runs nothing was done, if there are any: their zero is no throughput.
pub(super) fn idle(runs: &[Record]) -> String {
    let idle = runs.iter().filter(|run| run.ops_per_sec == Some(0.0));
    match (idle.count(), runs.len()) {
        (0, _) => String::new(),
        (idle, all) => format!(
            "no operation ended in {idle} of {all} runs: measure for longer, or on a machine that does nothing else\n"
        ),
    }
}

/// What throughput is a multiple of in the table of these runs, and its name: of operations that take long, there are
/// fewer.
pub(super) fn unit<'a>(runs: impl IntoIterator<Item = &'a Record>) -> (f64, &'static str) {
    let most = runs.into_iter().filter_map(|run| run.ops_per_sec);
    match most.fold(0.0, f64::max) {
        most if most > 0.0 && most < 1e5 => (1e3, "thousand"),
        _ => (1e6, "million"),
    }
}

/// A row for each lock and a column for each number, in the unit of its panel over all repeats.
pub(super) fn grid<'a>(
    runs: impl IntoIterator<Item = &'a Record> + Clone,
    column: impl Fn(&Record) -> usize,
    width: Width,
) -> String {
    let (one, _) = unit(runs.clone());
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
            measured(Some(summary), one, 3) + mark
        });
        table.add_row([runs[0].lock.name.clone()], cells);
    }
    table.text(width)
}
