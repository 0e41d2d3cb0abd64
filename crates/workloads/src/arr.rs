//! ArrBench (P1 §7.1): threads read or increment ranges of an array, under a range lock.
//!
//! An operation locks a range of slots and then adds up what they hold, or adds one to each. Between operations a
//! thread does nothing, for a while of random length. At the end the array must hold exactly what was added: a lock
//! that let two writers meet has most likely lost some of it.

mod array;

pub use array::{Array, Ranges};

use crate::crew::{self, Meter, Phase, Timekeeper};
use crate::target::Target;
use crate::timed;
use fastrand::Rng;
use prim::cost;
use spanlock_trial::arr::{MAX_THREADS, Pauses, SLOTS, Timing, Trial};
use spanlock_trial::run::{Found, Outcome, Run, Throughput};
use spanlock_trial::times::Times;
use std::hint::black_box;
use std::ops::Range;

/// Runs a trial on a lock.
///
/// # Panics
/// When the trial's number of threads is not from 1 to [`MAX_THREADS`].
pub fn run<K: Timekeeper>(lock: &impl Target, trial: &Trial, meter: &mut impl Meter) -> Outcome {
    assert!((1..=MAX_THREADS).contains(&trial.threads));
    match trial.load.timing {
        Timing::Off => run_with::<K, Untimed>(lock, trial, meter),
        Timing::On => run_with::<K, Timed>(lock, trial, meter),
    }
}

fn run_with<K: Timekeeper, C: Clock>(
    lock: &impl Target,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Outcome {
    let array = Array::new(SLOTS);
    let run = crew::run_trial(trial, meter, |thread, rng, keeper: &K| {
        work::<C>(lock, &array, trial, thread, rng, keeper)
    });
    outcome(run, &array)
}

fn outcome<C: Clock>(run: Run<Tally<C>>, array: &Array) -> Outcome {
    let added = run.sum(|tally| tally.added);
    let work = Throughput::of(&run, |tally| tally.ops);
    let times = run
        .workers
        .into_iter()
        .filter_map(|tally| tally.clock.times());
    Outcome {
        work,
        acquire: times.reduce(|mut all, one| {
            all.add(&one);
            all
        }),
        found: Found::Array {
            added,
            found: array.total(),
        },
        ..Outcome::default()
    }
}

/// The work of one thread.
struct Tally<C> {
    /// Operations in the measured time.
    ops: u64,
    /// The sum of what it added to the array, from start to end.
    added: u64,
    clock: C,
}

fn work<C: Clock>(
    lock: &impl Target,
    array: &Array,
    trial: &Trial,
    thread: usize,
    mut rng: Rng,
    keeper: &impl Timekeeper,
) -> Tally<C> {
    let ranges = Ranges::of(trial.load.variant, thread, trial.threads);
    let mut tally = Tally {
        ops: 0,
        added: 0,
        clock: C::default(),
    };
    keeper.until_stop(|phase| {
        let (range, passes) = ranges.next(&mut rng);
        if rng.u8(..100) < trial.load.reads.get() {
            let held = tally.clock.time(phase, || lock.read(positions(&range)));
            for _ in 0..passes {
                black_box(array.sum(range.clone()));
            }
            drop(held);
        } else {
            let held = tally.clock.time(phase, || lock.write(positions(&range)));
            for _ in 0..passes {
                array.increment(range.clone());
            }
            drop(held);
            tally.added += (range.len() * passes) as u64;
        }
        tally.ops += phase.counts();
        if let Pauses::UpTo(most) = trial.load.pauses {
            pause(rng.u64(..=u64::from(most)));
        }
    });
    tally
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

/// Times acquisitions, or does not.
trait Clock: Default + Send {
    fn time<G>(&mut self, phase: Phase, acquire: impl FnOnce() -> G) -> G;

    /// Nanoseconds that acquisitions took.
    fn times(self) -> Option<Times>;
}

#[derive(Default)]
struct Untimed;

impl Clock for Untimed {
    #[inline]
    fn time<G>(&mut self, _: Phase, acquire: impl FnOnce() -> G) -> G {
        acquire()
    }

    fn times(self) -> Option<Times> {
        None
    }
}

#[derive(Default)]
struct Timed(Times);

impl Clock for Timed {
    #[inline]
    fn time<G>(&mut self, phase: Phase, acquire: impl FnOnce() -> G) -> G {
        let (held, took) = timed(acquire);
        if phase == Phase::Measured {
            self.0.record(took);
        }
        held
    }

    fn times(self) -> Option<Times> {
        Some(self.0)
    }
}
