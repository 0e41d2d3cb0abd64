//! `spanlock bench async`.

use super::measure::measured;
use crate::failure::Result;
use crate::options::{Output, Threads, number, seconds, times};
use clap::Args;
use spanlock_bench::tasks::{Load, Plan, SUBJECTS, Subject};
use spanlock_records::record::Line;
use spanlock_report::table;
use std::time::Duration;

#[derive(Args)]
#[command(mut_arg("threads", |threads| {
    let help = "Threads that run tasks: each a number, a:b or a:b:step";
    threads.long("workers").help(help).default_value("1,2,4,8")
}))]
pub(super) struct Tasks {
    /// Locks, by name; all of them by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...")]
    locks: Vec<&'static Subject>,
    /// What is done with them; all by default.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...")]
    load: Vec<Load>,
    #[command(flatten)]
    workers: Threads,
    /// How many of a hundred random ranges are written.
    #[arg(long, value_parser = number(0..=100), default_value = "20", value_name = "PERCENT")]
    writes: usize,
    /// The tasks of a crowd.
    #[arg(long, value_parser = number(1..=1_000_000), default_value = "10000", value_name = "N")]
    crowd: usize,
    /// Acquisitions by one thread alone.
    #[arg(long, value_parser = times(), default_value_t = 200_000, value_name = "N")]
    pairs: u32,
    /// Length of each measurement of tasks.
    #[arg(long, value_parser = seconds, default_value = "0.1")]
    seconds: Duration,
    /// Measurements of each point; they take turns over the locks.
    #[arg(long, value_parser = times(), default_value_t = 5, value_name = "N")]
    repeat: u32,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(args: &Tasks) -> Result {
    let locks = match &args.locks[..] {
        [] => SUBJECTS.iter().collect(),
        named => named.to_vec(),
    };
    let loads = match &args.load[..] {
        [] => &Load::ALL,
        named => named,
    };
    let workers = args.workers.numbers();
    let points = loads
        .iter()
        .flat_map(|&load| load.workers(&workers).into_iter().map(move |n| (load, n)));
    let points: Vec<_> = points
        .flat_map(|point| locks.iter().map(move |&lock| (lock, point)))
        .collect();
    let rounds = (0..args.repeat).flat_map(|round| points.iter().map(move |&point| (round, point)));
    measured(
        &args.output,
        rounds.collect(),
        |(round, (lock, (load, _)))| format!("{lock}, {load}, round {}", round + 1),
        |&(round, (lock, (load, workers)))| {
            let plan = Plan {
                workers,
                measured: args.seconds,
                pairs: args.pairs,
                writes: u8::try_from(args.writes).unwrap_or(100),
                crowd: args.crowd,
            };
            Ok(lock.measure(load, plan, round))
        },
        Line::Tasks,
        table::tasks,
    )
    .map(drop)
}
