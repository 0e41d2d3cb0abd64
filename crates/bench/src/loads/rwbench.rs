//! Threads that read or write by chance (P2 §5.4).
//!
//! Each operation writes with a given probability and else reads; it advances the thread's random numbers 10 steps
//! inside, and outside from 0 to 199.

use super::guarded::Guarded;
use super::{Outcome, RwTarget, Tally, Trial, crew, steps, until_stop};
use crossbeam_utils::CachePadded;

/// The parts of operations that write, of the paper's six figures.
pub const WRITES: [f64; 6] = [0.9, 0.5, 0.1, 0.01, 0.001, 0.0001];

const INSIDE: u32 = 10;
const OUTSIDE: u32 = 200;

pub(super) fn run<T: RwTarget>(make: impl Fn() -> T, writes: f64, trial: &Trial) -> Outcome {
    assert!((0.0..=1.0).contains(&writes));
    let lock = CachePadded::new(make());
    let data = Guarded::default();
    let run = crew::run(trial.threads, trial.schedule, &[], |thread, signal| {
        let mut rng = crew::rng(trial.seed, trial.repeat, thread);
        let mut tally = Tally::default();
        until_stop(signal, |counts| {
            if rng.f64() < writes {
                let held = lock.write();
                data.write(|| steps(&mut rng, INSIDE));
                drop(held);
                tally.writes += counts;
                tally.wrote += 1;
            } else {
                let held = lock.read();
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
