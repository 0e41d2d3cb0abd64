//! `spanlock bench micro`.

use super::{Repeat, Result, distinct, measured};
use crate::Failure;
use crate::args::Micro;
use spanlock_bench::compare::plural;
use spanlock_bench::micro::{Record, Trial};
use spanlock_bench::report::{self, Line};

pub(super) fn run(args: Micro) -> Result {
    let kernels = distinct(args.kernels, |kernel| *kernel);
    let trials = |repeat: Repeat<'_>| {
        let trials = repeat.threads.iter().map(|&threads| Trial {
            threads,
            schedule: repeat.schedule,
            seed: repeat.seed,
            repeat: repeat.number,
        });
        trials.collect()
    };
    let trials = args.sampling.trials(args.threads, &[], trials);
    let steps = trials
        .iter()
        .flat_map(|trial| kernels.iter().map(move |&kernel| (kernel, trial)));
    measured(
        args.sampling.output.format,
        steps,
        |(kernel, trial)| format!("{kernel}, {}", plural(trial.threads)),
        |(kernel, trial)| {
            Record::measure(*kernel, trial).map_err(|found| {
                Failure::Check(format!("{kernel}, {}: {found}", plural(trial.threads)))
            })
        },
        Line::Micro,
        report::micro,
    )?;
    Ok(())
}
