//! What is reported of a run.

use super::Found;
use super::locks::Lock;
use super::{Load, Trial};
use serde::{Deserialize, Serialize};

/// One run: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The workload and its numbers.
    #[serde(flatten)]
    pub load: Load,
    /// The lock's name.
    pub lock: String,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// Which of several equal runs, from 0.
    pub repeat: u32,
    /// What random numbers follow from.
    pub seed: u64,
    /// How long it was.
    pub seconds: f64,
    /// Reads and writes of all threads, per second.
    pub ops_per_sec: f64,
    /// Reads per second.
    pub reads_per_sec: f64,
    /// Writes per second.
    pub writes_per_sec: f64,
    /// Operations of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    pub max_ops_per_thread: u64,
    /// Processor time of the process, in seconds; `None` where the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// Nanoseconds for a handoff between processors, just before and just after; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_ns: Option<[f64; 2]>,
    /// Writes that left no trace. Not 0 only for a lock that promises nothing.
    pub lost_updates: u64,
    /// Reads that saw half of a write. Likewise.
    pub torn_reads: u64,
}

impl Record {
    /// Whether a handoff took about as long while both ran, as far as is known.
    pub(crate) fn is_comparable(&self, other: &Self) -> bool {
        let handoffs = [self.handoff_ns, other.handoff_ns];
        let handoffs = || handoffs.iter().flatten().flatten().copied();
        let longest = handoffs().max_by(f64::total_cmp);
        let shortest = handoffs().min_by(f64::total_cmp);
        let ends = shortest.zip(longest);
        ends.is_none_or(|(shortest, longest)| longest <= 2.0 * shortest)
    }

    /// Measures a lock.
    ///
    /// # Errors
    /// When the lock did not exclude although it promises to.
    pub fn measure(lock: &Lock, trial: &Trial) -> Result<Self, Found> {
        let outcome = lock.measure.run(trial);
        outcome.check(lock.exclusion)?;
        let seconds = outcome.work.elapsed.as_secs_f64();
        Ok(Self {
            load: trial.load,
            lock: lock.name.to_owned(),
            threads: trial.threads,
            repeat: trial.repeat,
            seed: trial.seed,
            seconds,
            ops_per_sec: outcome.work.ops_per_second(),
            reads_per_sec: outcome.reads as f64 / seconds,
            writes_per_sec: outcome.writes as f64 / seconds,
            min_ops_per_thread: outcome.work.min(),
            max_ops_per_thread: outcome.work.max(),
            cpu_seconds: outcome.work.cpu_seconds(),
            handoff_ns: None,
            lost_updates: outcome.found.lost,
            torn_reads: outcome.found.torn,
        })
    }
}
