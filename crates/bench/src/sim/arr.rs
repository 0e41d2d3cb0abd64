//! ArrBench (P1 §7.1) on a simulated machine: the ranges of [`crate::arr`], in virtual time.

use super::subject::{Lock, Subject};
use super::{Run, Setup};
use crate::arr::{LostUpdates, Percent, Ranges, SLOTS, Variant};
use crate::compare::{self, Panel};
use crate::report::{self, Line};
use crate::{crew, sim};
use prim_sim::clock::{Duration, Instant};
use prim_sim::{Ended, Failure, cost, thread};
use serde::{Deserialize, Serialize};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::{Mode, Wait};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One run, but for the machine and the lock.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// Which ranges are locked.
    pub variant: Variant,
    /// How many operations read.
    pub reads: Percent,
    /// From 1 to [`SLOTS`].
    pub threads: usize,
    /// Virtual time of the measurement, after as much again for warming up.
    pub measured: Duration,
}

/// What a run yielded.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Operations of each thread in the measured time.
    ops: Vec<u64>,
    /// What writers added to the array.
    added: u64,
    /// What it held in the end.
    found: u64,
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
    /// Which ranges were locked.
    pub variant: Variant,
    /// Of a hundred operations, those that read.
    pub reads: u8,
    /// Throughput, and where it comes from.
    #[serde(flatten)]
    pub run: Run,
}

/// Cycles of a no-op of the pause, of reading a slot, and of incrementing one. Fitted to P1's statement that all locks
/// scale to four or eight threads: see `docs/simulator.md`.
const NO_OP: u64 = 6;
const READ: u64 = 8;
const WRITE: u64 = 12;
const PAUSE: u64 = 2048;

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Trial {
            variant,
            reads,
            threads,
            measured,
        } = self.trial;
        let (lock, reads, seconds) = (self.lock.name, reads.get(), measured.as_secs_f64());
        format!("arr, {variant} range, {reads} % reads, {threads} threads, {lock}, {seconds} s")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let Self { lock, trial } = self;
        let ended = (lock.arr)(setup, *trial).map_err(|failure| failure.to_string())?;
        let Outcome { ops, added, found } = ended.value;
        if added != found {
            return Err(LostUpdates { added, found }.to_string());
        }
        Ok(Record {
            variant: trial.variant,
            reads: trial.reads.get(),
            run: Run::new(lock.name, setup, trial.measured, &ops, ended.operations),
        })
    }
}

impl sim::Record for Record {
    fn panel(&self) -> String {
        compare::Point::from(self).panel.to_string()
    }

    fn run(&self) -> &Run {
        &self.run
    }

    fn conclusions(all: &[Self], cores: usize) -> (String, Vec<Line>) {
        report::conclusions(&compare::Field::of(all), cores)
    }
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self::SimArr(record)
    }
}

impl From<&Record> for compare::Point {
    fn from(record: &Record) -> Self {
        Self {
            panel: Panel::Arr {
                variant: record.variant,
                reads: record.reads,
            },
            lock: record.run.lock.clone(),
            threads: record.run.threads,
            ops_per_sec: Ok(record.run.ops_per_sec),
            counters: Vec::new(),
        }
    }
}

#[derive(Default)]
#[repr(align(64))]
struct Slot(AtomicU64);

struct Shared<S> {
    lock: S,
    array: Box<[Slot]>,
}

pub(super) fn run<S: Subject>(
    make: impl Fn() -> S + Send + 'static,
    setup: &Setup,
    trial: Trial,
) -> Result<Ended<Outcome>, Box<Failure>> {
    let seed = setup.seed;
    prim_sim::run(setup, move || {
        let shared = Arc::new(Shared {
            lock: make(),
            array: (0..SLOTS).map(|_| Slot::default()).collect(),
        });
        let start = Instant::now();
        let crew: Vec<_> = (0..trial.threads)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.work(trial, start, seed, number))
            })
            .collect();
        let tallies = crew.into_iter().filter_map(|worker| worker.join().ok());
        let (ops, added): (Vec<_>, Vec<_>) = tallies.unzip();
        Outcome {
            ops,
            added: added.iter().sum(),
            found: shared.array.iter().map(|slot| slot.0.load(Relaxed)).sum(),
        }
    })
}

impl<S: Subject> Shared<S> {
    /// The operations that began in the measured time, and what was added from start to end.
    fn work(&self, trial: Trial, start: Instant, seed: u64, number: usize) -> (u64, u64) {
        let ranges = Ranges::of(trial.variant, number, trial.threads);
        let mut rng = crew::rng(seed, 0, number);
        let (mut ops, mut added) = (0, 0);
        loop {
            let elapsed = start.elapsed();
            if elapsed >= trial.measured * 2 {
                return (ops, added);
            }
            let (range, passes) = ranges.next(&mut rng);
            let mode = if rng.u8(..100) < trial.reads.get() {
                Mode::Shared
            } else {
                added += (range.len() * passes) as u64;
                Mode::Exclusive
            };
            self.operate(mode, &range, passes);
            ops += u64::from(elapsed >= trial.measured);
            cost::work(rng.u64(..=PAUSE) * NO_OP);
        }
    }

    fn operate(&self, mode: Mode, range: &Range<usize>, passes: usize) {
        let span = Span::of(range.start as u64..range.end as u64).expect("not empty");
        let token = self
            .lock
            .lock(mode, span, Wait::Forever)
            .expect("waits forever");
        for _ in 0..passes {
            for slot in &self.array[range.clone()] {
                match mode {
                    Mode::Shared => {
                        cost::read(slot);
                        cost::work(READ);
                    }
                    Mode::Exclusive => {
                        let number = slot.0.load(Relaxed);
                        cost::write(slot);
                        cost::work(WRITE);
                        slot.0.store(number + 1, Relaxed);
                    }
                }
            }
        }
        // SAFETY: this lock's token.
        unsafe { self.lock.unlock(token) };
    }
}
