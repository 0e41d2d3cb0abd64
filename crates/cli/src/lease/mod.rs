//! `spanlock lease`: range leases between machines, from a shell.

#[cfg(feature = "lease")]
mod descendants;
#[cfg(feature = "lease")]
mod hold;
#[cfg(feature = "lease")]
mod range;
#[cfg(feature = "lease")]
mod status;

use crate::failure::{Failure, Result};
use crate::options::{Output, seconds};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Command {
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
        resource: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Wait until a range could be had. Nothing is held afterwards.
    ///
    /// Exit code 124: it was not free in time.
    Wait {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Hold a range while a program runs, and until all processes that it started have ended.
    ///
    /// The program finds the name of its lease in SPANLOCK_LEASE and the fence in SPANLOCK_FENCE. It and all that it
    /// started get SIGTERM when three quarters of the ttl have passed without a renewal, and SIGKILL when the lease is
    /// lost. Signals go to the program, and when that has ended, to what it has left. If `spanlock` itself is killed by
    /// SIGKILL, so is the program, but what that started runs on without a lease. Exit codes: the
    /// program's, or 128 plus the number of the signal that ended it; 124, the range was not free in time, and the
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
}

#[derive(Args, Clone)]
struct Server {
    /// How to reach PostgreSQL: a URL, or words as in `host=/run/postgresql dbname=app`. Or etcd: etcd://HOST:PORT,…
    #[arg(
        long,
        env = "SPANLOCK_LEASES",
        hide_env_values = true,
        value_name = "CONNECTION"
    )]
    server: String,
    /// The schema of the leases in PostgreSQL. By default, `spanlock_lease`.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

#[derive(Args)]
struct Wanted {
    /// The resource that is locked: any name.
    #[arg(long, value_name = "NAME")]
    resource: String,
    /// Positions: a number, A..B, A..=B, A.. or `..` for all.
    #[arg(long, default_value = "..")]
    range: String,
    /// Share the range with others that do.
    #[arg(long)]
    shared: bool,
    /// For how long the lease holds without a renewal.
    #[arg(long, value_parser = seconds, default_value = "30", value_name = "SECONDS")]
    ttl: Duration,
    /// Give up after so long. By default, wait for as long as it takes.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    within: Option<Duration>,
}

#[cfg(not(feature = "lease"))]
pub(crate) fn run(_command: &Command) -> Result<ExitCode> {
    Err(Failure::Program {
        why: "leases are not built in, since few need clients of PostgreSQL and etcd: \
              cargo run --release --features lease -- lease …"
            .to_owned(),
        code: 1,
    })
}

#[cfg(feature = "lease")]
pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match &command.what {
        What::Status {
            server,
            resource,
            output,
        } => status::run(server, resource.as_deref(), output).map(|()| ExitCode::SUCCESS),
        What::Wait { server, wanted } => {
            let held = hold::acquire(server, wanted)?;
            held.release().map(|()| ExitCode::SUCCESS)
        }
        What::Run {
            server,
            wanted,
            program,
        } => hold::while_it_runs(server, wanted, program),
    }
}

/// What a server is, and where.
#[cfg(feature = "lease")]
enum Place {
    Postgres {
        config: Box<spanlock_lease_postgres::Config>,
        schema: String,
    },
    Etcd(spanlock_lease_etcd::Config),
}

#[cfg(feature = "lease")]
impl Server {
    /// Where it is. The text may have a password in it, so it is not repeated.
    fn place(&self) -> Result<Place> {
        if self.server.starts_with("etcd:") {
            let parsed = self.server.parse();
            let config =
                parsed.map_err(|error| Failure::Arguments(format!("--server: {error}")))?;
            return match self.schema {
                None => Ok(Place::Etcd(config)),
                Some(_) => Err(Failure::Arguments("--schema: etcd has none".to_owned())),
            };
        }
        let config = self.server.parse().map(Box::new).map_err(|error| {
            let what = format!(
                "--server: {error}; expected a URL, words such as host=… dbname=…, or etcd://HOST"
            );
            Failure::Arguments(what)
        })?;
        let schema = self.schema.clone();
        let schema = schema.unwrap_or_else(|| "spanlock_lease".to_owned());
        Ok(Place::Postgres { config, schema })
    }
}
