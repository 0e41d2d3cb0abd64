//! `spanlock bench rw preload`: `pthread_rwlock_t` with and without the preload library, in processes of their own,
//! which are this program again.

use super::fresh::{self, Start};
use super::measure::{Sampling, measured};
use super::rw::panels;
use crate::failure::{Failure, Result};
use clap::Args;
use spanlock_records::record::lock::{Lock, PRELOADED, PTHREAD};
use spanlock_records::record::{Line, Record, plural};
use spanlock_report::table;

#[derive(Args)]
#[command(mut_arg("repeat", |repeat| repeat.default_value("7")))]
#[command(mut_arg("threads", |threads| {
    let help = "Threads: each a number, a:b or a:b:step. Where roles are fixed, those that read";
    threads.help(help).default_value("1,2,4,8")
}))]
pub(super) struct Preload {
    #[command(flatten)]
    sampling: Sampling,
}

pub(super) fn run(Preload { sampling }: &Preload) -> Result {
    let trials = sampling.trials(&panels());
    let steps = trials.into_iter().flat_map(|trial| {
        // The first of the two changes from repeat to repeat.
        let mut ways = [(PTHREAD, Start::Plain), (PRELOADED, Start::Preloaded)];
        ways.rotate_left(trial.repeat as usize % 2);
        ways.map(|way| (way, trial))
    });
    measured(
        &sampling.output,
        steps.collect(),
        |((way, _), trial)| format!("{way}, {}, {}", trial.load, plural(trial.threads)),
        |((way, start), trial)| {
            let record = fresh::measure(PTHREAD, *start, trial).map_err(Failure::Probe)?;
            Ok(Record {
                lock: Lock::named(way),
                ..record
            })
        },
        Line::from,
        table::preload,
    )
    .map(drop)
}
