//! Readers and one writer, with fixed roles (P2 §5.3: `test_rwlock T 1 10 -c 10 -e 10 -d 1000`).
//!
//! All count down from 10 inside; the writer counts down from 1000 between its writes, readers read without a pause.

use super::guarded::Guarded;
use super::{Meter, Outcome, Tally, Target, Trial, WHOLE, count_down, crew, until_stop};
use crossbeam_utils::CachePadded;

/// Work inside.
const INSIDE: u32 = 10;

pub(super) fn run<T: Target>(
    make: impl Fn() -> T,
    pause: u32,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    let lock = CachePadded::new(make());
    let data = Guarded::default();
    // Thread 0 writes.
    let run = crew::run_signalled(
        trial.threads + 1,
        trial.schedule,
        meter,
        |thread, signal| {
            let mut tally = Tally::default();
            if thread == 0 {
                until_stop(signal, |counts| {
                    let held = lock.write(WHOLE);
                    data.write(|| count_down(INSIDE));
                    drop(held);
                    count_down(pause);
                    tally.writes += counts;
                    tally.wrote += 1;
                });
            } else {
                until_stop(signal, |counts| {
                    let held = lock.read(WHOLE);
                    tally.torn += data.read(|| count_down(INSIDE));
                    drop(held);
                    tally.reads += counts;
                });
            }
            tally
        },
    );
    Outcome::of(&run, |wrote| data.lost(wrote))
}
