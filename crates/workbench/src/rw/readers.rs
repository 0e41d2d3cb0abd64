//! Nothing but reading: each thread acquires one lock for reading, and releases it, without a pause.

use super::{Meter, Outcome, Rng, Run, Signal, Tally, Target, WHOLE, until_stop};

pub(super) fn run<T: Target>(run: Run<'_, impl Fn() -> T, impl Meter>) -> Outcome {
    let lock = run.lock();
    let work = |_: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
        until_stop(signal, |counts| {
            drop(std::hint::black_box(lock.read(WHOLE)));
            tally.reads += counts;
        });
    };
    run.work(work, |_| 0)
}
