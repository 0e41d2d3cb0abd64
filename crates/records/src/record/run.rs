//! What one run of a workload on one lock yielded: one shape for all workloads, on hardware and on simulated machines.

use super::lock::Lock;
use super::{Panel, Phase};
use crate::stats::ends;
use crate::trial::blob::Parts;
use crate::trial::counters::Rate;
use crate::trial::run::Throughput;
use crate::trial::times::AcquireTimes;
use crate::trial::vm::Stat;
use prim_sim::Placement;
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// What `workload` of a simulated run begins with.
const SIMULATED: &str = "sim-";

/// One run: a line of JSON. A workload fills in what it measures. Every other field keeps its default, and the line of
/// that workload does not mention it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Record {
    /// The workload and its parameters.
    #[serde(flatten)]
    pub panel: Panel,
    /// The lock; of a microbenchmark, the kernel.
    #[serde(flatten)]
    pub lock: Lock,
    /// Threads; where roles are fixed, those that read.
    pub threads: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The number of this run among equal runs, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// Rounds, each on a fresh lock.
    #[serde(default)]
    pub rounds: u32,
    /// The length of the measured time.
    #[serde(default)]
    pub seconds: f64,
    /// Operations per second, of all threads; `None` if nothing was run.
    pub ops_per_sec: Option<f64>,
    /// Reads per second, of all threads.
    #[serde(default)]
    pub reads_per_sec: f64,
    /// Writes per second, of all threads.
    #[serde(default)]
    pub writes_per_sec: f64,
    /// Operations of the thread that had the fewest.
    #[serde(default)]
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    #[serde(default)]
    pub max_ops_per_thread: u64,
    /// Processor time of the process in the measured time; `None` where the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Processor time under contention, as a fraction of the time of all cores. Only one thread at a time does useful
    /// work, so more than the share of one core is the cost of waiting.
    pub cpu_share: Option<f64>,
    /// Processor time, in milliseconds, of a thread that waited while another thread held for [`HOLD`](super::HOLD).
    pub sleeper_cpu_ms: Option<f64>,
    /// Hardware events per operation, if they were counted.
    #[serde(default)]
    pub counters: Vec<Rate>,
    /// Updates that were made and left no trace: zero if the lock excludes.
    #[serde(default)]
    pub lost_updates: u64,
    /// Ranges that another thread wrote while they were held: zero if the lock excludes.
    #[serde(default)]
    pub torn_ranges: u64,
    /// Reads that saw half of a write: zero if the lock excludes.
    #[serde(default)]
    pub torn_reads: u64,
    /// Where the time of a read from an aliasing area went.
    pub read_ns: Option<Parts>,
    /// How long acquisitions took, if they were timed.
    pub acquire_ns: Option<AcquireTimes>,
    /// First acquisitions of a part of the resource.
    #[serde(default)]
    pub first_count: u64,
    /// How long the first acquisitions took.
    pub first_ns: Option<AcquireTimes>,
    /// Later acquisitions of a part.
    #[serde(default)]
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
    #[serde(flatten)]
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
    #[serde(rename = "simulated")]
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

    /// Whether lines of this workload are of runs.
    pub(super) fn is_of(workload: &str) -> bool {
        let name = workload.strip_prefix(SIMULATED).unwrap_or(workload);
        FIELDS.iter().any(|(of, ..)| *of == name)
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

/// The fields of the lines of each workload, in order: of a measured run, and of a simulated one, where [`MACHINE`]
/// follows. A field with a `?` is left out if there is nothing in it; lines of an older program lack it, and those with
/// `=null`. Words in capitals are [`GROUPS`].
const FIELDS: [(&str, &str, &str); 12] = [
    (
        "arr",
        "variant reads threads LOCK RUN lost_updates acquire_ns?",
        "variant reads acquire_ns?",
    ),
    (
        "batch",
        "hold ranges threads LOCK RUN torn_ranges skipped?",
        "hold ranges",
    ),
    (
        "blob",
        "BLOB threads LOCK RUN torn_reads read_ns skipped?",
        "BLOB",
    ),
    (
        "keys",
        "KEYS threads LOCK RUN lost_updates torn_reads skipped?",
        "KEYS",
    ),
    (
        "latency",
        "lock threads parts rounds seed TIMES",
        "parts TIMES",
    ),
    (
        "micro",
        "lock threads repeat seed seconds ops_per_sec OPS",
        "",
    ),
    (
        "pattern",
        "PATTERN threads LOCK RUN lost_updates torn_reads acquire_ns?",
        "PATTERN acquire_ns?",
    ),
    (
        "rw",
        "LOAD LOCK threads repeat seed seconds ops_per_sec RATES OPS cpu_seconds=null handoff_ns? DATA acquire_ns?",
        "LOAD RATES acquire_ns?",
    ),
    ("set", "SET threads LOCK RUN lost_updates skipped?", "SET"),
    (
        "store",
        "kernel pages threads LOCK RUN lost_updates torn_reads skipped?",
        "kernel pages",
    ),
    ("vm", "VM threads LOCK RUN space?", "VM space?"),
    (
        "waiting",
        "variant reads threads LOCK RUN lost_updates acquire_ns? cpu_share=null sleeper_cpu_ms=null",
        "",
    ),
];

const MACHINE: &str = "LOCK threads ops_per_sec OPS machine placement seed seconds simulated";

const GROUPS: [(&str, &str); 12] = [
    ("BLOB", "draw payload cache records"),
    ("DATA", "lost_updates torn_reads"),
    ("KEYS", "keys length chosen access writes"),
    (
        "LOAD",
        "load pool? pause? writes? inside? outside? entries?",
    ),
    ("LOCK", "lock family? exclusion? policy?"),
    ("OPS", "min_ops_per_thread max_ops_per_thread"),
    ("PATTERN", "pattern reads bystanders"),
    ("RATES", "reads_per_sec writes_per_sec"),
    (
        "RUN",
        "ops_per_sec repeat seed seconds min_ops_per_thread max_ops_per_thread cpu_seconds=null counters?",
    ),
    ("SET", "keys chosen mix stall"),
    ("TIMES", "first_count first_ns again_count again_ns"),
    ("VM", "traffic pace growths"),
];

/// The fields of a workload's line. `None`: it has no row in [`FIELDS`].
fn fields(workload: &str) -> Option<impl Iterator<Item = &'static str>> {
    let simulated = workload.strip_prefix(SIMULATED);
    let name = simulated.unwrap_or(workload);
    let (_, measured, own) = FIELDS.iter().find(|(of, ..)| *of == name)?;
    let texts = simulated.map_or([*measured, ""], |_| [*own, MACHINE]);
    let grouped = |word: &'static str| {
        let group = GROUPS.iter().find(|(name, _)| *name == word);
        group.map_or(word, |(_, fields)| fields).split(' ')
    };
    let words = texts.into_iter().flat_map(str::split_whitespace);
    Some(words.flat_map(grouped))
}

