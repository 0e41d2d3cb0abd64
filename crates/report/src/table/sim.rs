//! Simulated runs.

use super::advice::compared;
use super::costs::phases;
use super::throughput::grids;
use super::{Width, report};
use crate::compare::{LEVEL, rankings};
use machines::Machine;
use spanlock_records::record::Record;
use spanlock_records::record::provenance::Provenance;
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
        text += &compared(&here, machine.contexts());
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

/// Of latency, a table for each phase; else the grids.
fn tables(records: &[Record], width: Width) -> String {
    if records.iter().all(|run| run.first_ns.is_none()) {
        return grids(records, width);
    }
    phases(records, "virtual nanoseconds", width)
}
