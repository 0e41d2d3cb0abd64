//! Threads that read or write by chance (P2 §5.4).
//!
//! Each operation writes with a given probability and else reads; it advances the thread's random numbers 10 steps
//! inside, and outside from 0 to 199.

use super::guarded::Guarded;
use super::{Meter, Outcome, Tally, Target, Trial, WHOLE, crew, steps, until_stop};
use crossbeam_utils::CachePadded;

const INSIDE: u32 = 10;
const OUTSIDE: u32 = 200;

pub(super) fn run<T: Target>(
    make: impl Fn() -> T,
    writes: f64,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    assert!((0.0..=1.0).contains(&writes));
    let lock = CachePadded::new(make());
    let data = Guarded::default();
    let run = crew::run_signalled(trial.threads, trial.schedule, meter, |thread, signal| {
        let mut rng = crew::rng(trial.seed, trial.repeat, thread);
        let mut tally = Tally::default();
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
        tally
    });
    Outcome::of(&run, |wrote| data.lost(wrote))
}
