//! Readers and one writer, with fixed roles (P2 §5.3: `test_rwlock T 1 10 -c 10 -e 10 -d 1000`).
//!
//! All count down from 10 inside; the writer counts down from 1000 between its writes, readers read without a pause.
//! The writer's waits are timed, so that it shows whether readers starve it.

use super::guarded::Guarded;
use super::{Meter, Outcome, Rng, Run, Signal, Tally, Target, Timekeeper, WHOLE, count_down, crew};

/// Work inside.
const INSIDE: u32 = 10;

pub(super) fn run<T: Target>(run: Run<'_, impl Fn() -> T, impl Meter>, pause: u32) -> Outcome {
    let lock = run.lock();
    let data = Guarded::default();
    // Thread 0 writes.
    let work = |thread: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
        if thread == 0 {
            tally.times = Some(Default::default());
            signal.until_stop(|phase| {
                let held = crew::acquire(tally, phase, || lock.write(WHOLE));
                data.write(|| count_down(INSIDE));
                drop(held);
                count_down(pause);
                tally.writes += phase.counts();
                tally.added += 1;
            });
        } else {
            signal.until_stop(|phase| {
                let held = lock.read(WHOLE);
                tally.torn += data.read(|| count_down(INSIDE));
                drop(held);
                tally.reads += phase.counts();
            });
        }
    };
    run.work(work, |wrote| data.lost(wrote))
}
