//! Readers of random locks of a pool (P2 §5.1): locks that share a table of readers may get in each other's way.
//!
//! A thread reads a lock of the pool, chosen at random, and advances its random numbers 20 steps inside and 100
//! outside. Nobody writes, so there is nothing to check. Locks lie 128 bytes apart, as the paper's do.

use super::{Meter, Outcome, Tally, Target, Trial, WHOLE, crew, steps, until_stop};
use crossbeam_utils::CachePadded;
use spanlock_trial::rw::MAX_POOL;

const INSIDE: u32 = 20;
const OUTSIDE: u32 = 100;

pub(super) fn run<T: Target>(
    make: impl Fn() -> T,
    pool: usize,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    assert!((1..=MAX_POOL).contains(&pool));
    let pool: Vec<_> = (0..pool).map(|_| CachePadded::new(make())).collect();
    let run = crew::run_signalled(trial.threads, trial.schedule, meter, |thread, signal| {
        let mut rng = crew::rng(trial.seed, trial.repeat, thread);
        let mut tally = Tally::default();
        until_stop(signal, |counts| {
            let lock = &pool[rng.usize(..pool.len())];
            let held = lock.read(WHOLE);
            steps(&mut rng, INSIDE);
            drop(held);
            steps(&mut rng, OUTSIDE);
            tally.reads += counts;
        });
        tally
    });
    Outcome::of(&run, |_| 0)
}
