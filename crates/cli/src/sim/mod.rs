//! `spanlock sim`.

mod arr;
mod engine;
mod fuzz;

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
}

/// The lock of that name, if its runs repeat in this program, which leaves memory where the host puts it.
fn repeatable(name: &str) -> Result<&'static Lock, String> {
    let lock = Lock::find(name)?;
    if lock.is_on_lines {
        return Ok(lock);
    }
    Err("its runs would not repeat: expected a list or skip-list lock".to_owned())
}

pub(crate) fn run(command: Sim) -> Result<(), Failure> {
    match command.workload {
        Some(Workload::Fuzz(args)) => fuzz::run(&args),
        Some(Workload::Arr(args)) => arr::run(*args),
        None => list_machines(),
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
