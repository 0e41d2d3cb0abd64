//! One run as it is reported.

use super::{LostUpdates, Outcome, Trial, Variant};
use crate::counters::Rate;
use crate::registry::Lock;
use crate::times::AcquireTimes;
use serde::{Deserialize, Serialize};

/// One run of ArrBench on one lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which ranges were locked.
    pub variant: Variant,
    /// Of a hundred operations, those that read.
    pub reads: u8,
    /// Threads.
    pub threads: usize,
    /// The lock's name.
    pub lock: String,
    /// Operations per second, of all threads.
    pub ops_per_sec: f64,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
    /// What random numbers follow from.
    pub seed: u64,
    /// How long the measured time was.
    pub seconds: f64,
    /// Operations of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    pub max_ops_per_thread: u64,
    /// Processor time of the process in the measured time; `None` where the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// What was counted in the measured time, if anything was to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Rate>,
    /// Updates that were made and are not in the array: zero if the lock excludes.
    pub lost_updates: u64,
    /// How long acquisitions took, if they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_ns: Option<AcquireTimes>,
}

impl Record {
    /// Runs a trial on a fresh lock, and checks it.
    ///
    /// # Errors
    /// When the lock lost updates although it promises exclusion.
    pub fn measure(lock: &Lock, trial: &Trial) -> Result<Self, LostUpdates> {
        let outcome = lock.measure.arr(lock.values, trial);
        outcome.check(lock.exclusion)?;
        Ok(Self::of(lock, trial, &outcome))
    }

    fn of(lock: &Lock, trial: &Trial, outcome: &Outcome) -> Self {
        Self {
            variant: trial.variant,
            reads: trial.reads.get(),
            threads: trial.threads,
            lock: lock.name.to_owned(),
            ops_per_sec: outcome.work.ops_per_second(),
            repeat: trial.repeat,
            seed: trial.seed,
            seconds: outcome.work.elapsed.as_secs_f64(),
            min_ops_per_thread: outcome.work.min(),
            max_ops_per_thread: outcome.work.max(),
            cpu_seconds: outcome.work.cpu_seconds(),
            counters: outcome.work.rates(),
            lost_updates: outcome.added.abs_diff(outcome.found),
            acquire_ns: outcome.acquire.as_ref().map(AcquireTimes::from),
        }
    }
}
