//! Simulated runs.

use super::panel::{Point, legend, panel};
use super::{Table, Width, source, wrapped};
use crate::compare::distinct;
use crate::provenance::Provenance;
use crate::registry::Exclusion;
use crate::sim::sweep::{LEVEL, rankings};
use crate::sim::{Machine, Record};
use crate::times::AcquireTimes;
use std::fmt::Write;

/// What ran on the first of these machines, as its workload tells it, and what follows; and which rankings survive on
/// the others.
#[must_use]
pub fn sim<R: Record>(
    records: &[R],
    machines: &[Machine],
    provenance: &Provenance,
    width: Width,
) -> String {
    let Some((machine, others)) = machines.split_first() else {
        return wrapped(&source(provenance), width);
    };
    let Machine { name, about, .. } = machine;
    let here = records
        .iter()
        .filter(|record| record.run().machine == *name);
    let here: Vec<R> = here.cloned().collect();
    let mut text = R::table(&here, width);
    if others.is_empty() {
        text += &R::conclusions(&here, machine.contexts()).0;
    } else {
        let percent = (LEVEL - 1.0) * 100.0;
        let _ = writeln!(
            text,
            "\nwhich rankings survive other machines; differences below {percent:.0} % are ties:"
        );
        for ranking in rankings(records, name) {
            let _ = writeln!(text, "  {ranking}");
        }
        text.push('\n');
    }
    let text = format!("{text}simulated: {name}, {about}\n{}", source(provenance));
    wrapped(&text, width)
}

/// Tables: one per panel, a row for each lock, a column for each number of threads.
#[must_use]
pub fn sim_panels<R: Record>(records: &[R], width: Width) -> String {
    let mut text = String::new();
    for title in distinct(records.iter().map(R::panel)) {
        let here = records.iter().filter(|record| record.panel() == title);
        let points: Vec<_> = here
            .map(|record| Point {
                lock: &record.run().lock,
                exclusion: Exclusion::Promised,
                column: record.run().threads,
                ops_per_sec: Ok(record.run().ops_per_sec),
            })
            .collect();
        let _ = writeln!(
            text,
            "{title}: million operations per virtual second by threads\n{}",
            panel(&points, width)
        );
    }
    text + &legend()
}

/// A table of acquisition times, if there are any: a row for each lock and number of threads, the worst of all seeds.
#[must_use]
pub fn sim_times<R: Record>(
    records: &[R],
    width: Width,
    times: impl Fn(&R) -> Option<AcquireTimes>,
) -> String {
    let place = |record: &R| {
        let run = record.run();
        (record.panel(), run.threads, run.lock.clone())
    };
    let timed = records.iter().filter(|record| times(record).is_some());
    let places = distinct(timed.map(place));
    if places.is_empty() {
        return String::new();
    }
    let names = ["panel", "threads", "lock"];
    let mut table = Table::new(3, names.into_iter().chain(AcquireTimes::COLUMNS));
    for at in places {
        let here = records.iter().filter(|record| place(record) == at);
        let worst = here
            .filter_map(&times)
            .map(|times| times.columns())
            .reduce(|a, b| std::array::from_fn(|k| a[k].max(b[k])))
            .unwrap_or_default();
        let (panel, threads, lock) = at;
        let names = [panel, threads.to_string(), lock];
        table.add_row(names.into_iter().chain(worst.iter().map(u64::to_string)));
    }
    format!(
        "\nvirtual nanoseconds until a range is held, two looks at the clock included, worst of all seeds\n{}",
        table.text(width)
    )
}
