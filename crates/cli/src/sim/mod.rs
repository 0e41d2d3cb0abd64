//! `spanlock sim`.

mod arr;
mod batch;
mod cache;
mod engine;
mod fuzz;
mod latency;

use crate::Failure;
use clap::{Args, Subcommand};
use spanlock_bench::sim::{Lock, Machine};
use std::io::{self, Write};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    /// List the machines and exit.
    #[arg(long)]
    list_machines: bool,
    #[command(subcommand)]
    workload: Option<Workload>,
}

#[derive(Subcommand)]
enum Workload {
    /// Random work under random schedules, until one breaks the lock.
    Fuzz(fuzz::Fuzz),
    /// ArrBench in virtual time.
    Arr(Box<arr::Arr>),
    /// W1 and W2 in virtual time: threads write 1 KB ranges, held one at a time or in batches.
    Batch(Box<batch::Batch>),
    /// How long acquisitions take in virtual time, those of fresh parts of a resource and later ones.
    Latency(Box<latency::Latency>),
}

pub(crate) fn run(command: Sim) -> Result<(), Failure> {
    match command.workload {
        Some(Workload::Fuzz(args)) => fuzz::run(&args),
        Some(Workload::Arr(args)) => arr::run(*args),
        Some(Workload::Batch(args)) => batch::run(*args),
        Some(Workload::Latency(args)) => latency::run(*args),
        None => list_machines(),
    }
}

/// The range locks named, or else all that are measured on hardware too.
fn chosen(named: Vec<&'static Lock>) -> Vec<&'static Lock> {
    if named.is_empty() {
        Lock::measured().collect()
    } else {
        named
    }
}

fn list_machines() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for machine in Machine::built_in() {
        writeln!(
            out,
            "{:<14} {:>3} threads  {}",
            machine.name,
            machine.contexts(),
            machine.about
        )?;
    }
    Ok(())
}
