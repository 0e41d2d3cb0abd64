//! The command line of Spanlock.
//!
//! Exit codes: 0, done; 1, a check failed, a file could not be used, or the output not be written; 2, the arguments are
//! wrong. Those of `run` are the program's.
//!
//! Each command's module has its arguments beside what it does with them. [`options`] has the arguments that several
//! commands share, and [`workloads`] those of workloads that run on hardware and on simulated machines.

mod allocator;
mod bench;
mod failure;
mod options;
mod output;
mod progress;
mod report;
mod run;
#[cfg(target_os = "linux")]
mod signals;
mod sim;
#[cfg(target_os = "linux")]
mod store;
mod vm;
mod workloads;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::io::{self, Write};
use std::process::ExitCode;

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
    Bench(Box<bench::Bench>),
    /// Make a page of measured and simulated results, beside what the papers claim.
    Report(report::Report),
    /// Run a program with its pthread_rwlock functions replaced.
    ///
    /// The program takes the place of this process. With `--stats` it is a child: this process passes signals on to it,
    /// and exits with its status, or with 128 plus the number of the signal that ended it. Exit code 126: the program
    /// cannot be run in this way; 127: there is no such program.
    Run(run::Run),
    /// Run locks on simulated machines.
    Sim(Box<sim::Sim>),
    /// Keep files in a store for many writers of one file.
    #[cfg(target_os = "linux")]
    Store(store::Command),
    /// Replay what programs asked of their address spaces.
    Vm(Box<vm::Vm>),
}

/// The arguments; ends the program if they are wrong, or ask for help.
fn arguments() -> Cli {
    let mut command = usual(Cli::command()).term_width(output::width_of_help());
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
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

fn main() -> ExitCode {
    let done = match arguments().command {
        Command::Bench(command) => bench::run(*command).map(|()| ExitCode::SUCCESS),
        Command::Report(command) => report::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Run(command) => run::run(command),
        Command::Vm(command) => vm::run(*command).map(|()| ExitCode::SUCCESS),
        Command::Sim(command) => sim::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Store(command) => store::run(&command).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        // The reader of the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Arguments(what)) => {
            let error = Cli::command().error(ErrorKind::ValueValidation, what);
            error.exit()
        }
        Err(failure) => {
            // If the standard error is closed as well, the message is lost.
            let _ = writeln!(io::stderr(), "error: {failure}");
            failure.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, usual};
    use clap::CommandFactory;

    #[test]
    fn the_command_is_well_formed() {
        usual(Cli::command()).debug_assert();
    }
}
