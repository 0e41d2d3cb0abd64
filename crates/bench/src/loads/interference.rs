//! Readers of random locks of a pool (P2 §5.1): locks that share a table of readers may get in each other's way.
//!
//! A thread reads a lock of the pool, chosen at random, and advances its random numbers 20 steps inside and 100 outside. Nobody
//! writes, so there is nothing to check. Locks lie 128 bytes apart, as the paper's do.

use super::{Outcome, RwTarget, Tally, Trial, crew, steps, until_stop};
use crossbeam_utils::CachePadded;

/// Pools of the paper's figure: powers of two from 1 to this.
pub const MAX_POOL: usize = 8192;

/// The paper's threads.
pub const THREADS: usize = 64;

const INSIDE: u32 = 20;
const OUTSIDE: u32 = 100;

pub(super) fn run<T: RwTarget>(make: impl Fn() -> T, pool: usize, trial: &Trial) -> Outcome {
    assert!((1..=MAX_POOL).contains(&pool));
    let pool: Vec<_> = (0..pool).map(|_| CachePadded::new(make())).collect();
    let run = crew::run(trial.threads, trial.schedule, &[], |thread, signal| {
        let mut rng = crew::rng(trial.seed, trial.repeat, thread);
        let mut tally = Tally::default();
        until_stop(signal, |counts| {
            let lock = &pool[rng.usize(..pool.len())];
            let held = lock.read();
            steps(&mut rng, INSIDE);
            drop(held);
            steps(&mut rng, OUTSIDE);
            tally.reads += counts;
        });
        tally
    });
    Outcome::of(&run, |_| 0)
}
