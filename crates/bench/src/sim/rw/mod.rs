//! Reader-writer locks on simulated machines: the very workloads of [`crate::rw`], in virtual time.

mod subject;

pub use subject::{FUZZED, LOCKS, Lock};

use super::{Run, Setup, loads};
use crate::compare::{self, Panel};
use crate::crew::Schedule;
use crate::report::Line;
use crate::rw::target::RwTarget;
use crate::rw::{Found, Load, Trial};
use crate::sim;
use prim_sim::clock::Duration;
use serde::{Deserialize, Serialize};
pub(super) use subject::{Held, Make, Readers, Subject};

/// A lock under a workload.
#[derive(Clone, Copy)]
pub struct Point {
    /// The lock.
    pub lock: &'static Lock,
    /// The workload and its numbers.
    pub load: Load,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// Virtual time of the measurement, after as much again for warming up.
    pub measured: Duration,
}

/// What a point yields: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The workload and its numbers.
    #[serde(flatten)]
    pub load: Load,
    /// Reads per virtual second.
    pub reads_per_sec: f64,
    /// Writes per virtual second.
    pub writes_per_sec: f64,
    /// Throughput, and where it comes from.
    #[serde(flatten)]
    pub run: Run,
}

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Self {
            lock,
            load,
            threads,
            measured,
        } = self;
        let (lock, seconds) = (lock.name, measured.as_secs_f64());
        let threads = compare::plural(*threads);
        format!("rw {load}, {threads}, {lock}, {seconds} s")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let trial = Trial {
            load: self.load,
            threads: self.threads,
            schedule: Schedule {
                warmup: self.measured,
                measured: self.measured,
            },
            seed: setup.seed,
            repeat: 0,
        };
        let make = self.lock.make;
        let how = Make::on(&setup.machine);
        let ended = prim_sim::run(setup, move || loads::run(|| Erased(make(how)), &trial))
            .map_err(|failure| failure.to_string())?;
        let outcome = ended.value;
        if outcome.found != Found::NOTHING {
            return Err(outcome.found.to_string());
        }
        let seconds = self.measured.as_secs_f64();
        let ops = &outcome.work.ops;
        let run = Run::new(self.lock.name, setup, self.measured, ops, ended.operations);
        Ok(Record {
            load: self.load,
            reads_per_sec: outcome.reads as f64 / seconds,
            writes_per_sec: outcome.writes as f64 / seconds,
            run: Run {
                threads: self.threads,
                ..run
            },
        })
    }
}

impl sim::Record for Record {
    fn panel(&self) -> String {
        self.load.to_string()
    }

    fn run(&self) -> &Run {
        &self.run
    }
}

impl From<&Record> for compare::Point {
    fn from(record: &Record) -> Self {
        record.run.compared(Panel::Rw(record.load))
    }
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self::SimRw(record)
    }
}

/// A lock as workloads use it. That its calls go through pointers costs no virtual time.
struct Erased(Box<dyn Subject>);

impl RwTarget for Erased {
    type Read<'a> = Box<dyn Held + 'a>;
    type Write<'a> = Box<dyn Held + 'a>;

    fn read(&self) -> Box<dyn Held + '_> {
        self.0.read()
    }

    fn write(&self) -> Box<dyn Held + '_> {
        self.0.write()
    }
}
