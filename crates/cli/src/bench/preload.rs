//! `spanlock bench rw preload`: `pthread_rwlock_t` with and without the preload library, in processes of their own,
//! which are this program again.

use super::fresh::{self, Start};
use super::rw::trials_of;
use super::{Result, measured};
use crate::Failure;
use crate::args::RwPreload;
use spanlock_bench::compare::plural;
use spanlock_bench::report::{self, Line};
use spanlock_bench::rw::locks::{PRELOADED, PTHREAD};
use spanlock_bench::rw::{Load, Record, Trial};

pub(super) fn run(RwPreload { threads, sampling }: RwPreload) -> Result {
    let trials = trials_of(&sampling, threads, &Load::all());
    let steps = trials.iter().flat_map(|trial| {
        // Who is first changes from repeat to repeat.
        let mut ways = [PTHREAD, PRELOADED];
        ways.rotate_left(trial.repeat as usize % 2);
        ways.map(|way| (way, trial))
    });
    let describe = |way: &str, trial: &Trial| {
        let Trial { load, threads, .. } = trial;
        format!("{way}, {load}, {}", plural(*threads))
    };
    measured(
        sampling.output.format,
        steps,
        |(way, trial)| describe(way, trial),
        |(way, trial)| {
            let failed = |what| Failure::Probe(format!("{}: {what}", describe(way, trial)));
            let start = if *way == PRELOADED {
                Start::Preloaded
            } else {
                Start::Plain
            };
            let record = fresh::measure(PTHREAD, start, trial).map_err(failed)?;
            Ok(Record {
                lock: (*way).to_owned(),
                ..record
            })
        },
        Line::Rw,
        report::preload,
    )?;
    Ok(())
}
