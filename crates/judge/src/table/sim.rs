//! Simulated runs.

use super::costs::percentiles;
use super::throughput::panels;
use super::verdicts::{concluded, conclusions};
use super::vm::stats;
use super::{Width, report};
use crate::compare::{Dataset, LEVEL, rankings};
use crate::record::provenance::Provenance;
use crate::record::times::AcquireTimes;
use crate::record::{Kind, Line, Panel, Record};
use prim_sim::Machine;
use std::fmt::Write;

/// The runs on the first of these machines as tables, and what follows from them; with more machines, the rankings that
/// survive on the others.
#[must_use]
pub fn sim(
    records: &[Record],
    machines: &[Machine],
    provenance: &Provenance,
    width: Width,
) -> String {
    let Some((machine, others)) = machines.split_first() else {
        return report("", provenance, width);
    };
    let Machine { name, about, .. } = machine;
    let here = records.iter().filter(|run| run.machine() == Some(name));
    let here: Vec<_> = here.cloned().collect();
    let mut text = tables(&here, width);
    if others.is_empty() {
        if is_judged(&here) {
            text += &concluded(&Dataset::of(&here), machine.contexts());
        }
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
    let _ = writeln!(text, "simulated: {name}, {about}");
    report(&text, provenance, width)
}

/// What follows from simulated runs, as lines of JSON.
#[must_use]
pub fn sim_findings(records: &[Record], machines: &[Machine]) -> Vec<Line> {
    match machines {
        [machine] if is_judged(records) => conclusions(&Dataset::of(records), machine.contexts()),
        [machine, _, ..] => {
            let rankings = rankings(records, &machine.name).into_iter();
            rankings.map(Line::SimRanking).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the papers' claims are judged below the tables of such runs.
fn is_judged(records: &[Record]) -> bool {
    let kind = records.first().map(|run| run.panel.kind());
    matches!(
        kind,
        Some(
            Kind::Arr
                | Kind::Batch
                | Kind::Blob
                | Kind::Pattern
                | Kind::Set
                | Kind::Store
                | Kind::Vm
        )
    )
}

fn tables(records: &[Record], width: Width) -> String {
    let times = |times: fn(&Record) -> Option<AcquireTimes>| {
        let table = percentiles(records, width, |panel| panel.to_string(), times);
        let table = table.map(|table| {
            format!(
                "\nvirtual nanoseconds until a range is held, two readings of the clock included, worst of all seeds\n{table}"
            )
        });
        table.unwrap_or_default()
    };
    if records.iter().any(|run| run.first_ns.is_some()) {
        return format!(
            "first: nobody has locked the part before\n{}\nagain: random parts, after all were locked\n{}",
            times(|run| run.first_ns),
            times(|run| run.again_ns)
        );
    }
    let title = |panel: Panel| {
        let (_, unit) = panel.unit();
        format!("{panel}: {unit} operations per virtual second by threads")
    };
    let stats = if records.iter().any(|run| run.space.is_some()) {
        stats(records, width)
    } else {
        String::new()
    };
    panels(records, width, title) + &stats + &times(|run| run.acquire_ns)
}
