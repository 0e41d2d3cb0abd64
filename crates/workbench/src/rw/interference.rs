//! Readers of random locks of a pool (P2 §5.1): locks that share a table of readers may get in each other's way.
//!
//! A thread reads a lock of the pool, chosen at random, and advances its random numbers 20 steps inside and 100
//! outside. Nobody writes, so there is nothing to check. Locks lie 128 bytes apart, as the paper's do.

use super::{Meter, Outcome, Rng, Run, Signal, Tally, Target, WHOLE, steps, until_stop};
use spanlock_records::trial::rw::MAX_POOL;

const INSIDE: u32 = 20;
const OUTSIDE: u32 = 100;

pub(super) fn run<T: Target>(run: Run<'_, impl Fn() -> T, impl Meter>, pool: usize) -> Outcome {
    assert!((1..=MAX_POOL).contains(&pool));
    let pool: Vec<_> = (0..pool).map(|_| run.lock()).collect();
    let work = |_: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
        until_stop(signal, |counts| {
            let lock = &pool[rng.usize(..pool.len())];
            let held = lock.read(WHOLE);
            steps(&mut rng, INSIDE);
            drop(held);
            steps(&mut rng, OUTSIDE);
            tally.reads += counts;
        });
    };
    run.work(work, |_| 0)
}
