//! W1 and W2 (P4 §4.3) on a simulated machine: the ranges of [`crate::batch`], in virtual time.

use super::point::{crew, limited};
use super::subject::{AnyLock, Lock};
use super::{Run, Setup};
use crate::batch::{Area, RANGE_BYTES, Torn, draw};
use crate::compare::{self, Panel};
use crate::report::{self, Line};
use crate::setting::Resource;
use crate::sim;
use prim_sim::clock::{Duration, Instant};
use prim_sim::{Ended, Failure, cost};
use serde::{Deserialize, Serialize};
use spanlock_sim::range::Span;
use spanlock_sim::range::raw::Mode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One run, but for the machine and the lock.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// Ranges held together: up to `ranges`.
    pub hold: usize,
    /// Ranges in the area: up to [`MAX_RANGES`](crate::batch::MAX_RANGES).
    pub ranges: usize,
    /// Threads.
    pub threads: usize,
    /// Virtual time of the measurement, after as much again for warming up.
    pub measured: Duration,
}

impl Trial {
    fn resource(&self) -> Resource {
        Resource {
            units: (self.ranges * RANGE_BYTES) as u64,
            grain: RANGE_BYTES as u64,
        }
    }
}

/// What a run yielded.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Ranges of each thread in the measured time.
    ops: Vec<u64>,
    /// Ranges that somebody else wrote while they were held.
    torn: u64,
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
    /// Ranges held together: 1 is W1, 16 is W2.
    pub hold: usize,
    /// Ranges in the area.
    pub ranges: usize,
    /// Throughput, and where it comes from.
    #[serde(flatten)]
    pub run: Run,
}

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Trial {
            hold,
            ranges,
            threads,
            measured,
        } = self.trial;
        let (lock, seconds) = (self.lock.name, measured.as_secs_f64());
        let threads = compare::plural(threads);
        format!("batch, {hold} of {ranges} ranges, {threads}, {lock}, {seconds} s")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let Self { lock, trial } = self;
        let setup = &limited(setup, trial.measured);
        let ended = run(lock.make, setup, *trial).map_err(|failure| failure.to_string())?;
        let Outcome { ops, torn } = ended.value;
        if torn > 0 {
            return Err(Torn(torn).to_string());
        }
        Ok(Record {
            hold: trial.hold,
            ranges: trial.ranges,
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
        Self::SimBatch(record)
    }
}

impl From<&Record> for compare::Point {
    fn from(record: &Record) -> Self {
        let panel = Panel::Batch {
            hold: record.hold,
            ranges: record.ranges,
        };
        record.run.compared(panel)
    }
}

/// Cycles of writing a line of a range, of looking at one, and of drawing a range. Assumptions: a word a cycle, two words
/// a cycle, and a few instructions.
const WRITE: u64 = 8;
const READ: u64 = 4;
const DRAW: u64 = 20;

/// A line of a range's memory.
#[derive(Default)]
#[repr(align(64))]
struct Line64(#[expect(dead_code, reason = "what counts is where it is")] u8);

/// A range's memory.
#[derive(Default)]
struct Block {
    lines: [Line64; RANGE_BYTES / size_of::<Line64>()],
    /// Who is inside, numbered from 1. Of the host: seen by all at once.
    inside: AtomicUsize,
}

struct Shared {
    lock: Box<dyn AnyLock>,
    area: Box<[Block]>,
    trial: Trial,
    seed: u64,
    start: Instant,
}

fn run(
    make: fn(Resource) -> Box<dyn AnyLock>,
    setup: &Setup,
    trial: Trial,
) -> Result<Ended<Outcome>, Box<Failure>> {
    let seed = setup.seed;
    prim_sim::run(setup, move || {
        let shared = Arc::new(Shared {
            lock: make(trial.resource()),
            area: (0..trial.ranges).map(|_| Block::default()).collect(),
            trial,
            seed,
            start: Instant::now(),
        });
        let (ops, torn): (Vec<_>, Vec<_>) = crew(&shared, trial.threads, Shared::work)
            .into_iter()
            .unzip();
        Outcome {
            ops,
            torn: torn.iter().sum(),
        }
    })
}

impl Shared {
    /// Ranges in the measured time, and those found torn from start to end.
    fn work(&self, number: usize) -> (u64, u64) {
        let Trial {
            hold,
            ranges,
            measured,
            ..
        } = self.trial;
        let mut rng = crate::crew::rng(self.seed, 0, number);
        let mut batch = Vec::with_capacity(hold);
        let mut held = Vec::with_capacity(hold);
        let (mut ops, mut torn) = (0, 0);
        loop {
            let elapsed = self.start.elapsed();
            if elapsed >= measured * 2 {
                return (ops, torn);
            }
            draw(&mut rng, hold, ranges, &mut batch);
            cost::work(DRAW * hold as u64);
            for &range in &batch {
                let span = Span::of(Area::positions(range)).expect("not empty");
                held.push(self.lock.lock(Mode::Exclusive, span));
            }
            torn += self.write(&batch, number + 1);
            for held in held.drain(..) {
                // SAFETY: this lock's.
                unsafe { self.lock.unlock(held) };
            }
            if elapsed >= measured {
                ops += hold as u64;
            }
        }
    }

    /// Writes ranges and looks at them once more; how many have somebody else inside.
    fn write(&self, batch: &[usize], me: usize) -> u64 {
        let blocks = || batch.iter().map(|&range| &self.area[range]);
        let entered = blocks().filter(|block| block.inside.swap(me, Relaxed) == 0);
        let alone = entered.count();
        let lines = || blocks().flat_map(|block| &block.lines);
        for line in lines() {
            cost::write(line);
            cost::work(WRITE);
        }
        for line in lines() {
            cost::read(line);
            cost::work(READ);
        }
        let left = blocks().filter(|block| block.inside.swap(0, Relaxed) == me);
        (2 * batch.len() - alone - left.count()) as u64
    }
}
