//! Microbenchmarks of the machine: contended words, and the simplest locks on them. The same source runs on simulated
//! machines: see [`sim::micro`](crate::sim::micro).

use crate::crew::Schedule;
use crate::loads;
use crate::rw::Found;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// An atomic addition to one word.
    Add,
    /// The same by a load and a compare-exchange, until one succeeds.
    CompareExchange,
    /// A lock that is tested, then tested and set.
    Ttas,
    /// A queue lock in which each thread waits on a line of its own.
    Mcs,
    /// A reader-writer lock of one count; one operation of a hundred writes.
    RwCounter,
}

impl Kernel {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Add,
        Self::CompareExchange,
        Self::Ttas,
        Self::Mcs,
        Self::RwCounter,
    ];

    /// What users call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::CompareExchange => "compare-exchange",
            Self::Ttas => "ttas",
            Self::Mcs => "mcs",
            Self::RwCounter => "rw-counter",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|kernel| kernel.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            format!("expected one of {}", names.join(", "))
        })
    }
}

/// One run, but for the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// Threads.
    pub threads: usize,
    /// How long.
    pub schedule: Schedule,
    /// What random numbers follow from.
    pub seed: u64,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
}

/// One run: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was repeated: where other workloads have a lock.
    pub lock: Kernel,
    /// Threads.
    pub threads: usize,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
    /// What random numbers follow from.
    pub seed: u64,
    /// How long it was.
    pub seconds: f64,
    /// Operations of all threads, per second.
    pub ops_per_sec: f64,
    /// Operations of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    pub max_ops_per_thread: u64,
}

impl Record {
    /// Measures a kernel.
    ///
    /// # Errors
    /// When updates were lost, or reads torn.
    ///
    /// # Panics
    /// Without threads.
    pub fn measure(kernel: Kernel, trial: &Trial) -> Result<Self, Found> {
        assert!(trial.threads > 0);
        let outcome = loads::micro::run(kernel, trial);
        if outcome.found != Found::NOTHING {
            return Err(outcome.found);
        }
        Ok(Self {
            lock: kernel,
            threads: trial.threads,
            repeat: trial.repeat,
            seed: trial.seed,
            seconds: outcome.work.elapsed.as_secs_f64(),
            ops_per_sec: outcome.work.ops_per_second(),
            min_ops_per_thread: outcome.work.min(),
            max_ops_per_thread: outcome.work.max(),
        })
    }
}
