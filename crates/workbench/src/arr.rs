//! ArrBench (P1 §7.1): threads read or increment ranges of an array, under a range lock.
//!
//! An operation locks a range of slots and then adds up what they hold, or adds one to each. Between operations a
//! thread does nothing, for a while of random length. At the end the array must hold exactly what was added: a lock
//! that let two writers meet has most likely lost some of it.

mod array;

pub use array::{Array, Ranges};

use crate::crew::{self, Meter, Timekeeper};
use crate::target::Target;
use fastrand::Rng;
use prim::cost;
use spanlock_records::trial::arr::{MAX_THREADS, Pauses, SLOTS, Timing, Trial};
use spanlock_records::trial::run::{Found, Outcome, Tally};
use spanlock_records::trial::times::Times;
use std::hint::black_box;
use std::ops::Range;

/// Runs a trial on a lock.
///
/// # Panics
/// When the trial's number of threads is not from 1 to [`MAX_THREADS`].
pub fn run<K: Timekeeper>(lock: &impl Target, trial: &Trial, meter: &mut impl Meter) -> Outcome {
    assert!((1..=MAX_THREADS).contains(&trial.threads));
    let array = Array::new(SLOTS);
    crew::tallied(
        trial,
        meter,
        |thread, rng, keeper: &K, tally| work(lock, &array, trial, thread, rng, keeper, tally),
        |all| Found::Array {
            added: all.added,
            found: array.total(),
        },
    )
}

fn work(
    lock: &impl Target,
    array: &Array,
    trial: &Trial,
    thread: usize,
    mut rng: Rng,
    keeper: &impl Timekeeper,
    tally: &mut Tally,
) {
    let ranges = Ranges::of(trial.load.variant, thread, trial.threads);
    tally.times = (trial.load.timing == Timing::On).then(Times::default);
    keeper.until_stop(|phase| {
        let (range, passes) = ranges.next(&mut rng);
        if rng.u8(..100) < trial.load.reads.get() {
            let held = crew::acquire(tally, phase, || lock.read(positions(&range)));
            for _ in 0..passes {
                black_box(array.sum(range.clone()));
            }
            drop(held);
        } else {
            let held = crew::acquire(tally, phase, || lock.write(positions(&range)));
            for _ in 0..passes {
                array.increment(range.clone());
            }
            drop(held);
            tally.added += (range.len() * passes) as u64;
        }
        tally.writes += phase.counts();
        if let Pauses::UpTo(most) = trial.load.pauses {
            pause(rng.u64(..=u64::from(most)));
        }
    });
}

fn positions(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// Does so many no-ops.
#[inline]
pub(crate) fn pause(no_ops: u64) {
    for _ in 0..no_ops {
        // Nothing to hide, so no access to memory either.
        black_box(());
    }
    cost::work(no_ops * cost::steps().no_op);
}
