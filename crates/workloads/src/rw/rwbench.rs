//! Threads that read or write by chance (P2 §5.4).
//!
//! Each operation writes with a given probability and else reads; it advances the thread's random numbers 10 steps
//! inside, and outside from 0 to 199.

use super::guarded::Guarded;
use super::{Meter, Outcome, Run, Signal, Tally, Target, WHOLE, crew, steps, until_stop};

const INSIDE: u32 = 10;
const OUTSIDE: u32 = 200;

pub(super) fn run<T: Target>(run: Run<'_, impl Fn() -> T, impl Meter>, writes: f64) -> Outcome {
    assert!((0.0..=1.0).contains(&writes));
    let lock = run.lock();
    let data = Guarded::default();
    let trial = run.trial;
    let work = |thread: usize, signal: &Signal, tally: &mut Tally| {
        let mut rng = crew::rng(trial.seed, trial.repeat, thread);
        until_stop(signal, |counts| {
            if rng.f64() < writes {
                let held = lock.write(WHOLE);
                data.write(|| steps(&mut rng, INSIDE));
                drop(held);
                tally.writes += counts;
                tally.wrote += 1;
            } else {
                let held = lock.read(WHOLE);
                tally.torn += data.read(|| steps(&mut rng, INSIDE));
                drop(held);
                tally.reads += counts;
            }
            let outside = rng.u32(..OUTSIDE);
            steps(&mut rng, outside);
        });
    };
    run.work(work, |wrote| data.lost(wrote))
}
