//! What was measured, on the standard output: the width of its tables, lines of JSON, and where it comes from.

use super::{columns, print};
use crate::failure::Result;
use spanlock_records::record::Line;
use spanlock_records::record::provenance::Provenance;
use spanlock_report::table::Width;
use std::env;

/// That of tables.
pub(crate) fn width() -> Width {
    columns().map_or(Width::USUAL, Width::of)
}

pub(crate) fn print_lines(lines: impl IntoIterator<Item = Line>) -> Result {
    let lines = lines.into_iter().map(|line| format!("{line}\n"));
    print(&lines.collect::<String>())
}

/// Where results come from, of which `of` knows all but the command line.
pub(crate) fn provenance(of: fn(Vec<String>) -> Provenance) -> Provenance {
    let words = env::args_os().skip(1);
    // An argument that is not valid UTF-8 is a file's name, which may be written inexactly.
    of(words
        .map(|word| word.to_string_lossy().into_owned())
        .collect())
}
