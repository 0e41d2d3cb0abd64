//! W1 and W2.

use super::compared::{concluded, panels};
use super::{Width, source, wrapped};
use crate::batch::{RANGE_BYTES, Record};
use crate::compare::{Field, Panel, distinct};
use crate::provenance::Provenance;
use std::fmt::Write;

/// Tables: one per size of batch, a row for each lock, a column for each number of threads; and what follows.
#[must_use]
pub fn batch(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let title = |panel: Panel| {
        let of = match panel {
            Panel::Batch { ranges, .. } => {
                format!("{RANGE_BYTES} bytes of each written, of {ranges}")
            }
            other => other.to_string(),
        };
        format!("{panel}: {of}; million ranges per second by threads")
    };
    let field = Field::of(records);
    let mut text = panels(&field, width, title);
    let skipped = records.iter().filter(|record| record.skipped.is_some());
    for lock in distinct(skipped.map(|record| &record.lock)) {
        let _ = writeln!(
            text,
            "{lock} cannot hold several of these ranges at a time: it runs with a hold of 1 only"
        );
    }
    text += &concluded(&field, provenance.cores);
    wrapped(&(text + &source(provenance)), width)
}
