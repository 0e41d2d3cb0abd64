//! `spanlock run`.

use crate::failure::Result;
use crate::output::Format;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod preload;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod stats;
#[cfg(target_os = "linux")]
mod symbols;

#[derive(Args)]
pub(crate) struct Run {
    /// What its locks become.
    #[arg(long, value_enum, default_value_t = Underlying::Bravo, value_name = "NAME")]
    lock: Underlying,
    /// Count, and print the hottest locks to the standard error when the program ends. Counting slows locks down.
    #[arg(long)]
    stats: bool,
    /// A table, or one JSON object per line and lock.
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "stats")]
    format: Format,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The replacements of `pthread_rwlock_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Underlying {
    /// Ours, with a bias towards readers while that pays.
    Bravo,
    /// The same, biased from birth and again after each write: for tests.
    BravoEager,
    /// The lock under the bias, without one.
    Futex,
    /// glibc's, called through the library: the baseline.
    Glibc,
}

/// Runs the program; returns its exit code.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: Run) -> Result<ExitCode> {
    preload::run(args)
}

/// Says that nothing can be preloaded here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(args: Run) -> Result<ExitCode> {
    let Run {
        lock: _,
        stats: _,
        format: _,
        program: _,
    } = args;
    Err(crate::failure::Failure::cannot_preload(
        "`spanlock run` replaces locks of glibc's, so it is for Linux only",
    ))
}
