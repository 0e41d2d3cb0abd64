//! `spanlock sim fuzz`.

use crate::failure::{Failure, Result};
use crate::options::times;
use crate::progress::Progress;
use clap::Args;
use spanlock_bench::fuzz::{self, Case, Lock, Mutant, isolated};
use std::io::{self, Write};
use std::process::Command;

#[derive(Args)]
pub(crate) struct Fuzz {
    /// The lock.
    #[arg(long, value_parser = Lock::find, value_name = "NAME")]
    lock: &'static Lock,
    /// The number of schedules.
    #[arg(long, default_value_t = 1000, value_parser = times(), value_name = "N")]
    runs: u32,
    /// The seed of the first schedule. A failure names its seed: `--runs 1 --seed SEED` replays it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weaken a named edge of the lock's protocol, to see whether that is found.
    #[arg(long, value_parser = Mutant::find, value_name = "EDGE")]
    mutant: Option<Mutant>,
    /// Search for a mutant in this process, which it may bring down.
    #[arg(long, hide = true, requires = "mutant")]
    here: bool,
}

pub(super) fn run(args: &Fuzz) -> Result {
    let name = args.lock.name();
    let run = |case: &Case| args.lock.run(case);
    let seeds = (0..args.runs).map(|run| args.seed.wrapping_add(run.into()));
    if let Some(mutant) = args.mutant.filter(|_| args.here) {
        isolated::search_aloud(run, seeds, mutant);
        return Ok(());
    }
    let progress = Progress::new(usize::try_from(args.runs).unwrap_or(usize::MAX));
    progress.step(name);
    let found = match args.mutant {
        None => {
            let found = fuzz::search(run, seeds, None, |_| progress.done());
            found.err().map(|failure| failure.to_string())
        }
        Some(mutant) => {
            let found = isolated::listen(&mut searcher(args, mutant)?, |_| progress.done());
            let found = found.map_err(|error| Failure::Probe(error.to_string()))?;
            found.map(|found| format!("without {}: {found}", mutant.name()))
        }
    };
    drop(progress);
    match found {
        Some(what) => Err(Failure::Check(format!("{name}: {}", what.trim_end()))),
        None => Ok(writeln!(
            io::stdout(),
            "{name}: {} schedules, nothing found",
            args.runs
        )?),
    }
}

/// This program again, to search in a process that may go down.
fn searcher(args: &Fuzz, mutant: Mutant) -> Result<Command> {
    let own = std::env::current_exe().map_err(|error| Failure::Probe(error.to_string()))?;
    let mut command = Command::new(own);
    command
        .args(["sim", "fuzz", "--here", "--lock", args.lock.name()])
        .args(["--runs", &args.runs.to_string()])
        .args(["--seed", &args.seed.to_string()])
        .args(["--mutant", mutant.name()]);
    Ok(command)
}
