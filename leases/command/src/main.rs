//! The command `spanlock-lease`: range leases between machines, from a shell.
//!
//! Exit codes: 0, done; 1, the server could not be used, or the output not be written; 2, the arguments are wrong.
//! `wait` and `run` have more.
#![cfg(target_os = "linux")]

mod descendants;
mod failure;
mod hold;
mod range;
mod server;
mod status;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use failure::{Failure, Result};
use range::Ranges;
use server::Server;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Leases ranges to one machine of many, over PostgreSQL or etcd.
#[derive(Parser)]
#[command(name = "spanlock-lease", version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List who holds and who waits. Changes nothing.
    Status {
        #[command(flatten)]
        server: Server,
        /// This resource alone.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        resource: Option<String>,
        /// A table, or one JSON object per line.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Wait until the ranges could be had. Nothing is held afterwards.
    ///
    /// Exit code 124: they were not free in time.
    Wait {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Hold ranges while a program runs, and until all processes that it started have ended.
    ///
    /// The program finds the name of its lease in SPANLOCK_LEASE, or the names of several with commas between them, and
    /// the fence in SPANLOCK_FENCE: a number of 16 digits, which is larger for whoever holds the range later. It and
    /// all that it started get SIGTERM when three quarters of the ttl have passed without a renewal, and SIGKILL when
    /// the lease is lost. Signals go to the program, and when that has ended, to what it has left. If this command
    /// itself is killed by SIGKILL, so is the program, but what that started runs on without a lease. Exit codes: the
    /// program's, or 128 plus the number of the signal that ended it; 124, the ranges were not free in time, and the
    /// program did not run; 125, the lease was lost while it ran; 127, there is no such program.
    Run {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        wanted: Wanted,
        /// The program and its arguments.
        #[arg(last = true, required = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// Make the schema of the leases in PostgreSQL, and let a role of the database use it.
    Grant {
        #[command(flatten)]
        server: Server,
        /// The role: a user, or a group of users.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        role: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Args)]
struct Wanted {
    /// The resource that is locked: any name.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    resource: String,
    #[command(flatten)]
    ranges: Ranges,
    /// Share the ranges with others that do.
    #[arg(long)]
    shared: bool,
    /// For how long the lease holds without a renewal: from 1 to 60.
    #[arg(long, value_parser = ttl, default_value = "30", value_name = "SECONDS")]
    ttl: Duration,
    /// Give up after so long, also if the server does not answer. By default, wait for as long as it takes.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    within: Option<Duration>,
}

/// A time in seconds that is not zero.
fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_secs(86_400);
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero() && *time <= DAY)
        .ok_or_else(|| "expected seconds, more than 0 and no more than 86400".to_owned())
}

/// Programs need some time to start and to end, and servers lease for a minute at most.
fn ttl(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_secs(1)..=Duration::from_secs(60);
    let time = seconds(text).ok().filter(|time| allowed.contains(time));
    time.ok_or_else(|| {
        "expected seconds, from 1 to 60: no renewal would keep a shorter lease".to_owned()
    })
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(code) => code,
        // The reader of the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Arguments(what)) => Command::command()
            .error(ErrorKind::ValueValidation, what)
            .exit(),
        Err(failure) => {
            // If the standard error is closed as well, the message is lost.
            let _ = writeln!(io::stderr(), "error: {failure}");
            failure.code()
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match &command.what {
        What::Status {
            server,
            resource,
            format,
        } => status::run(server, resource.as_deref(), *format).map(|()| ExitCode::SUCCESS),
        What::Wait { server, wanted } => hold::wait(server, wanted).map(|()| ExitCode::SUCCESS),
        What::Run {
            server,
            wanted,
            program,
        } => hold::run(server, wanted, program),
        What::Grant { server, role } => server.grant(role).map(|()| ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, seconds, ttl};
    use clap::CommandFactory;
    use std::time::Duration;

    #[test]
    fn the_command_is_well_formed() {
        Command::command().debug_assert();
    }

    #[test]
    fn times() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "-1", "nan", "inf", "1e300", "1e-300", "", "x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ttl("1"), Ok(Duration::from_secs(1)));
        for wrong in ["0.01", "0.9", "61"] {
            assert!(ttl(wrong).is_err(), "{wrong}");
        }
    }
}
