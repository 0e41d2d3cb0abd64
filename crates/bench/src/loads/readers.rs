//! Nothing but reading: each thread acquires one lock for reading, and releases it, without a pause.

use super::{Outcome, RwTarget, Tally, Trial, crew, until_stop};
use crossbeam_utils::CachePadded;

pub(super) fn run<T: RwTarget>(make: impl Fn() -> T, trial: &Trial) -> Outcome {
    let lock = CachePadded::new(make());
    let run = crew::run(trial.threads, trial.schedule, &[], |_, signal| {
        let mut tally = Tally::default();
        until_stop(signal, |counts| {
            drop(std::hint::black_box(lock.read()));
            tally.reads += counts;
        });
        tally
    });
    Outcome::of(&run, |_| 0)
}
