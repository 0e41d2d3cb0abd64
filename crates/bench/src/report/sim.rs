//! Simulated runs.

use super::panel::{LEGEND, Point, panel};
use super::source;
use crate::compare::distinct;
use crate::provenance::Provenance;
use crate::registry::Exclusion;
use crate::sim::{Machine, Record};
use std::fmt::Write;

/// Tables: one per panel, a row for each lock, a column for each number of threads; and what follows.
#[must_use]
pub fn sim<R: Record>(records: &[R], machine: &Machine, provenance: &Provenance) -> String {
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
            panel(&points)
        );
    }
    let (conclusions, _) = R::conclusions(records, machine.contexts());
    let Machine { name, about, .. } = machine;
    format!(
        "{text}{LEGEND}{conclusions}simulated: {name}, {about}\n{}",
        source(provenance)
    )
}
