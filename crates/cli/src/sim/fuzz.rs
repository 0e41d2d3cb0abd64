//! `spanlock sim fuzz`.

use crate::Failure;
use crate::progress::Progress;
use clap::Args;
use spanlock_bench::sim::Lock;
use spanlock_bench::sim::fuzz;
use std::io::{self, Write};
use std::process::Command;

#[derive(Args)]
pub(crate) struct Fuzz {
    /// The lock.
    #[arg(long, value_parser = Lock::find, value_name = "NAME")]
    lock: &'static Lock,
    /// How many schedules.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    runs: u64,
    /// The first one's seed. A failure names its own: `--runs 1 --seed` that one replays it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weaken a named edge of the lock's protocol, to see whether that is found.
    #[arg(long, value_name = "EDGE")]
    mutant: Option<String>,
    /// Search for a mutant in this process, which it may bring down.
    #[arg(long, hide = true, requires = "mutant")]
    here: bool,
}

pub(super) fn run(args: &Fuzz) -> Result<(), Failure> {
    if let Some(mutant) = args.mutant.as_deref().filter(|_| !args.here) {
        return run_mutant(args, mutant);
    }
    let seeds = args.seed..args.seed.saturating_add(args.runs);
    let progress = Progress::new(usize::try_from(args.runs).unwrap_or(usize::MAX));
    progress.step(args.lock.name);
    let found = fuzz::search(args.lock, seeds, args.mutant.as_deref(), |_| {
        progress.done()
    });
    drop(progress);
    found.map_err(|failure| Failure::Check(format!("{}: {failure}", args.lock.name)))?;
    writeln!(
        io::stdout(),
        "{}: {} schedules, nothing found",
        args.lock.name,
        args.runs
    )?;
    Ok(())
}

/// In a process of its own: a mutant may free what it has not.
fn run_mutant(args: &Fuzz, mutant: &str) -> Result<(), Failure> {
    let name = args.lock.name;
    let own = std::env::current_exe().map_err(|error| Failure::Probe(error.to_string()))?;
    let output = Command::new(own)
        .args(["sim", "fuzz", "--here", "--lock", name])
        .args(["--runs", &args.runs.to_string()])
        .args(["--seed", &args.seed.to_string()])
        .arg(format!("--mutant={mutant}"))
        .output()
        .map_err(|error| Failure::Probe(error.to_string()))?;
    if output.status.success() {
        io::stdout().write_all(&output.stdout)?;
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let found = told.split_once("check failed: ");
    Err(Failure::Check(match found {
        Some((_, what)) => what.trim_end().to_owned(),
        None => format!(
            "{name}: without {mutant} its process ended: {}",
            output.status
        ),
    }))
}
