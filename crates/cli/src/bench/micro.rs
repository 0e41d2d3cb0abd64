//! `spanlock bench micro`.

use super::measure::{Sampling, measured};
use crate::failure::{Failure, Result};
use crate::options::Threads;
use crate::workloads::{Kernels, turns};
use clap::Args;
use spanlock_bench::workload::measure;
use spanlock_judge::record::{Line, plural};
use spanlock_judge::table;

#[derive(Args)]
pub(super) struct Micro {
    #[command(flatten)]
    kernels: Kernels,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    sampling: Sampling,
}

pub(super) fn run(args: &Micro) -> Result {
    let trials = args.sampling.trials(&args.kernels, &args.threads, &[]);
    measured(
        &args.sampling.output,
        turns(trials, &args.kernels.distinct()),
        |(kernel, trial)| format!("{kernel}, {}", plural(trial.threads)),
        |(kernel, trial)| measure(*trial, *kernel).map_err(Failure::Check),
        Line::from,
        table::micro,
    )
    .map(drop)
}