/// A field's name without its mark.
fn bare(field: &str) -> &str {
    field.split(['?', '=']).next().unwrap_or(field)
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        let name = all["workload"].as_str().unwrap_or_default();
        let simulated = self.simulated.as_ref().map_or("", |_| SIMULATED);
        let workload = format!("{simulated}{name}");
        let unknown =
            || S::Error::custom(format!("the fields of a line of {workload} are not known"));
        let fields = fields(&workload).ok_or_else(unknown)?;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("workload", &workload)?;
        for field in fields {
            let name = bare(field);
            let value = &all[name];
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            match name {
                _ if field.ends_with('?') && is_empty => {}
                // Objects within the line: their fields keep their own order.
                "counters" => line.serialize_entry(name, &self.counters)?,
                "acquire_ns" => line.serialize_entry(name, &self.acquire_ns)?,
                "read_ns" => line.serialize_entry(name, &self.read_ns)?,
                "first_ns" => line.serialize_entry(name, &self.first_ns)?,
                "space" => line.serialize_entry(name, &self.space)?,
                "again_ns" => line.serialize_entry(name, &self.again_ns)?,
                _ => line.serialize_entry(name, value)?,
            }
        }
        line.end()
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Value::deserialize(deserializer)?;
        // The workload comes first in a line, and so do its errors.
        Panel::deserialize(&line).map_err(D::Error::custom)?;
        let record = Self::deserialize(&line).map_err(D::Error::custom)?;
        let is_missing = |field: &&str| *field == bare(field) && line.get(field).is_none();
        let workload = line["workload"].as_str().unwrap_or_default();
        match fields(workload).into_iter().flatten().find(is_missing) {
            Some(field) => Err(D::Error::missing_field(field)),
            None => Ok(record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, Panel, Phase, Record};
    use serde::Deserialize;
    use serde_json::json;

    /// The names of all panels, as they are told to whoever misspells one.
    #[test]
    fn each_workload_has_its_fields() {
        let error = Panel::deserialize(json!({"workload": "?"})).expect_err("it is none");
        let told = error.to_string();
        let names: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
        assert!(names.contains(&"sim-arr"), "{told}");
        // These follow from lines of others.
        let is_line = |name: &&&str| !["?", "longest", "vm-stat"].contains(name);
        for name in names.iter().filter(is_line) {
            assert!(Record::is_of(name), "{name} has no row in FIELDS");
        }
    }

    #[test]
    fn a_run_without_known_fields_is_not_written() {
        let panel = Panel::Longest {
            phase: Phase::First,
        };
        let record = Record::new(panel, Lock::default(), 1, 0);
        let error = serde_json::to_string(&record).expect_err("no line has it");
        assert!(error.to_string().contains("longest"), "{error}");
    }
}
