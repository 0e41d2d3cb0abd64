//! How long an acquisition takes (P3 §VI-B1) on a simulated machine: the parts of [`crate::latency`], in virtual time.

use super::point::crew;
use super::subject::{AnyLock, Lock};
use super::{Run, Setup};
use crate::latency::{Outcome as Seen, positions};
use crate::report::{self, Line, Width};
use crate::setting::Resource;
use crate::sim;
use crate::times::{AcquireTimes, Times};
use prim_sim::clock::{Duration, Instant};
use prim_sim::{Ended, Failure};
use serde::{Deserialize, Serialize};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::Mode;
use std::sync::Arc;

/// Parts of the resource, unless told otherwise.
pub const PARTS: usize = 1 << 14;

/// Acquisitions in a second lock before the first that counts.
const WARMUP: usize = 100;

/// One run, but for the machine and the lock.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// Threads.
    pub threads: usize,
    /// Parts of the resource: up to [`MAX_PARTS`](crate::latency::MAX_PARTS).
    pub parts: usize,
}

impl Trial {
    fn resource(&self) -> Resource {
        Resource {
            units: self.parts as u64,
            grain: 1,
        }
    }
}

/// What a run yielded.
#[derive(Debug)]
pub struct Outcome {
    seen: Seen,
    /// Acquisitions of each thread.
    ops: Vec<u64>,
    /// From the first to the last.
    took: Duration,
}

/// A trial on a lock.
#[derive(Clone, Copy)]
pub struct Point {
    /// The lock.
    pub lock: &'static Lock,
    /// The trial.
    pub trial: Trial,
}

/// What a point yields: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Parts of the resource.
    pub parts: usize,
    /// First acquisitions of a part.
    pub first_count: u64,
    /// How long they took in virtual time, over all threads.
    pub first_ns: AcquireTimes,
    /// Later acquisitions.
    pub again_count: u64,
    /// How long they took in virtual time, over all threads.
    pub again_ns: AcquireTimes,
    /// Throughput, and where it comes from.
    #[serde(flatten)]
    pub run: Run,
}

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Trial { threads, parts } = self.trial;
        let lock = self.lock.name;
        let threads = crate::compare::plural(threads);
        format!("latency, {parts} parts, {threads}, {lock}")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let Self { lock, trial } = self;
        let ended = run(lock.make, setup, *trial).map_err(|failure| failure.to_string())?;
        let Outcome { seen, ops, took } = ended.value;
        Ok(Record {
            parts: trial.parts,
            first_count: seen.first.count(),
            first_ns: AcquireTimes::from(&seen.first),
            again_count: seen.again.count(),
            again_ns: AcquireTimes::from(&seen.again),
            run: Run::new(lock.name, setup, took, &ops, ended.operations),
        })
    }
}

impl sim::Record for Record {
    fn panel(&self) -> String {
        format!("one part of {}", self.parts)
    }

    fn run(&self) -> &Run {
        &self.run
    }

    fn table(all: &[Self], width: Width) -> String {
        format!(
            "first: nobody has locked the part before\n{}\nagain: random parts, after all were locked\n{}",
            report::sim_times(all, width, |record| Some(record.first_ns)),
            report::sim_times(all, width, |record| Some(record.again_ns))
        )
    }
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self::SimLatency(record)
    }
}

struct Shared {
    lock: Box<dyn AnyLock>,
    spare: Box<dyn AnyLock>,
    trial: Trial,
    seed: u64,
    /// All parts, in random order: a share for each thread.
    parts: Vec<usize>,
}

fn run(
    make: fn(Resource) -> Box<dyn AnyLock>,
    setup: &Setup,
    trial: Trial,
) -> Result<Ended<Outcome>, Box<Failure>> {
    let seed = setup.seed;
    prim_sim::run(setup, move || {
        let mut parts: Vec<usize> = (0..trial.parts).collect();
        // Of a thread that does not exist, so a stranger to all that do.
        crate::crew::rng(seed, 0, trial.threads).shuffle(&mut parts);
        let shared = Arc::new(Shared {
            lock: make(trial.resource()),
            spare: make(trial.resource()),
            trial,
            seed,
            parts,
        });
        let start = Instant::now();
        let mut seen = Seen::default();
        let mut ops = vec![0; trial.threads];
        let mut add = |tallies: Vec<Times>, all: &mut Times| {
            for (ops, times) in ops.iter_mut().zip(&tallies) {
                *ops += times.count();
                all.add(times);
            }
        };
        // Threads of the second phase begin when all of the first have ended.
        add(crew(&shared, trial.threads, Shared::first), &mut seen.first);
        add(crew(&shared, trial.threads, Shared::again), &mut seen.again);
        let took = start.elapsed();
        Outcome { seen, ops, took }
    })
}

impl Shared {
    fn first(&self, number: usize) -> Times {
        self.warm_up(number);
        let mine = self.share(number).iter();
        self.time(mine.copied())
    }

    fn again(&self, number: usize) -> Times {
        let mut rng = self.warm_up(number);
        let parts = self
            .share(number)
            .iter()
            .map(|_| rng.usize(..self.trial.parts));
        self.time(parts)
    }

    fn share(&self, number: usize) -> &[usize] {
        let from = |number| number * self.parts.len() / self.trial.threads;
        &self.parts[from(number)..from(number + 1)]
    }

    /// Locks a little in the second lock: what a thread pays once is no part of the times.
    fn warm_up(&self, number: usize) -> fastrand::Rng {
        let mut rng = crate::crew::rng(self.seed, 0, number);
        for _ in 0..WARMUP.min(self.trial.parts) {
            acquire(&*self.spare, rng.usize(..self.trial.parts), |_| ());
        }
        rng
    }

    fn time(&self, parts: impl Iterator<Item = usize>) -> Times {
        let mut times = Times::default();
        for part in parts {
            acquire(&*self.lock, part, |took| times.record(took));
        }
        times
    }
}

/// Holds a part for a moment, and tells how long it took to get it.
fn acquire(lock: &dyn AnyLock, part: usize, took: impl FnOnce(Duration)) {
    let span = Span::of(positions(part)).expect("not empty");
    let begun = Instant::now();
    let held = lock.lock(Mode::Exclusive, span);
    took(begun.elapsed());
    // SAFETY: this lock's.
    unsafe { lock.unlock(held) };
}
