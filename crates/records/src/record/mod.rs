//! Measurements as lines of JSON.
//!
//! | type | a line for |
//! |---|---|
//! | [`Provenance`](provenance::Provenance) | the machine, source and command of the lines that follow |
//! | [`Record`] | one run of a workload on one lock, on hardware or simulated |
//! | [`Memory`], [`ManyLocks`], [`Uncontended`], [`RwUncontended`], [`Revocation`], [`Tasks`] | other costs of one lock |
//! | [`finding`] | a finding that follows from records |
//! | [`Line`] | any of these |
//!
//! The harness fills records in, and the report reads them; neither needs the other. So a record
//! holds everything that a comparison needs of a lock ([`lock::Lock`]).
//!
//! A line of a run does not mention fields that have nothing in them. What no field of [`Record`] is, is a setting of
//! the workload, so a new workload changes nothing here.

mod costs;
pub mod finding;
pub mod lock;
mod panel;
pub mod provenance;
mod run;

pub use costs::{
    Among, Bytes, HOLD, ManyLocks, Memory, Revocation, RwUncontended, SetMemory, Tasks, Uncontended,
};
pub use panel::{Kind, Panel, Phase, VmStat};
pub use run::{Record, Simulated};

use derive_more::TryInto;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// One line of JSON: its field `workload` names its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TryInto)]
#[serde(tag = "workload", rename_all = "lowercase")]
pub enum Line {
    /// The origin of the lines that follow.
    Meta(provenance::Provenance),
    /// The best lock of each family, in one panel at one number of threads.
    Standing(finding::Standing),
    /// A statement of a paper, and whether it holds here.
    Claim(finding::Judgement),
    /// A lock of the harness.
    Lock(lock::Entry),
    /// The waits for a lock among threads that never pause.
    Among(Among),
    /// What tasks get done under a lock.
    #[serde(rename = "async")]
    Tasks(Tasks),
    /// The memory of one lock and its holders.
    Memory(Memory),
    /// The memory of many locks that each thread uses once.
    #[serde(rename = "many_locks")]
    ManyLocks(ManyLocks),
    /// The memory of an ordered set.
    #[serde(rename = "set_memory")]
    SetMemory(SetMemory),
    /// An uncontended round of a range lock.
    Uncontended(Uncontended),
    /// An uncontended round of a reader-writer lock.
    #[serde(rename = "rw_uncontended")]
    RwUncontended(RwUncontended),
    /// The cost of revoking a bias, with a table of one size.
    #[serde(rename = "rw_revocation")]
    RwRevocation(Revocation),
    /// The order of locks on machines that differ a little.
    #[serde(rename = "sim-ranking")]
    SimRanking(finding::Ranking),
    /// The machine of the simulated runs that follow.
    #[serde(rename = "sim-machine")]
    SimMachine(machines::Machine),
    /// A run of a workload. Its record names its kind itself, so [`Line`] reads and writes it apart.
    #[serde(skip)]
    Run(Box<Record>),
}

/// As JSON, on one line, without the line's end.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Run(record) => serde_json::to_string(record),
            other => serde_json::to_string(other),
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

/// Reads back what was written. A line with a lock and its threads is of a run.
impl FromStr for Line {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let line: Value = serde_json::from_str(text)?;
        match line.get("panel").is_some()
            && line.get("threads").is_some()
            && line.get("lock").is_some()
        {
            true => Ok(Self::Run(serde_json::from_value(line)?)),
            false => serde_json::from_value(line),
        }
    }
}

impl From<Record> for Line {
    fn from(record: Record) -> Self {
        Self::Run(Box::new(record))
    }
}

/// So many threads, in words.
#[must_use]
pub fn plural(threads: usize) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}
