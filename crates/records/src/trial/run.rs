//! The parameters of a run, and its outcome: the same for all workloads.

use crate::record::Panel;
use crate::trial::counters::{Count, Event, Rate};
use crate::trial::lock::Exclusion;
use crate::trial::settings::Settings;
use crate::trial::times::Times;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One run of a workload, but for the lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial<L> {
    /// The workload and its own numbers.
    pub load: L,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// Its duration.
    pub schedule: Schedule,
    /// The hardware events to count.
    pub events: &'static [Event],
    /// Random numbers follow from this, from `repeat` and from the thread's number.
    pub seed: u64,
    /// The number of this run among equal runs, from 0.
    pub repeat: u32,
}

impl Trial<()> {
    /// A single run on one thread, without hardware events. The workload is yet to be chosen.
    #[must_use]
    pub const fn new(schedule: Schedule, seed: u64) -> Self {
        Self {
            load: (),
            threads: 1,
            schedule,
            events: &[],
            seed,
            repeat: 0,
        }
    }

    /// The same run of a workload, on so many threads.
    #[must_use]
    pub fn with<L>(self, load: L, threads: usize) -> Trial<L> {
        Trial {
            load,
            threads,
            schedule: self.schedule,
            events: self.events,
            seed: self.seed,
            repeat: self.repeat,
        }
    }
}

impl Trial<Panel> {
    /// The run as its workload has it.
    ///
    /// # Panics
    /// When the panel has not the settings of the workload: they are its arguments.
    #[must_use]
    pub fn read<S: Settings>(&self) -> Trial<S> {
        let settings = self.load.read();
        let load = settings.unwrap_or_else(|error| panic!("{}: {error}", self.load));
        Trial {
            load,
            threads: self.threads,
            schedule: self.schedule,
            events: self.events,
            seed: self.seed,
            repeat: self.repeat,
        }
    }
}

/// The duration of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Time before the measurement, in which threads already work.
    pub warmup: Duration,
    /// Time of the measurement.
    pub measured: Duration,
}

impl Schedule {
    /// For a workload that ends by itself.
    pub const NONE: Self = Self::even(Duration::ZERO);

    /// As long before the measurement as it takes.
    #[must_use]
    pub const fn even(measured: Duration) -> Self {
        Self {
            warmup: measured,
            measured,
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Run<W> {
    /// The result of each thread, in order of their numbers.
    pub workers: Vec<W>,
    /// The real length of the measured phase.
    pub elapsed: Duration,
    /// The meters' readings in it.
    pub metered: Metered,
}

impl<W> Run<W> {
    /// The sum of a part of what the threads did.
    #[must_use]
    pub fn sum(&self, part: fn(&W) -> u64) -> u64 {
        self.workers.iter().map(part).sum()
    }
}

/// The work of one thread.
#[derive(Debug, Default)]
pub struct Tally {
    /// Reads that count.
    pub reads: u64,
    /// Writes that count; or all operations, where reads are no others.
    pub writes: u64,
    /// What it added to the data, from start to end. It wraps, for some take away.
    pub added: u64,
    /// How often it saw half of a write, from start to end.
    pub torn: u64,
    /// How long its acquisitions took, where they are timed.
    pub times: Option<Times>,
}

impl Tally {
    /// The same, with the work of another.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let times: Vec<_> = self.times.iter().chain(&other.times).collect();
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            added: self.added.wrapping_add(other.added),
            torn: self.torn + other.torn,
            times: (!times.is_empty()).then(|| Times::sum(times)),
        }
    }

    /// What was found in data of which so much was lost.
    #[must_use]
    pub const fn data(&self, lost: u64) -> Found {
        let torn = self.torn;
        Found::Data { lost, torn }
    }
}

/// The meters' readings beside the threads' own results.
#[derive(Debug, Clone, Default)]
pub struct Metered {
    /// Processor time of the whole process.
    pub processor: Option<Duration>,
    /// Hardware events.
    pub counts: Vec<Count>,
}

/// The work of a run in its measured time.
#[derive(Debug, Default)]
pub struct Throughput {
    /// The operations of each thread.
    pub ops: Vec<u64>,
    /// Its length.
    pub elapsed: Duration,
    /// Processor time of the process in it; `None` where the system does not report it.
    pub processor: Option<Duration>,
    /// Hardware events in it.
    pub counts: Vec<Count>,
}

impl Throughput {
    /// The throughput of a run, given the operations of each worker.
    pub fn of<W>(run: &Run<W>, ops: fn(&W) -> u64) -> Self {
        Self {
            ops: run.workers.iter().map(ops).collect(),
            elapsed: run.elapsed,
            processor: run.metered.processor,
            counts: run.metered.counts.clone(),
        }
    }

    /// Operations of all threads.
    fn total(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// Hardware events per operation.
    #[must_use]
    pub fn rates(&self) -> Vec<Rate> {
        let counts = self.counts.iter();
        counts.map(|count| Rate::of(count, self.total())).collect()
    }

    /// Operations per second, of all threads.
    #[must_use]
    pub fn ops_per_second(&self) -> f64 {
        self.total() as f64 / self.elapsed.as_secs_f64()
    }

    /// Operations of the thread that had the fewest.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.ops.iter().copied().min().unwrap_or(0)
    }

