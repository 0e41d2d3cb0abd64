//! What one run of a workload on one lock yielded: one shape for all workloads, on hardware and on simulated machines.

use super::lock::Lock;
use super::{Panel, Phase};
use crate::stats::ends;
use crate::trial::counters::Rate;
use crate::trial::run::{Parts, Throughput};
use crate::trial::times::AcquireTimes;
use crate::trial::vm::Stat;
use machines::Placement;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// One run: a line of JSON. A workload fills in what it measures. Every other field keeps its default, and a line does
/// not mention it. What is no field here is a setting of the workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Record {
    /// The workload and its settings.
    #[serde(skip)]
    pub panel: Panel,
    /// The lock; of a microbenchmark, the kernel.
    #[serde(flatten)]
    pub lock: Lock,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The number of this run among equal runs, from 0.
    pub repeat: u32,
    /// The length of the measured time.
    pub seconds: f64,
    /// Operations per second, of all threads; `None` if nothing was run.
    pub ops_per_sec: Option<f64>,
    /// Reads per second, of all threads.
    pub reads_per_sec: f64,
    /// Writes per second, of all threads.
    pub writes_per_sec: f64,
    /// Operations of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    pub max_ops_per_thread: u64,
    /// Processor time of the process in the measured time; `None` where the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Processor time under contention, as a fraction of the time of all cores. Only one thread at a time does useful
    /// work, so more than the share of one core is the cost of waiting.
    pub cpu_share: Option<f64>,
    /// Processor time, in milliseconds, of a thread that waited while another thread held for [`HOLD`](super::HOLD).
    pub sleeper_cpu_ms: Option<f64>,
    /// Hardware events per operation, if they were counted.
    pub counters: Vec<Rate>,
    /// Updates that were made and left no trace: zero if the lock excludes.
    pub lost_updates: u64,
    /// Ranges that another thread wrote while they were held: zero if the lock excludes.
    pub torn_ranges: u64,
    /// Reads that saw half of a write: zero if the lock excludes.
    pub torn_reads: u64,
    /// Where the time of a read from an aliasing area went.
    pub read_ns: Option<Parts>,
    /// How long acquisitions took, if they were timed.
    pub acquire_ns: Option<AcquireTimes>,
    /// First acquisitions of a part of the resource.
    pub first_count: u64,
    /// How long the first acquisitions took.
    pub first_ns: Option<AcquireTimes>,
    /// Later acquisitions of a part.
    pub again_count: u64,
    /// How long the later acquisitions took.
    pub again_ns: Option<AcquireTimes>,
    /// Waits for the lock of an address space, and speculations.
    pub space: Option<Stat>,
    /// Nanoseconds for a handoff between processors, just before the run and just after it; `None` if unknown.
    pub handoff_ns: Option<[f64; 2]>,
    /// Why nothing was run.
    pub skipped: Option<String>,
    /// The simulated machine; `None` for a run on hardware.
    pub simulated: Option<Simulated>,
}

/// The simulated part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulated {
    /// The machine's name.
    pub machine: String,
    /// Where threads ran.
    pub placement: Placement,
    /// Operations of the simulated machine.
    pub operations: u64,
}

impl Record {
    /// A run of which nothing was measured yet.
    #[must_use]
    pub fn new(panel: Panel, lock: Lock, threads: usize, seed: u64) -> Self {
        Self {
            panel,
            lock,
            threads,
            seed,
            ..Self::default()
        }
    }

    /// The same run, with what its threads did in the measured time.
    #[must_use]
    pub fn with_work(self, work: &Throughput) -> Self {
        Self {
            seconds: work.elapsed.as_secs_f64(),
            ops_per_sec: Some(work.ops_per_second()),
            min_ops_per_thread: work.min(),
            max_ops_per_thread: work.max(),
            cpu_seconds: work.cpu_seconds(),
            counters: work.rates(),
            ..self
        }
    }

    /// The name of the simulated machine, if it was one.
    #[must_use]
    pub fn machine(&self) -> Option<&str> {
        let simulated = self.simulated.as_ref();
        simulated.map(|simulated| simulated.machine.as_str())
    }

    /// How long acquisitions of parts of a resource took, phase by phase.
    pub fn phases(&self) -> impl Iterator<Item = (Phase, AcquireTimes)> {
        let phases = [(Phase::First, self.first_ns), (Phase::Again, self.again_ns)];
        phases
            .into_iter()
            .filter_map(|(phase, times)| Some((phase, times?)))
    }

    /// Whether a handoff took about as long during both runs, as far as is known.
    #[must_use]
    pub fn is_comparable(&self, other: &Self) -> bool {
        let handoffs = [self.handoff_ns, other.handoff_ns];
        let ends = ends(handoffs.iter().flatten().flatten().copied());
        ends.is_none_or(|(shortest, longest)| longest <= 2.0 * shortest)
    }
}

/// The names of the fields of a line, but for the workload's settings.
static FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let record = Record::default();
    let fields = Record::serialize(&record, serde_json::value::Serializer).expect("plain data");
    let names = fields.as_object().into_iter().flat_map(Map::keys).cloned();
    names.chain(["policy".to_owned()]).collect()
});

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |record| {
            Self::serialize(record, serde_json::value::Serializer).map_err(S::Error::custom)
        };
        let (mut line, none) = (value(self)?, value(&Self::default())?);
        let fields = line
            .as_object_mut()
            .ok_or_else(|| S::Error::custom("no fields"))?;
        let is_needed = |name: &str| ["lock", "threads", "seed"].contains(&name);
        fields.retain(|name, value| is_needed(name) || none[name] != *value);
        let panel = serde_json::to_value(self.panel).map_err(S::Error::custom)?;
        fields.extend(panel.as_object().cloned().unwrap_or_default());
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        let mut line = Map::deserialize(line)?;
        let is_known = |name: &str| FIELDS.iter().any(|field| field == name);
        let panel = Panel::taken(&mut line, &is_known).map_err(D::Error::custom)?;
        let missing = ["lock", "threads", "seed"]
            .into_iter()
            .find(|name| !line.contains_key(*name));
        if let Some(missing) = missing {
            return Err(D::Error::missing_field(missing));
        }
        let record = Self::deserialize(Value::Object(line)).map_err(D::Error::custom)?;
        Ok(Self { panel, ..record })
    }
}
