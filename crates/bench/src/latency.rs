//! How long an acquisition takes: percentiles and the longest (P3 §VI-B1, Figure 10).
//!
//! P3 tells apart the first writes to a file, when a lock may have to make what it keeps for a part of the file, and
//! later ones. So here: threads first lock every part of a fresh resource, each part once, by one of them and in
//! random order; then, on the same lock, as many random parts again, which other threads may want too. Each
//! acquisition is for one part alone, is timed by two looks at the clock, and is released at once.
//!
//! Before that each thread locks a little in a second lock of the same kind: what a thread pays once in its life is
//! no part of these numbers. `bench uncontended` and `bench waiting` have the other ends of the scale.

use crate::crew;
use crate::registry::Lock;
use crate::setting::Resource;
use crate::target::Target;
use crate::times::{AcquireTimes, Times};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;

/// Parts of the resource, unless told otherwise: each phase of a round lasts longer than a time slice, so that threads
/// meet though there be more of them than processors.
pub const PARTS: usize = 1 << 18;

/// The most parts.
pub const MAX_PARTS: usize = 1 << 20;

/// Acquisitions in a second lock before the first that counts.
const WARMUP: usize = 1000;

/// One run, but for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Threads.
    pub threads: usize,
    /// Parts of the resource: up to [`MAX_PARTS`].
    pub parts: usize,
    /// Rounds, each on a fresh lock.
    pub rounds: u32,
    /// What random numbers follow from.
    pub seed: u64,
}

impl Trial {
    /// The resource: a part is one position, as if it were the number of a block of a file.
    #[must_use]
    pub fn resource(&self) -> Resource {
        Resource {
            units: self.parts as u64,
            grain: 1,
        }
    }
}

/// Acquisitions of parts that nobody had locked before, and of others.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The first of each part.
    pub first: Times,
    /// Those after.
    pub again: Times,
}

impl Outcome {
    /// Adds all of another.
    pub fn add(&mut self, other: &Self) {
        self.first.add(&other.first);
        self.again.add(&other.again);
    }
}

/// Runs one round on a fresh lock; `spare` is another.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<T: Target>(lock: &T, spare: &T, trial: &Trial, round: u32) -> Outcome {
    assert!(trial.threads > 0 && (1..=MAX_PARTS).contains(&trial.parts));
    let mut parts: Vec<usize> = (0..trial.parts).collect();
    // Of a thread that does not exist, so a stranger to all that do.
    crew::rng(trial.seed, round, trial.threads).shuffle(&mut parts);
    let together = Barrier::new(trial.threads);
    let mut outcome = Outcome::default();
    std::thread::scope(|scope| {
        let crew: Vec<_> = (0..trial.threads)
            .map(|thread| {
                let share = |thread| thread * trial.parts / trial.threads;
                let mine = &parts[share(thread)..share(thread + 1)];
                let together = &together;
                scope.spawn(move || {
                    let mut rng = crew::rng(trial.seed, round, thread);
                    for _ in 0..WARMUP.min(trial.parts) {
                        drop(spare.write(positions(rng.usize(..trial.parts))));
                    }
                    let mut seen = Outcome::default();
                    together.wait();
                    for &part in mine {
                        drop(black_box(seen.first.time(|| lock.write(positions(part)))));
                    }
                    together.wait();
                    for _ in mine {
                        let part = positions(rng.usize(..trial.parts));
                        drop(black_box(seen.again.time(|| lock.write(part))));
                    }
                    seen
                })
            })
            .collect();
        for worker in crew {
            outcome.add(&worker.join().expect("a worker locks and releases"));
        }
    });
    outcome
}

pub(crate) fn positions(part: usize) -> Range<u64> {
    part as u64..part as u64 + 1
}

/// One lock with so many threads: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The lock's name.
    pub lock: String,
    /// Threads.
    pub threads: usize,
    /// Parts of the resource.
    pub parts: usize,
    /// Rounds, each on a fresh lock.
    pub rounds: u32,
    /// What random numbers follow from.
    pub seed: u64,
    /// First acquisitions of a part.
    pub first_count: u64,
    /// How long they took, over all rounds and threads.
    pub first_ns: AcquireTimes,
    /// Later acquisitions.
    pub again_count: u64,
    /// How long they took, over all rounds and threads.
    pub again_ns: AcquireTimes,
}

impl Record {
    /// Measures all rounds of a lock.
    #[must_use]
    pub fn measure(lock: &Lock, trial: &Trial) -> Self {
        let mut all = Outcome::default();
        for round in 0..trial.rounds {
            all.add(&lock.measure.latency(lock.values, trial, round));
        }
        Self {
            lock: lock.name.to_owned(),
            threads: trial.threads,
            parts: trial.parts,
            rounds: trial.rounds,
            seed: trial.seed,
            first_count: all.first.count(),
            first_ns: AcquireTimes::from(&all.first),
            again_count: all.again.count(),
            again_ns: AcquireTimes::from(&all.again),
        }
    }
}
