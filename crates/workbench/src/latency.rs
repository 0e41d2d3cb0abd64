//! How long an acquisition takes: percentiles and the longest (P3 §VI-B1, Figure 10).
//!
//! P3 distinguishes the first writes to a file, when a lock may have to make what it keeps for a part of the file, and
//! later ones. So here: threads first lock every part of a fresh resource, each part once, by one of them and in
//! random order; then, on the same lock, as many random parts again, which other threads may want too. Each
//! acquisition is for one part alone, is timed by two readings of the clock, and is released at once.
//!
//! Before that each thread locks a little in a second lock of the same kind: what a thread pays once in its life is
//! no part of these numbers. `bench uncontended` and `bench waiting` have the other ends of the scale.

use crate::crew::{Meter, rng};
use crate::target::AnyLock;
use crate::timed;
use crate::workload::{Ends, Makes, OnRanges, Workload};
use fastrand::Rng;
use prim::clock::Instant;
use prim::workload::{self, Start};
use serde::{Deserialize, Serialize};
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Outcome, Throughput};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::settings::Settings;
use spanlock_records::trial::times::Times;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;

/// The most parts.
pub const MAX_PARTS: usize = 1 << 20;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Parts of the resource: up to [`MAX_PARTS`].
    pub parts: usize,
}

impl Load {
    /// Acquisitions of each thread in a second lock before the first that counts.
    const fn warmup(self) -> usize {
        match self.parts / 256 {
            0 => 1,
            some if some > 1000 => 1000,
            some => some,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one part of {}", self.parts)
    }
}

impl Settings for Load {
    const NAME: &'static str = "latency";
    const KIND: Kind = Kind::Others;
}

impl Workload for Load {
    const ABOUT: &'static str = "Acquisition times of fresh parts of a resource, and later ones: \
        percentiles and the maximum";
    /// Each phase of a round lasts longer than a time slice, so that threads meet though there be more of them than
    /// processors.
    const ARGUMENTS: &'static [Argument] = &[Argument::whole(
        "parts",
        1..=MAX_PARTS,
        "262144",
        "Parts of the resource; each thread locks its share of them, and then as many again",
    )
    .simulated("16384")];
    const ENDS: Ends = Ends::ByItself("it ends when all --parts were locked");
}

/// One run.
type Trial = spanlock_records::trial::run::Trial<Load>;

impl OnRanges for Load {
    fn run(lock: &dyn Makes, trial: &Trial, _: &mut dyn Meter) -> Result<Outcome, &'static str> {
        let parts = trial.load.parts;
        assert!(trial.threads > 0 && (1..=MAX_PARTS).contains(&parts));
        // A part is one position, as if it were the number of a block of a file.
        let resource = Resource {
            units: parts as u64,
            grain: 1,
        };
        let mut order: Vec<usize> = (0..parts).collect();
        // The number of no thread, so that this seed differs from all others.
        rng(trial.seed, trial.repeat, trial.threads).shuffle(&mut order);
        let locks = Locks {
            measured: lock.make(resource),
            spare: lock.make(resource),
            trial,
        };
        let begun = Instant::now();
        let first = locks.crew(|share, _| locks.time(order[share].iter().copied()));
        // Threads of the second phase begin when all of the first have ended.
        let again = locks.crew(|share, mut rng| locks.time(share.map(|_| rng.usize(..parts))));
        let elapsed = begun.elapsed();
        let ops = first.iter().zip(&again);
        Ok(Outcome {
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
        })
    }
}

struct Locks<'a> {
    measured: Box<dyn AnyLock>,
    spare: Box<dyn AnyLock>,
    trial: &'a Trial,
}

impl Locks<'_> {
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
        for _ in 0..load.warmup() {
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
