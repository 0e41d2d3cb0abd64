//! `spanlock sim fuzz`.

use crate::Failure;
use crate::progress::Progress;
use clap::Args;
use spanlock_bench::sim;
use spanlock_bench::sim::fuzz::{self, Case, Mutant, isolated};
use spanlock_bench::sim::rw::{self, FUZZED, LOCKS};
use std::io::{self, Write};
use std::process::Command;

#[derive(Args)]
pub(crate) struct Fuzz {
    /// The lock.
    #[arg(long, value_parser = lock, value_name = "NAME")]
    lock: Lock,
    /// How many schedules.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    runs: u64,
    /// The first one's seed. A failure names its own: `--runs 1 --seed` that one replays it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weaken a named edge of the lock's protocol, to see whether that is found.
    #[arg(long, value_parser = Mutant::find, value_name = "EDGE")]
    mutant: Option<Mutant>,
    /// Search for a mutant in this process, which it may bring down.
    #[arg(long, hide = true, requires = "mutant")]
    here: bool,
}

/// A range lock or a reader-writer lock.
#[derive(Clone, Copy)]
enum Lock {
    Range(&'static sim::Lock),
    Rw(&'static rw::Lock),
}

fn lock(name: &str) -> Result<Lock, String> {
    let rw = rw::Lock::find(name, LOCKS.iter().chain(FUZZED)).map(Lock::Rw);
    rw.or_else(|others| match sim::Lock::find(name) {
        Ok(lock) => Ok(Lock::Range(lock)),
        Err(expected) => Err(format!("{expected}; or {others}")),
    })
}

impl Lock {
    fn name(self) -> &'static str {
        match self {
            Self::Range(lock) => lock.name,
            Self::Rw(lock) => lock.name,
        }
    }

    fn run(self, case: &Case) -> fuzz::Run {
        match self {
            Self::Range(lock) => (lock.fuzz)(case),
            Self::Rw(lock) => lock.fuzz(case),
        }
    }
}

pub(super) fn run(args: &Fuzz) -> Result<(), Failure> {
    let name = args.lock.name();
    let run = |case: &Case| args.lock.run(case);
    let seeds = args.seed..args.seed.saturating_add(args.runs);
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
fn searcher(args: &Fuzz, mutant: Mutant) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::Probe(error.to_string()))?;
    let mut command = Command::new(own);
    command
        .args(["sim", "fuzz", "--here", "--lock", args.lock.name()])
        .args(["--runs", &args.runs.to_string()])
        .args(["--seed", &args.seed.to_string()])
        .args(["--mutant", mutant.name()]);
    Ok(command)
}
