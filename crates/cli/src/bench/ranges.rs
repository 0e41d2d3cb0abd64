//! Range locks: `spanlock bench uncontended` and `waiting`.

use super::measure::{Pairs, measured};
use crate::failure::{Failure, Result};
use crate::options::{Locks, Output, locks_or_floors, number, seconds, without_seconds};
use crate::workloads::turns;
use clap::Args;
use spanlock_bench::among::{CASES, Case};
use spanlock_bench::costs;
use spanlock_bench::registry::{FLOORS, LOCKS, Lock};
use spanlock_bench::workload::name;
use spanlock_records::record::Line;
use spanlock_records::trial::run::Schedule;
use spanlock_records::trial::setting::MAX_THREADS;
use spanlock_report::table;
use std::slice;
use std::str::FromStr;
use std::time::Duration;

#[derive(Args)]
#[command(arg(without_seconds("it ends after so many --pairs in each round: see --repeat")))]
#[command(mut_arg("locks", |locks| {
    locks.help("Locks, by name; all of them by default").value_parser(locks_or_floors)
}))]
pub(super) struct Uncontended {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    #[command(flatten)]
    pairs: Pairs,
}

pub(super) fn uncontended(Uncontended { locks, pairs }: Uncontended) -> Result {
    let locks = locks.or(LOCKS.iter().chain(FLOORS.iter())).into_iter();
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
    let some = ["slots", "list-rw", "list-rw-unfair", "list-ex", "skip-rw", "kernel-rw", "parking-lot", "std-rwlock"];
    locks.help("Locks, by name").default_values(some)
}))]
pub(super) struct Waiting {
    #[command(flatten)]
    locks: Locks<&'static Lock>,
    /// Instead: how long a request waits among threads that ask again at once, in these cases; or in `all`.
    #[arg(
        long,
        value_name = "CASE,...",
        value_delimiter = ',',
        conflicts_with = "threads"
    )]
    among: Vec<Cases>,
    /// Threads that contend.
    #[arg(long, value_parser = number(1..=MAX_THREADS), default_value = "8", value_name = "N")]
    threads: usize,
    /// Length of each measurement.
    #[arg(long, value_parser = seconds, default_value = "1")]
    seconds: Duration,
    #[command(flatten)]
    output: Output,
}

/// Some of them, by one word.
#[derive(Debug, Clone, Copy)]
struct Cases(&'static [Case]);

impl FromStr for Cases {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "all" => Ok(Self(&CASES)),
            name => name.parse().map(|case| Self(slice::from_ref(case))),
        }
    }
}

pub(super) fn waiting(args: Waiting) -> Result {
    let schedule = Schedule {
        warmup: args.seconds / 10,
        measured: args.seconds,
    };
    let locks = args.locks.chosen();
    let cases: Vec<_> = args
        .among
        .into_iter()
        .flat_map(|Cases(cases)| cases)
        .collect();
    if !cases.is_empty() {
        let each = |case| locks.iter().map(move |&lock| (case, lock));
        return measured(
            &args.output,
            cases.into_iter().flat_map(each).collect(),
            |(case, lock)| format!("{case}, {}", lock.name),
            |&(case, lock)| Ok(costs::among(lock, case, schedule)),
            Line::Among,
            table::among,
        )
        .map(drop);
    }
    let trial = costs::contention(args.threads, schedule, 1);
    measured(
        &args.output,
        locks,
        |lock| name(&trial, *lock),
        |lock| costs::waiting(lock, trial).map_err(Failure::Check),
        Line::from,
        table::waiting,
    )
    .map(drop)
}
