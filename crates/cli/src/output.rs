//! The standard output: how wide it is, and text and lines of JSON on it.

#[cfg(feature = "bench")]
mod results;

#[cfg(feature = "bench")]
pub(crate) use results::{print_lines, provenance, width};

use crate::failure::Result;
use clap::ValueEnum;
use std::env;
use std::io::{self, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Help in lines longer than this is hard to read.
const MOST_OF_HELP: usize = 100;

/// Those of the terminal that the output goes to. Elsewhere as `COLUMNS` says, if it does.
fn columns() -> Option<usize> {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    let terminal = terminal.map(|(width, _)| usize::from(width.0));
    let chosen = || env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(chosen).filter(|&columns| columns > 0)
}

/// The columns of help.
pub(crate) fn width_of_help() -> usize {
    columns().unwrap_or(80).clamp(40, MOST_OF_HELP)
}

pub(crate) fn print(text: &str) -> Result {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
