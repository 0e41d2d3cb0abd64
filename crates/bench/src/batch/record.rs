//! One run as it is reported.

use super::{Torn, Trial};
use crate::counters::Rate;
use crate::registry::Lock;
use serde::{Deserialize, Serialize};

/// One run of W1 or W2 on one lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Ranges held together: 1 is W1, 16 is W2.
    pub hold: usize,
    /// Ranges in the area.
    pub ranges: usize,
    /// Threads.
    pub threads: usize,
    /// The lock's name.
    pub lock: String,
    /// Ranges locked, written and released per second, by all threads; `None` if the lock cannot do this.
    pub ops_per_sec: Option<f64>,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
    /// What random numbers follow from.
    pub seed: u64,
    /// How long the measured time was.
    pub seconds: f64,
    /// Ranges of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Ranges of the thread that had the most.
    pub max_ops_per_thread: u64,
    /// Processor time of the process in the measured time; `None` where the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// What was counted in the measured time, if anything was to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Rate>,
    /// Ranges that somebody else wrote while they were held: zero if the lock excludes.
    pub torn_ranges: u64,
    /// Why nothing was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl Record {
    /// Runs a trial on a fresh lock, and checks it. What a lock cannot do is not run, and the record says why.
    ///
    /// # Errors
    /// When a range was torn although the lock promises exclusion.
    pub fn measure(lock: &Lock, trial: &Trial) -> Result<Self, Torn> {
        let mut record = Self {
            hold: trial.hold,
            ranges: trial.ranges,
            threads: trial.threads,
            lock: lock.name.to_owned(),
            ops_per_sec: None,
            repeat: trial.repeat,
            seed: trial.seed,
            seconds: 0.0,
            min_ops_per_thread: 0,
            max_ops_per_thread: 0,
            cpu_seconds: None,
            counters: Vec::new(),
            torn_ranges: 0,
            skipped: None,
        };
        if trial.hold > 1
            && let Some(why) = lock.holds_one_because(trial.resource())
        {
            record.skipped = Some(why.to_owned());
            return Ok(record);
        }
        let outcome = lock.measure.batch(lock.values, trial);
        outcome.check(lock.exclusion)?;
        record.ops_per_sec = Some(outcome.work.ops_per_second());
        record.seconds = outcome.work.elapsed.as_secs_f64();
        record.min_ops_per_thread = outcome.work.min();
        record.max_ops_per_thread = outcome.work.max();
        record.cpu_seconds = outcome.work.cpu_seconds();
        record.counters = outcome.work.rates();
        record.torn_ranges = outcome.torn;
        Ok(record)
    }
}
