//! Microbenchmarks on simulated machines: those of [`crate::micro`].

use super::{Run, Setup, loads};
use crate::compare::{self, Panel};
use crate::crew::Schedule;
use crate::micro::{Kernel, Trial};
use crate::report::Line;
use crate::rw::Found;
use crate::sim;
use prim_sim::clock::Duration;
use serde::{Deserialize, Serialize};

/// A kernel and threads.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// What is repeated.
    pub kernel: Kernel,
    /// Threads.
    pub threads: usize,
    /// Virtual time of the measurement, after as much again for warming up.
    pub measured: Duration,
}

/// What a point yields: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Throughput, and where it comes from: the kernel's name stands for the lock's.
    #[serde(flatten)]
    pub run: Run,
}

impl sim::Point for Point {
    type Record = Record;

    fn name(&self) -> String {
        let Self {
            kernel,
            threads,
            measured,
        } = self;
        let seconds = measured.as_secs_f64();
        let threads = compare::plural(*threads);
        format!("micro {kernel}, {threads}, {seconds} s")
    }

    fn measure(&self, setup: &Setup) -> Result<Record, String> {
        let trial = Trial {
            threads: self.threads,
            schedule: Schedule {
                warmup: self.measured,
                measured: self.measured,
            },
            seed: setup.seed,
            repeat: 0,
        };
        let kernel = self.kernel;
        let ended = prim_sim::run(setup, move || loads::micro::run(kernel, &trial));
        let ended = ended.map_err(|failure| failure.to_string())?;
        let outcome = ended.value;
        if outcome.found != Found::NOTHING {
            return Err(outcome.found.to_string());
        }
        let ops = &outcome.work.ops;
        Ok(Record {
            run: Run::new(kernel.name(), setup, self.measured, ops, ended.operations),
        })
    }
}

impl sim::Record for Record {
    fn panel(&self) -> String {
        "microbenchmarks".to_owned()
    }

    fn run(&self) -> &Run {
        &self.run
    }
}

impl From<&Record> for compare::Point {
    fn from(record: &Record) -> Self {
        record.run.compared(Panel::Micro)
    }
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self::SimMicro(record)
    }
}
