//! The command line of Spanlock.
//!
//! Exit codes: 0, done; 1, a check failed, a file could not be used, or the output not be written; 2, the arguments are
//! wrong. Those of `run` and `lease run` are the program's.
//!
//! Each command's module has its arguments beside what it does with them. `options` has the arguments that several
//! commands share, and `workloads` those of workloads that run on hardware and on simulated machines.

mod allocator;
mod bench;
mod failure;
#[cfg(target_os = "linux")]
mod lease;
mod options;
mod output;
#[cfg(target_os = "linux")]
mod parent;
mod progress;
mod report;
mod run;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(feature = "sim")]
mod sim;
#[cfg(target_os = "linux")]
mod store;
mod vm;
mod workloads;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::io::{self, Write};
use std::iter;
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
    /// Lock ranges between machines, over PostgreSQL.
    #[cfg(target_os = "linux")]
    Lease(lease::Command),
    /// Make a page of measured and simulated results, beside what the papers claim.
    Report(report::Report),
    /// Run a program with its pthread_rwlock functions replaced.
    ///
    /// The program takes the place of this process. With `--stats` it is a child: this process passes signals on to it,
    /// and exits with its status, or with 128 plus the number of the signal that ended it. Exit code 126: the program
    /// cannot be run in this way; 127: there is no such program.
    Run(run::Run),
    /// Run locks on simulated machines.
    #[cfg(feature = "sim")]
    Sim(Box<sim::Sim>),
    /// Run locks on simulated machines: for that, build this command with the feature `sim`.
    #[cfg(not(feature = "sim"))]
    Sim(Absent),
    /// Keep files in a store for many writers of one file.
    #[cfg(target_os = "linux")]
    Store(store::Command),
    /// Replay what programs asked of their address spaces.
    Vm(Box<vm::Vm>),
}

fn command() -> clap::Command {
    usual(Cli::command()).term_width(output::width_of_help())
}

/// What a command is given that is not there.
#[cfg(not(all(feature = "sim", feature = "async")))]
#[derive(clap::Args)]
struct Absent {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    given: Vec<std::ffi::OsString>,
}

#[cfg(not(all(feature = "sim", feature = "async")))]
impl Absent {
    /// Says why it is not there, and how to have it.
    fn run(&self, why: &str, feature: &str, command: &str) -> failure::Result {
        let given = self.given.iter().map(|word| word.to_string_lossy());
        let given = given.collect::<Vec<_>>().join(" ");
        let why = format!("{why}: cargo run --release --features {feature} -- {command} {given}");
        Err(Failure::Program { why, code: 1 })
    }
}

/// The arguments, and the command that they are for. Ends the program if they are wrong, or ask for help.
fn arguments() -> (Cli, Vec<String>) {
    let mut command = command();
    let matches = command.get_matches_mut();
    let names = iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    let names = names.map(|(name, _)| name.to_owned()).collect();
    let cli = Cli::from_arg_matches(&matches);
    (
        cli.unwrap_or_else(|error| error.format(&mut command).exit()),
        names,
    )
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
    let (cli, names) = arguments();
    let done = match cli.command {
        Command::Bench(command) => bench::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Lease(command) => lease::run(&command),
        Command::Report(command) => report::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Run(command) => run::run(command),
        Command::Vm(command) => vm::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(*command).map(|()| ExitCode::SUCCESS),
        #[cfg(not(feature = "sim"))]
        Command::Sim(command) => {
            let why = "the simulator is not built in, since that takes longer than all the rest";
            command.run(why, "sim", "sim").map(|()| ExitCode::SUCCESS)
        }
        #[cfg(target_os = "linux")]
        Command::Store(command) => store::run(&command).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        // The reader of the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Arguments(what)) => refuse(&names, what),
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
