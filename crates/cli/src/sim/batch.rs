//! `spanlock sim batch`.

use super::chosen;
use super::engine::{Simulated, simulate};
use crate::Failure;
use crate::bench::wrong_arguments;
use crate::values::{number_to, seconds};
use clap::Args;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::batch::{MAX_HOLD, MAX_RANGES, RANGES};
use spanlock_bench::sim::Lock;
use spanlock_bench::sim::batch::{Point, Trial};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Batch {
    /// Locks, by name; unless told, all range locks that `bench` has too.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Lock::find, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
    /// Ranges held together: 1 is W1, 16 is W2.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = number_to(MAX_HOLD), default_value = "1,16", value_name = "N,...", allow_negative_numbers = true)]
    hold: Vec<usize>,
    /// Ranges in the memory that is written, 1 KB each.
    #[arg(long, value_parser = number_to(MAX_RANGES), default_value_t = RANGES, value_name = "N", allow_negative_numbers = true)]
    ranges: usize,
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(args: Batch) -> Result<(), Failure> {
    let ranges = args.ranges;
    if let Some(hold) = args.hold.iter().find(|hold| **hold > ranges) {
        let what = format!("--hold {hold} is more than there are ranges: --ranges is {ranges}");
        wrong_arguments(&what);
    }
    let locks = chosen(args.locks);
    let threads = args.simulated.threads(MAX_THREADS);
    let mut points = Vec::new();
    for &hold in &args.hold {
        for &threads in &threads {
            let trial = Trial {
                hold,
                ranges,
                threads,
                measured: args.seconds,
            };
            points.extend(locks.iter().map(|&lock| Point { lock, trial }));
        }
    }
    simulate(args.simulated, &points)
}
