//! How long an acquisition takes: percentiles and the longest (P3 §VI-B1, Figure 10).
//!
//! P3 distinguishes the first writes to a file, when a lock may have to make what it keeps for a part of the file, and
//! later ones. So here: threads first lock every part of a fresh resource, each part once, by one of them and in
//! random order; then, on the same lock, as many random parts again, which other threads may want too. Each
//! acquisition is for one part alone, is timed by two readings of the clock, and is released at once.
//!
//! Before that each thread locks a little in a second lock of the same kind: what a thread pays once in its life is
//! no part of these numbers. `bench uncontended` and `bench waiting` have the other ends of the scale.

use crate::crew::rng;
use crate::target::Target;
use crate::timed;
use fastrand::Rng;
use prim::clock::Instant;
use prim::workload::{self, Start};
use spanlock_records::trial::latency::{MAX_PARTS, Trial};
use spanlock_records::trial::run::{Outcome, Throughput};
use spanlock_records::trial::times::Times;
use std::hint::black_box;
use std::ops::Range;

/// Runs one round, which `repeat` numbers, on fresh locks that `make` makes.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<T: Target>(make: impl Fn() -> T, trial: &Trial) -> Outcome {
    let parts = trial.load.parts;
    assert!(trial.threads > 0 && (1..=MAX_PARTS).contains(&parts));
    let mut order: Vec<usize> = (0..parts).collect();
    // The number of no thread, so that this seed differs from all others.
    rng(trial.seed, trial.repeat, trial.threads).shuffle(&mut order);
    let locks = Locks {
        measured: make(),
        spare: make(),
        trial,
    };
    let begun = Instant::now();
    let first = locks.crew(|share, _| locks.time(order[share].iter().copied()));
    // Threads of the second phase begin when all of the first have ended.
    let again = locks.crew(|share, mut rng| locks.time(share.map(|_| rng.usize(..parts))));
    let elapsed = begun.elapsed();
    let ops = first.iter().zip(&again);
    Outcome {
        work: Throughput {
            ops: ops
                .map(|(first, again)| first.count() + again.count())
                .collect(),
            elapsed,
            ..Throughput::default()
        },
        first: Some(Times::sum(&first)),
        again: Some(Times::sum(&again)),
        ..Outcome::default()
    }
}

struct Locks<'a, T> {
    measured: T,
    spare: T,
    trial: &'a Trial,
}

impl<T: Target> Locks<'_, T> {
    /// Has so many threads warm up, and then all at once do what each is to do with its share of the parts.
    fn crew(&self, work: impl Fn(Range<usize>, Rng) -> Times + Sync) -> Vec<Times> {
        let (threads, parts) = (self.trial.threads, self.trial.load.parts);
        let start = Start::new(threads);
        let from = |thread| thread * parts / threads;
        let work = |thread| {
            let rng = self.warm_up(thread);
            start.wait();
            work(from(thread)..from(thread + 1), rng)
        };
        workload::crew(threads, work, || ())
    }

    /// Locks a little in the second lock: what a thread pays once is no part of the times.
    fn warm_up(&self, thread: usize) -> Rng {
        let Trial {
            load, seed, repeat, ..
        } = *self.trial;
        let mut rng = rng(seed, repeat, thread);
        for _ in 0..load.warmup.min(load.parts) {
            let part = rng.usize(..load.parts);
            drop(black_box(timed(|| self.spare.write(positions(part)))));
        }
        rng
    }

    /// Holds each for a moment.
    fn time(&self, parts: impl Iterator<Item = usize>) -> Times {
        let mut times = Times::default();
        for part in parts {
            let (held, took) = timed(|| self.measured.write(positions(part)));
            times.record(took);
            drop(black_box(held));
        }
        times
    }
}

fn positions(part: usize) -> Range<u64> {
    part as u64..part as u64 + 1
}
