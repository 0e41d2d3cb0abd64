//! `spanlock bench soak`.

use super::measure::measured;
use crate::allocator;
use crate::failure::{Failure, Result};
use crate::options::{Locks, Output, Seed, number, seconds};
use crate::workloads::turns;
use clap::Args;
use spanlock_bench::registry::{LOCKS, Lock};
use spanlock_bench::soak;
use spanlock_records::record::Line;
use spanlock_records::trial::arr::MAX_THREADS;
use spanlock_records::trial::lock::Exclusion;
use spanlock_report::table;
use std::time::Duration;

#[derive(Args)]
#[command(mut_arg("locks", |locks| locks.help("Locks, by name; by default, all that promise exclusion")))]
pub(super) struct Soak {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    /// Threads.
    #[arg(long, value_parser = number(1..=MAX_THREADS), default_value = "8", value_name = "N")]
    threads: usize,
    /// The total time, divided among locks and rounds.
    #[arg(long, value_parser = seconds, default_value = "60")]
    seconds: Duration,
    /// Rounds, in which locks take turns; memory is compared with what it was after the first.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..), default_value_t = 5, value_name = "N")]
    rounds: u32,
    /// How long a thread may make no progress.
    #[arg(long, value_parser = seconds, default_value = "30", value_name = "SECONDS")]
    stall: Duration,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(args: Soak) -> Result {
    let promises = |lock: &&'static Lock| lock.exclusion == Exclusion::Promised;
    let locks = args.locks.or(LOCKS.iter().filter(promises));
    if let Some(lock) = locks.iter().find(|lock| !promises(lock)) {
        let what = format!("--locks {}: it promises nothing to check", lock.name);
        return Err(Failure::Arguments(what));
    }
    allocator::begin();
    let soak =
        |lock: &&'static Lock| soak::Soak::new(lock, args.threads, args.stall, args.seed.seed);
    let mut soaks: Vec<_> = locks.iter().map(soak).collect();
    let time = args.seconds / args.rounds / u32::try_from(locks.len()).unwrap_or(u32::MAX);
    let numbers: Vec<_> = (0..locks.len()).collect();
    measured(
        &args.output,
        turns(0..args.rounds, &numbers),
        |&(lock, _)| format!("lock {}", locks[lock].name),
        |&(lock, round)| {
            let record = soaks[lock].round(round, time, &allocator::allocated);
            record.map_err(Failure::check)
        },
        Line::Soak,
        table::soak,
    )
    .map(drop)
}
