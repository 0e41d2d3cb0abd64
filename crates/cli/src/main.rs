//! The command line of Spanlock.
//!
//! Exit codes: 0, done; 1, a check failed, a file could not be used, or the output not be written; 2, the arguments are
//! wrong. Those of `run` are the program's.

mod allocator;
mod args;
mod bench;
mod progress;
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(not(target_os = "linux"))]
#[path = "run/elsewhere.rs"]
mod run;
mod sim;
mod terminal;
mod values;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
enum Failure {
    /// A lock did not do what it promises.
    Check(String),
    /// A process of our own, started to measure, did not.
    Probe(String),
    /// The output could not be written.
    Output(io::Error),
    /// A file could not be written.
    File(String, io::Error),
    /// What was to be read is not there, or not what it has to be.
    Input(String),
    /// A program cannot be run as asked.
    Program(run::Refused),
}

impl Failure {
    fn code(&self) -> ExitCode {
        match self {
            Self::Program(refused) => refused.code(),
            Self::Check(_) | Self::Probe(_) | Self::Output(_) | Self::File(..) | Self::Input(_) => {
                ExitCode::FAILURE
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(what) => write!(f, "check failed: {what}"),
            Self::Probe(what) => write!(f, "cannot measure in a process of its own: {what}"),
            Self::Output(error) => write!(f, "cannot write: {error}"),
            Self::File(name, error) => write!(f, "cannot write {name}: {error}"),
            Self::Input(what) => write!(f, "cannot use {what}"),
            Self::Program(refused) => refused.fmt(f),
        }
    }
}

/// The arguments; ends the program if they are wrong, or ask for help.
fn arguments() -> Cli {
    let mut command = Cli::command().term_width(terminal::width_of_help());
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

fn main() -> ExitCode {
    let done = match arguments().command {
        Command::Bench(command) => bench::run(*command).map(|()| ExitCode::SUCCESS),
        Command::Report(command) => report::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Run(command) => run::run(command),
        Command::Sim(command) => sim::run(*command).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        // Whoever read has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            // If nobody reads this either, there is nobody to tell.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("error: {failure}\n"));
            failure.code()
        }
    }
}
