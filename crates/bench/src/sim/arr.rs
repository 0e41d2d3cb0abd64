//! ArrBench (P1 §7.1) on a simulated machine: the ranges of [`crate::arr`], in virtual time.

use super::point::{crew, limited};
use super::subject::{AnyLock, Held, Lock};
use super::{Run, Setup};
use crate::arr::{LostUpdates, Percent, Ranges, SLOTS, Timing, Variant};
use crate::compare::{self, Panel};
use crate::report::{self, Line, Width};
use crate::setting::Resource;
use crate::sim;
use crate::times::{AcquireTimes, Times};
use prim_sim::clock::{Duration, Instant};
use prim_sim::{Ended, Failure, Latencies, cost};
use serde::{Deserialize, Serialize};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::Mode;
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
    /// Whether acquisitions are timed.
    pub timing: Timing,
    /// Virtual time of the measurement, after as much again for warming up.
    pub measured: Duration,
}

/// What a run yielded.
#[derive(Debug)]
pub struct Outcome {
    /// Operations of each thread in the measured time.
    ops: Vec<u64>,
    /// How long their acquisitions took, if they were timed.
    acquire: Times,
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
    /// How long acquisitions took in virtual time, if they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_ns: Option<AcquireTimes>,
    /// Throughput, and where it comes from.
    #[serde(flatten)]
    pub run: Run,
}

/// No-ops of the pause, at most.
const PAUSE: u64 = 2048;

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Trial {
            variant,
            reads,
            threads,
            timing,
            measured,
        } = self.trial;
        let (lock, reads, seconds) = (self.lock.name, reads.get(), measured.as_secs_f64());
        let timed = match timing {
            Timing::On => ", timed",
            Timing::Off => "",
        };
        let threads = compare::plural(threads);
        format!("arr, {variant} range, {reads} % reads, {threads}, {lock}, {seconds} s{timed}")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let Self { lock, trial } = self;
        let setup = &limited(setup, trial.measured);
        let ended = run(lock.make, setup, *trial).map_err(|failure| failure.to_string())?;
        let Outcome {
            ops,
            acquire,
            added,
            found,
        } = ended.value;
        if added != found {
            return Err(LostUpdates { added, found }.to_string());
        }
        Ok(Record {
            variant: trial.variant,
            reads: trial.reads.get(),
            acquire_ns: (trial.timing == Timing::On).then(|| AcquireTimes::from(&acquire)),
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

    fn table(all: &[Self], width: Width) -> String {
        report::sim_panels(all, width) + &report::sim_times(all, width, |record| record.acquire_ns)
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
        let panel = Panel::Arr {
            variant: record.variant,
            reads: record.reads,
        };
        record.run.compared(panel)
    }
}

#[derive(Default)]
#[repr(align(64))]
struct Slot(AtomicU64);

struct Shared {
    lock: Box<dyn AnyLock>,
    array: Box<[Slot]>,
    trial: Trial,
    seed: u64,
    start: Instant,
    cycles: Latencies,
}

fn run(
    make: fn(Resource) -> Box<dyn AnyLock>,
    setup: &Setup,
    trial: Trial,
) -> Result<Ended<Outcome>, Box<Failure>> {
    let (seed, cycles) = (setup.seed, setup.machine.cycles.clone());
    prim_sim::run(setup, move || {
        let shared = Arc::new(Shared {
            lock: make(Resource::ARRAY),
            array: (0..SLOTS).map(|_| Slot::default()).collect(),
            trial,
            seed,
            start: Instant::now(),
            cycles,
        });
        let mut outcome = Outcome {
            ops: Vec::new(),
            acquire: Times::default(),
            added: 0,
            found: 0,
        };
        for tally in crew(&shared, trial.threads, Shared::work) {
            outcome.ops.push(tally.ops);
            outcome.acquire.add(&tally.acquire);
            outcome.added += tally.added;
        }
        outcome.found = shared.array.iter().map(|slot| slot.0.load(Relaxed)).sum();
        outcome
    })
}

/// What one thread did.
#[derive(Default)]
struct Tally {
    /// Operations in the measured time.
    ops: u64,
    /// How long their acquisitions took.
    acquire: Times,
    /// What was added from start to end.
    added: u64,
}

impl Shared {
    fn work(&self, number: usize) -> Tally {
        let Trial {
            variant,
            reads,
            threads,
            timing,
            measured,
        } = self.trial;
        let ranges = Ranges::of(variant, number, threads);
        let mut rng = crate::crew::rng(self.seed, 0, number);
        let mut tally = Tally::default();
        loop {
            let elapsed = self.start.elapsed();
            if elapsed >= measured * 2 {
                return tally;
            }
            let (range, passes) = ranges.next(&mut rng);
            let mode = if rng.u8(..100) < reads.get() {
                Mode::Shared
            } else {
                tally.added += (range.len() * passes) as u64;
                Mode::Exclusive
            };
            let begun = (timing == Timing::On).then(Instant::now);
            let held = self.acquire(mode, &range);
            let took = begun.map(|begun| begun.elapsed());
            self.traverse(mode, &range, passes);
            // SAFETY: this lock's.
            unsafe { self.lock.unlock(held) };
            if elapsed >= measured {
                tally.ops += 1;
                took.into_iter().for_each(|took| tally.acquire.record(took));
            }
            cost::work(rng.u64(..=PAUSE) * self.cycles.no_op);
        }
    }

    fn acquire(&self, mode: Mode, range: &Range<usize>) -> Held {
        let span = Span::of(range.start as u64..range.end as u64).expect("not empty");
        self.lock.lock(mode, span)
    }

    fn traverse(&self, mode: Mode, range: &Range<usize>, passes: usize) {
        for _ in 0..passes {
            for slot in &self.array[range.clone()] {
                match mode {
                    Mode::Shared => {
                        cost::read(slot);
                        cost::work(self.cycles.slot_read);
                    }
                    Mode::Exclusive => {
                        let number = slot.0.load(Relaxed);
                        cost::write(slot);
                        cost::work(self.cycles.slot_write);
                        slot.0.store(number + 1, Relaxed);
                    }
                }
            }
        }
    }
}
