//! Threads that read or write by chance (P2 §5.4).
//!
//! Each operation writes with a given probability and else reads; it advances the thread's random numbers inside and
//! outside. In the paper that is 10 steps inside, and outside from 0 to 199.

use super::guarded::Guarded;
use super::{Meter, Outcome, Rng, Run, Signal, Tally, Target, WHOLE, steps, until_stop};

/// Inside each operation does so much work, and outside at most so much.
pub(super) fn run<T: Target>(
    run: Run<'_, impl Fn() -> T, impl Meter>,
    writes: f64,
    inside: u32,
    outside: u32,
) -> Outcome {
    assert!((0.0..=1.0).contains(&writes));
    let lock = run.lock();
    let data = Guarded::default();
    let work = |_: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
        until_stop(signal, |counts| {
            if rng.f64() < writes {
                let held = lock.write(WHOLE);
                data.write(|| steps(&mut rng, inside));
                drop(held);
                tally.writes += counts;
                tally.added += 1;
            } else {
                let held = lock.read(WHOLE);
                tally.torn += data.read(|| steps(&mut rng, inside));
                drop(held);
                tally.reads += counts;
            }
            let pause = rng.u32(..=outside);
            steps(&mut rng, pause);
        });
    };
    run.work(work, |wrote| data.lost(wrote))
}
