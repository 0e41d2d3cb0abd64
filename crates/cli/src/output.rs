//! The standard output: how wide it is, and text and lines of JSON on it.

use crate::failure::Result;
use spanlock_records::record::Line;
use spanlock_records::record::provenance::Provenance;
use spanlock_report::table::Width;
use std::env;
use std::io::{self, Write};

/// Help in lines longer than this is hard to read.
const MOST_OF_HELP: usize = 100;

/// As wide as the terminal that the output goes to. Elsewhere as `COLUMNS` says, and else 80.
pub(crate) fn width() -> Width {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    let terminal = terminal.map(|(width, _)| usize::from(width.0));
    let chosen = || env::var("COLUMNS").ok()?.parse().ok();
    let columns = terminal.or_else(chosen).filter(|&columns| columns > 0);
    columns.map_or(Width::USUAL, Width::of)
}

/// The columns of help.
pub(crate) fn width_of_help() -> usize {
    width().columns().min(MOST_OF_HELP)
}

pub(crate) fn print(text: &str) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
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