    /// Operations of the thread that had the most.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.ops.iter().copied().max().unwrap_or(0)
    }

    /// Processor time of the process, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.processor.map(|time| time.as_secs_f64())
    }
}

/// Where the time of a read from an aliasing area goes, on average, in nanoseconds: part of a line of JSON. Each
/// includes a reading of the clock or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// To acquire and to release ranges of the area.
    pub lock: f64,
    /// To make and to hide the alias, without the lock.
    pub alias: f64,
    /// To copy what is read; page faults are in here.
    pub copy: f64,
    /// To check what was copied: not part of a read.
    pub check: f64,
}

impl Parts {
    /// The part of a read that is the lock's, from 0 to 1.
    #[must_use]
    pub fn lock_share(&self) -> f64 {
        let Self {
            lock, alias, copy, ..
        } = self;
        lock / (lock + alias + copy)
    }
}

/// The outcome of a run. A workload fills in what it measures.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was done in the measured time.
    pub work: Throughput,
    /// Reads that count, of all threads.
    pub reads: u64,
    /// Writes that count, of all threads.
    pub writes: u64,
    /// The errors found in the guarded data.
    pub found: Found,
    /// Where the time of a read from an aliasing area went, if that was measured.
    pub parts: Option<Parts>,
    /// Nanoseconds that acquisitions took, if they were timed.
    pub acquire: Option<Times>,
    /// Nanoseconds that the first acquisition of each part took.
    pub first: Option<Times>,
    /// Nanoseconds that later acquisitions of parts took.
    pub again: Option<Times>,
    /// Waits for the lock of an address space.
    pub vm: Option<crate::trial::vm::Stat>,
}

impl Outcome {
    /// The outcome of a run in which each thread counted its work. Given all of it, `found` says what was found.
    #[must_use]
    pub fn of(run: &Run<Tally>, found: &dyn Fn(&Tally) -> Found) -> Self {
        let all = run.workers.iter().fold(Tally::default(), Tally::and);
        Self {
            work: Throughput::of(run, |tally| tally.reads + tally.writes),
            found: found(&all),
            reads: all.reads,
            writes: all.writes,
            acquire: all.times,
            ..Self::default()
        }
    }

    /// Checks the lock's promise.
    ///
    /// # Errors
    /// The errors found in the guarded data, if the lock promises exclusion.
    pub fn check(&self, exclusion: Exclusion) -> Result<(), Found> {
        match exclusion {
            Exclusion::Promised if !self.found.is_nothing() => Err(self.found),
            Exclusion::Promised | Exclusion::None => Ok(()),
        }
    }
}

/// Errors in the guarded data: conflicting holders met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Found {
    /// The workload does not check.
    #[default]
    Nothing,
    /// In an array whose slots writers increment.
    Array {
        /// The sum of what writers added, from start to end.
        added: u64,
        /// The sum of what it held in the end.
        found: u64,
    },
    /// In an area of ranges: how many another thread wrote while they were held, and how many had words of two threads
    /// at the end.
    Ranges(u64),
    /// In an address space: how many calls and faults were refused that the recorded program was granted, and whether
    /// the areas at the end differ.
    Space {
        /// Refusals.
        refused: u64,
        /// Whether areas differ.
        differs: bool,
    },
    /// In an ordered set that counts what it is told.
    Keys {
        /// Keys inserted less keys removed, from start to end.
        expected: u64,
        /// Keys in the set in the end.
        found: u64,
    },
    /// In the data of a reader-writer lock.
    Data {
        /// Writes that left no trace, or traces of no write.
        lost: u64,
        /// Reads that saw half of a write.
        torn: u64,
    },
}

impl Found {
    /// Whether there are none.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        self.lost() == 0 && self.torn() == 0
    }

    /// Updates that were lost.
    #[must_use]
    pub const fn lost(self) -> u64 {
        match self {
            Self::Array { added, found } => added.abs_diff(found),
            Self::Keys { expected, found } => expected.abs_diff(found),
            Self::Data { lost, .. } => lost,
            Self::Space { refused, differs } => refused + differs as u64,
            Self::Nothing | Self::Ranges(_) => 0,
        }
    }

    /// Ranges or reads that were torn.
    #[must_use]
    pub const fn torn(self) -> u64 {
        match self {
            Self::Ranges(torn) | Self::Data { torn, .. } => torn,
            Self::Nothing | Self::Array { .. } | Self::Keys { .. } | Self::Space { .. } => 0,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = "holders met that exclude each other";
        match self {
            Self::Nothing => f.write_str("no errors"),
            Self::Array { added, found } => {
                write!(f, "the array holds {found} where {added} was added: {met}")
            }
            Self::Keys { expected, found } => {
                write!(f, "the set has {found} keys where {expected} are left")
            }
            Self::Ranges(torn) => {
                write!(
                    f,
                    "{torn} times a held range had foreign bytes in it: {met}"
                )
            }
            Self::Space { refused, differs } => {
                let areas = if *differs { "differ" } else { "are the same" };
                write!(
                    f,
                    "{refused} calls refused that were granted; the areas at the end {areas}"
                )
            }
            Self::Data { lost, torn } => write!(f, "{lost} lost updates, {torn} torn reads"),
        }
    }
}
