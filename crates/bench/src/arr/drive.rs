//! A run: what each thread does.

use super::array::{Array, Ranges};
use super::{Outcome, Pauses, Timing, Trial};
use crate::crew::{self, Phase, Signal, Throughput};
use crate::target::Target;
use crate::times::Times;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

/// Runs a trial on a lock.
///
/// # Panics
/// When the trial's number of threads is not from 1 to [`MAX_THREADS`](super::MAX_THREADS).
pub fn run<T: Target>(lock: &T, trial: &Trial) -> Outcome {
    assert!((1..=super::MAX_THREADS).contains(&trial.threads));
    match trial.timing {
        Timing::Off => run_with::<T, Untimed>(lock, trial),
        Timing::On => run_with::<T, Timed>(lock, trial),
    }
}

fn run_with<T: Target, C: Clock>(lock: &T, trial: &Trial) -> Outcome {
    let array = Array::default();
    let run = crew::run(
        trial.threads,
        trial.schedule,
        trial.events,
        |thread, signal| work::<T, C>(lock, &array, trial, thread, signal),
    );
    let added = run.workers.iter().map(|tally| tally.added).sum();
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
        added,
        found: array.total(),
    }
}

/// What one thread did.
struct Tally<C> {
    /// Operations in the measured time.
    ops: u64,
    /// What it added to the array, from start to end.
    added: u64,
    clock: C,
}

fn work<T: Target, C: Clock>(
    lock: &T,
    array: &Array,
    trial: &Trial,
    thread: usize,
    signal: &Signal,
) -> Tally<C> {
    let ranges = Ranges::of(trial.variant, thread, trial.threads);
    let mut rng = crew::rng(trial.seed, trial.repeat, thread);
    let mut tally = Tally {
        ops: 0,
        added: 0,
        clock: C::default(),
    };
    loop {
        let phase = signal.phase();
        if phase == Phase::Stop {
            return tally;
        }
        let (range, passes) = ranges.next(&mut rng);
        if rng.u8(..100) < trial.reads.get() {
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
        tally.ops += u64::from(phase == Phase::Measured);
        if let Pauses::UpTo(most) = trial.pauses {
            pause(rng.u32(..=most));
        }
    }
}

fn positions(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// So many no-ops.
#[inline]
fn pause(no_ops: u32) {
    for _ in 0..no_ops {
        // Nothing to hide, so no access to memory either.
        black_box(());
    }
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
        let start = Instant::now();
        let held = acquire();
        let took = start.elapsed();
        if phase == Phase::Measured {
            self.0.record(took);
        }
        held
    }

    fn times(self) -> Option<Times> {
        Some(self.0)
    }
}
