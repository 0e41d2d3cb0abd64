//! How wide text for people is.

use spanlock_bench::report::Width;
use std::{env, io};

/// Help in lines longer than this is hard to read.
const MOST_OF_HELP: usize = 100;

/// As wide as the terminal that the output goes to. Elsewhere as `COLUMNS` says, and else 80.
pub(crate) fn width() -> Width {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    let terminal = terminal.map(|(width, _)| usize::from(width.0));
    let told = || env::var("COLUMNS").ok()?.parse().ok();
    let columns = terminal.or_else(told).filter(|&columns| columns > 0);
    columns.map_or(Width::USUAL, Width::of)
}

/// The columns of help.
pub(crate) fn width_of_help() -> usize {
    width().columns().min(MOST_OF_HELP)
}
