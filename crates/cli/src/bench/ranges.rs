//! Range locks: `spanlock bench arr`, `batch`, `pattern`, `latency`, `uncontended` and `waiting`.

use super::list;
use super::measure::{Counted, Pairs, measured};
use crate::failure::{Failure, Result};
use crate::options::{
    Output, RangeLocks, Seed, Threads, locks_or_floors, number_to, seconds, times, without_seconds,
};
use crate::workloads::{Arr, Batch, Parts, Patterns, Workload, turns};
use clap::Args;
use spanlock_bench::arr::{self, MAX_THREADS};
use spanlock_bench::provenance::Provenance;
use spanlock_bench::registry::{FLOORS, LOCKS, Lock};
use spanlock_bench::run::{Schedule, Trial};
use spanlock_bench::{costs, latency, workload};
use spanlock_judge::record::{Line, Record, plural};
use spanlock_judge::table::{self, Width};
use std::time::Duration;

/// A workload by which locks are compared.
#[derive(Args)]
pub(super) struct Compared<W: Args> {
    #[command(flatten)]
    workload: W,
    /// List the locks and exit.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    locks: RangeLocks,
    #[command(flatten)]
    counted: Counted,
}

/// Runs all trials of all locks; in the end, says which locks are best where.
fn compare<W: Args + Workload>(
    args: Compared<W>,
    describe: impl Fn(&Lock, &Trial<W::Load>) -> String,
    table: impl Fn(&[Record], &Provenance, Width) -> String,
) -> Result
where
    W::Load: workload::Workload<Lock = &'static Lock>,
{
    if args.list {
        return list(args.counted.sampling.output.format);
    }
    if let Some(what) = args.workload.contradiction() {
        return Err(Failure::Arguments(what));
    }
    let trials = args.counted.trials(&args.workload);
    args.counted.compared(
        turns(trials, &args.locks.or(LOCKS.iter())),
        |(lock, trial)| describe(lock, trial),
        |(lock, trial)| workload::measure(*trial, *lock),
        table,
    )
}

pub(super) fn arr(args: Compared<Arr>) -> Result {
    compare(args, describe, table::arr)
}

fn describe(lock: &Lock, trial: &Trial<arr::Load>) -> String {
    let (reads, threads) = (trial.load.reads.get(), plural(trial.threads));
    format!(
        "lock {}, variant {}, {reads} % reads, {threads}",
        lock.name, trial.load.variant
    )
}

pub(super) fn batch(args: Compared<Batch>) -> Result {
    compare(
        args,
        |lock, trial| {
            format!(
                "lock {}, hold {}, {}",
                lock.name,
                trial.load.hold,
                plural(trial.threads)
            )
        },
        table::batch,
    )
}

pub(super) fn pattern(args: Compared<Patterns>) -> Result {
    compare(
        args,
        |lock, trial| {
            let (load, threads) = (workload::Workload::panel(trial.load), plural(trial.threads));
            format!("lock {}, {load}, {threads}", lock.name)
        },
        table::pattern,
    )
}

#[derive(Args)]
#[command(arg(without_seconds(
    "it ends when all --parts were locked in all rounds: see --repeat"
)))]
pub(super) struct Latency {
    #[command(flatten)]
    locks: RangeLocks,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    parts: Parts,
    /// Rounds, each on a fresh lock; the times of all are put together.
    #[arg(long, value_parser = times(), default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    repeat: u32,
    #[command(flatten)]
    seed: Seed,
    #[command(flatten)]
    output: Output,
}

pub(super) fn latency(args: Latency) -> Result {
    let load = latency::Load {
        parts: args.parts.parts,
        warmup: latency::WARMUP,
        rounds: args.repeat,
    };
    let run = Trial::new(Schedule::NONE, args.seed.seed);
    let threads = args.threads.numbers().into_iter();
    let trials = threads.map(|threads| run.with(load, threads));
    measured(
        &args.output,
        turns(trials, &args.locks.or(LOCKS.iter())),
        |(lock, trial)| format!("lock {}, {}", lock.name, plural(trial.threads)),
        |(lock, trial)| workload::measure(*trial, *lock).map_err(Failure::Check),
        Line::from,
        table::latency,
    )
    .map(drop)
}

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many --pairs in each round: see --repeat")))]
#[command(mut_arg("locks", |locks| {
    locks.help("Locks, by name; all of them by default").value_parser(locks_or_floors)
}))]
pub(super) struct Uncontended {
    #[command(flatten)]
    locks: RangeLocks,
    #[command(flatten)]
    pairs: Pairs,
}

pub(super) fn uncontended(Uncontended { locks, pairs }: Uncontended) -> Result {
    let locks = locks.or(LOCKS.iter().chain(FLOORS)).into_iter();
    let subjects: Vec<_> = locks.flat_map(costs::Subject::all_of).collect();
    measured(
        &pairs.output,
        turns(0..pairs.repeat, &subjects),
        |(subject, round)| format!("{}, round {}", subject.lock.name, round + 1),
        |(subject, round)| Ok(subject.measure(pairs.pairs, *round)),
        Line::Uncontended,
        table::uncontended,
    )
    .map(drop)
}

#[derive(Args)]
#[command(mut_arg("locks", |locks| {
    let some = ["list-rw", "list-rw-unfair", "list-ex", "kernel-rw", "parking-lot", "std-rwlock"];
    locks.help("Locks, by name").default_values(some)
}))]
pub(super) struct Waiting {
    #[command(flatten)]
    locks: RangeLocks,
    /// Threads that contend.
    #[arg(long, value_parser = number_to(MAX_THREADS), default_value = "8", value_name = "N", allow_negative_numbers = true)]
    threads: usize,
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "1", allow_negative_numbers = true)]
    seconds: Duration,
    #[command(flatten)]
    output: Output,
}

pub(super) fn waiting(args: Waiting) -> Result {
    let schedule = Schedule {
        warmup: args.seconds / 10,
        measured: args.seconds,
    };
    let trial = costs::contention(args.threads, schedule, 1);
    measured(
        &args.output,
        args.locks.or(LOCKS.iter()),
        |lock| describe(lock, &trial),
        |lock| costs::waiting(lock, trial).map_err(Failure::Check),
        Line::from,
        table::waiting,
    )
    .map(drop)
}
