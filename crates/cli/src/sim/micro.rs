//! `spanlock sim micro`.

use super::engine::{Simulated, simulate};
use crate::Failure;
use crate::values::seconds;
use clap::Args;
use spanlock_bench::arr::MAX_THREADS;
use spanlock_bench::micro::Kernel;
use spanlock_bench::sim::micro::Point;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Micro {
    /// What is repeated; all of them unless told.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME,...", default_values_t = Kernel::ALL)]
    kernels: Vec<Kernel>,
    /// Virtual length of each measurement, after as much again for warming up.
    #[arg(long, value_parser = seconds, default_value = "0.001")]
    seconds: Duration,
    #[command(flatten)]
    simulated: Simulated,
}

pub(super) fn run(args: Micro) -> Result<(), Failure> {
    let threads = args.simulated.threads(MAX_THREADS);
    let points = threads.into_iter().flat_map(|threads| {
        args.kernels.iter().map(move |&kernel| Point {
            kernel,
            threads,
            measured: args.seconds,
        })
    });
    let points: Vec<_> = points.collect();
    simulate(args.simulated, &points)
}
