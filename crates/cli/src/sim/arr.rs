//! `spanlock sim arr`.

use super::chosen;
use super::engine::{Simulated, simulate};
use crate::Failure;
use crate::values::seconds;
use clap::Args;
use spanlock_bench::arr::{MAX_THREADS, Percent, Timing, Variant};
use spanlock_bench::sim::Lock;
use spanlock_bench::sim::arr::{Point, Trial};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arr {
    /// Locks, by name; unless told, all range locks that `bench` has too.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Lock::find, value_name = "NAME,...")]
    locks: Vec<&'static Lock>,
    /// Ranges: full, disjoint, random.
    #[arg(
        long,
        num_args = 1.., value_delimiter = ',',
        default_value = "full,disjoint,random",
        value_name = "NAME,..."
    )]
    variant: Vec<Variant>,
    /// Of a hundred operations, those that read.
    #[arg(
        long,
        num_args = 1.., value_delimiter = ',',
        default_value = "100,60",
        value_name = "PERCENT,..."
    )]
    reads: Vec<Percent>,
    /// Time each acquisition, which costs two looks at the clock.
    #[arg(long)]
    latency: bool,
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.002")]
    seconds: Duration,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(args: Arr) -> Result<(), Failure> {
    let locks = chosen(args.locks);
    let timing = if args.latency {
        Timing::On
    } else {
        Timing::Off
    };
    let threads = args.simulated.threads(MAX_THREADS);
    let mut points = Vec::new();
    for &variant in &args.variant {
        for &reads in &args.reads {
            for &threads in &threads {
                let trial = Trial {
                    variant,
                    reads,
                    threads,
                    timing,
                    measured: args.seconds,
                };
                points.extend(locks.iter().map(|&lock| Point { lock, trial }));
            }
        }
    }
    simulate(args.simulated, &points)
}
