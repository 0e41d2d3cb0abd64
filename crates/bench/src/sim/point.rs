//! What simulated workloads have in common: points of curves, and what each of them yields.

use crate::compare::{self, Panel};
use crate::report::{self, Line, Width};
use prim_sim::clock::Duration;
use prim_sim::{Placement, Setup, thread};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is simulated once for each seed: a lock under a workload, with so many threads.
pub trait Point: Sync {
    /// What it yields.
    type Record: Record;

    /// All that it is, besides the [`Setup`]: two points of one name yield the same.
    fn name(&self) -> String;

    /// Runs it.
    ///
    /// # Errors
    /// When the run fails, or the lock does not do what it promises.
    fn measure(&self, setup: &Setup) -> Result<Self::Record, String>;
}

/// What a point yields: a line of JSON, and a cell of a table.
pub trait Record: Clone + Send + Serialize + DeserializeOwned + Into<Line> {
    /// The panel of the figure: runs in one panel are compared.
    fn panel(&self) -> String;

    /// What all workloads yield.
    fn run(&self) -> &Run;

    /// All of them, for people.
    fn table(all: &[Self], width: Width) -> String {
        report::sim_panels(all, width)
    }

    /// What follows from all of them, with a processor for so many threads: for people, and as lines of JSON.
    fn conclusions(_all: &[Self], _cores: usize) -> (String, Vec<Line>) {
        (String::new(), Vec::new())
    }
}

/// What all simulated workloads yield, and where that comes from: part of their lines of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The lock's name.
    pub lock: String,
    /// Virtual threads.
    pub threads: usize,
    /// Operations per virtual second, of all threads.
    pub ops_per_sec: f64,
    /// Operations of the thread that had the fewest.
    pub min_ops_per_thread: u64,
    /// Operations of the thread that had the most.
    pub max_ops_per_thread: u64,
    /// The machine's name.
    pub machine: String,
    /// Where threads ran.
    pub placement: Placement,
    /// What random numbers followed from.
    pub seed: u64,
    /// Virtual seconds that were measured.
    pub seconds: f64,
    /// Operations of the simulated machine.
    pub simulated: u64,
}

impl Run {
    /// Of a lock, with so many operations of each thread in the measured time.
    #[must_use]
    pub fn new(lock: &str, setup: &Setup, measured: Duration, ops: &[u64], simulated: u64) -> Self {
        let seconds = measured.as_secs_f64();
        Self {
            lock: lock.to_owned(),
            threads: ops.len(),
            ops_per_sec: ops.iter().sum::<u64>() as f64 / seconds,
            min_ops_per_thread: ops.iter().copied().min().unwrap_or(0),
            max_ops_per_thread: ops.iter().copied().max().unwrap_or(0),
            machine: setup.machine.name.clone(),
            placement: setup.placement,
            seed: setup.seed,
            seconds,
            simulated,
        }
    }
    /// As it is compared with others of a panel.
    pub(super) fn compared(&self, panel: Panel) -> compare::Point {
        compare::Point {
            panel,
            lock: self.lock.clone(),
            threads: self.threads,
            ops_per_sec: Ok(self.ops_per_sec),
            counters: Vec::new(),
        }
    }
}

/// The setup of a run that measures so long: one that takes a hundred times as long hangs.
pub(super) fn limited(setup: &Setup, measured: Duration) -> Setup {
    Setup {
        lasts: measured * 100,
        ..setup.clone()
    }
}

/// Has so many virtual threads, numbered from 0, do the same work; what each returns.
pub(super) fn crew<S: Send + Sync + 'static, T: Send + 'static>(
    shared: &Arc<S>,
    threads: usize,
    work: fn(&S, usize) -> T,
) -> Vec<T> {
    let spawn = |number| {
        let shared = Arc::clone(shared);
        thread::spawn(move || work(&shared, number))
    };
    let crew: Vec<_> = (0..threads).map(spawn).collect();
    // A panic ends the run before its thread is joined.
    crew.into_iter()
        .filter_map(|worker| worker.join().ok())
        .collect()
}
