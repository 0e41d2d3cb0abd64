//! `spanlock sim latency`.

use super::chosen;
use super::engine::{Simulated, simulate};
use crate::Failure;
use crate::args::without_seconds;
use crate::values::number_to;
use clap::Args;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::latency::MAX_PARTS;
use spanlock_bench::sim::Lock;
use spanlock_bench::sim::latency::{PARTS, Point, Trial};

#[derive(Args)]
#[command(arg(without_seconds("it ends when all --parts were locked")))]
pub(crate) struct Latency {
    /// Locks, by name; unless told, all range locks that `bench` has too.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Lock::find, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
    /// Parts of the resource; each thread locks its share of them, and then as many again.
    #[arg(long, value_parser = number_to(MAX_PARTS), default_value_t = PARTS, value_name = "N", allow_negative_numbers = true)]
    parts: usize,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(args: Latency) -> Result<(), Failure> {
    let locks = chosen(args.locks);
    let parts = args.parts;
    let trials = args.simulated.threads(MAX_THREADS).into_iter();
    let trials = trials.map(|threads| Trial { threads, parts });
    let points: Vec<_> = trials
        .flat_map(|trial| locks.iter().map(move |&lock| Point { lock, trial }))
        .collect();
    simulate(args.simulated, &points)
}
