//! The command line of Spanlock.
//!
//! Exit codes: 0, done; 1, a check failed, a file could not be used, or the output not be written; 2, the arguments are
//! wrong. Those of `run` are the program's.
//!
//! Each command's module has its arguments beside what it does with them. `options` has the arguments that several
//! commands share, and `workloads` makes the commands of workloads.

#![cfg_attr(
    not(all(feature = "report", feature = "run", feature = "store")),
    allow(
        dead_code,
        reason = "what commands share is more than one of them needs"
    )
)]

mod absent;
#[cfg(any(feature = "bench", feature = "store"))]
mod allocator;
#[cfg(feature = "bench")]
mod bench;
mod failure;
#[cfg(feature = "bench")]
mod options;
mod output;
#[cfg(any(feature = "bench", feature = "store"))]
mod progress;
#[cfg(feature = "report")]
mod report;
#[cfg(feature = "run")]
mod run;
#[cfg(feature = "sim")]
mod sim;
#[cfg(all(feature = "store", target_os = "linux"))]
mod store;
#[cfg(feature = "bench")]
mod vm;
#[cfg(feature = "bench")]
mod workloads;

use absent::{ABSENT, asked_for, with_absent};
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::io::{self, Write};
use std::iter;
use std::process::{self, ExitCode};

/// Measures, simulates and applies range locks and reader-writer locks.
#[derive(Parser)]
#[command(name = "spanlock", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure locks.
    #[cfg(feature = "bench")]
    Bench(Box<bench::Bench>),
    /// Make a page of measured and simulated results, beside what the papers claim.
    #[cfg(feature = "report")]
    Report(report::Report),
    /// Run a program with its pthread_rwlock functions replaced.
    ///
    /// The program takes the place of this process. With `--stats` it is a child: this process passes signals on to it,
    /// and exits with its status, or with 128 plus the number of the signal that ended it. Exit code 126: the program
    /// cannot be run in this way; 127: there is no such program.
    #[cfg(feature = "run")]
    Run(run::Run),
    /// Run locks on simulated machines.
    #[cfg(feature = "sim")]
    Sim(Box<sim::Sim>),
    /// Keep files in a store for many writers of one file.
    #[cfg(all(feature = "store", target_os = "linux"))]
    Store(store::Command),
    /// Replay what programs asked of their address spaces.
    #[cfg(feature = "bench")]
    Vm(Box<vm::Vm>),
}

fn command() -> clap::Command {
    let command = Cli::command();
    #[cfg(feature = "bench")]
    let command = workloads::with_workloads(command);
    with_absent(usual(command), ABSENT).term_width(output::width_of_help())
}

/// The arguments, and the command that they are for. Ends the program if they are wrong, or ask for help or for what is
/// not built in.
fn arguments() -> (Asked, Vec<String>) {
    let mut command = command();
    let matches = command.get_matches_mut();
    if let Some(why) = asked_for(&matches, ABSENT) {
        let _ = writeln!(io::stderr(), "error: {why}");
        process::exit(1);
    }
    let names = iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    let names = names.map(|(name, _)| name.to_owned()).collect();
    #[cfg(feature = "bench")]
    if let Some(done) = workloads::asked_for(&matches) {
        return (Asked::Done(done), names);
    }
    let cli = Cli::from_arg_matches(&matches);
    let cli = cli.unwrap_or_else(|error| error.format(&mut command).exit());
    (Asked::Other(cli.command), names)
}

/// What was asked for.
enum Asked {
    /// A workload, and what became of it.
    #[cfg(feature = "bench")]
    Done(failure::Result),
    /// Another command.
    Other(Command),
}

/// Says what is wrong with a command's arguments, and how it is used.
fn refuse(names: &[String], what: String) -> ! {
    let mut command = command();
    command.build();
    let mut named = &mut command;
    for name in names {
        named = named
            .find_subcommand_mut(name)
            .expect("it was found before");
    }
    named.error(ErrorKind::ValueValidation, what).exit()
}

/// What holds for all options. `-5` after one is its value, so that the error says what the option expects. One that
/// takes several values takes them with commas or blanks between them, unless it says otherwise.
fn usual(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_list = matches!(arg.get_action(), ArgAction::Append) && arg.get_num_args().is_none();
        match arg.get_long().is_some() && arg.get_action().takes_values() {
            true if is_list => arg
                .num_args(1..)
                .value_delimiter(',')
                .allow_negative_numbers(true),
            true => arg.allow_negative_numbers(true),
            false => arg,
        }
    });
    command.mut_subcommands(usual)
}

/// Does what the process's arguments say.
#[must_use]
pub fn main() -> ExitCode {
    let (asked, names) = arguments();
    let done = match asked {
        #[cfg(feature = "bench")]
        Asked::Done(done) => done.map(|()| ExitCode::SUCCESS),
        Asked::Other(command) => run(command),
    };
    ended(done, &names)
}

fn run(command: Command) -> failure::Result<ExitCode> {
    match command {
        #[cfg(feature = "bench")]
        Command::Bench(command) => bench::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "report")]
        Command::Report(command) => report::run(&command).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "run")]
        Command::Run(command) => run::run(command),
        #[cfg(feature = "bench")]
        Command::Vm(command) => vm::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(all(feature = "store", target_os = "linux"))]
        Command::Store(command) => store::run(&command).map(|()| ExitCode::SUCCESS),
    }
}

/// How a command ended, told to whoever asked for it.
fn ended(done: failure::Result<ExitCode>, names: &[String]) -> ExitCode {
    match done {
        Ok(code) => code,
        // The reader of the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Arguments(what)) => refuse(names, what),
        Err(failure) => {
            // If the standard error is closed as well, the message is lost.
            let _ = writeln!(io::stderr(), "error: {failure}");
            failure.code()
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_is_well_formed() {
        super::command().debug_assert();
    }
}
