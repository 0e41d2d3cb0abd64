//! `spanlock bench rw preload`: `pthread_rwlock_t` with and without the preload library, in processes of their own,
//! which are this program again.

use super::fresh::{self, Start};
use super::{Repeat, Result, measured};
use crate::Failure;
use crate::args::RwPreload;
use spanlock_bench::report::{self, Line};
use spanlock_bench::rw::locks::{PRELOADED, PTHREAD};
use spanlock_bench::rw::{Load, Record, Trial};

pub(super) fn run(RwPreload { threads, sampling }: RwPreload) -> Result {
    let trials = |repeat: Repeat<'_>| {
        let trial = |load, threads| Trial {
            load,
            threads,
            schedule: repeat.schedule,
            seed: repeat.seed,
            repeat: repeat.number,
        };
        let loads = Load::all().into_iter();
        loads
            .flat_map(|load| {
                repeat
                    .threads
                    .iter()
                    .map(move |&threads| trial(load, threads))
            })
            .collect()
    };
    let trials = sampling.trials(threads, &[], trials);
    let steps = trials.iter().flat_map(|trial| {
        // Who is first changes from repeat to repeat.
        let mut ways = [PTHREAD, PRELOADED];
        ways.rotate_left(trial.repeat as usize % 2);
        ways.map(|way| (way, trial))
    });
    let describe = |way: &str, trial: &Trial| {
        let Trial { load, threads, .. } = trial;
        format!("{way}, {load}, {threads} threads")
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
