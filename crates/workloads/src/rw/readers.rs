//! Nothing but reading: each thread acquires one lock for reading, and releases it, without a pause.

use super::{Meter, Outcome, Tally, Target, Trial, WHOLE, crew, until_stop};
use crossbeam_utils::CachePadded;

pub(super) fn run<T: Target>(
    make: impl Fn() -> T,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    let lock = CachePadded::new(make());
    let run = crew::run_signalled(trial.threads, trial.schedule, meter, |_, signal| {
        let mut tally = Tally::default();
        until_stop(signal, |counts| {
            drop(std::hint::black_box(lock.read(WHOLE)));
            tally.reads += counts;
        });
        tally
    });
    Outcome::of(&run, |_| 0)
}
