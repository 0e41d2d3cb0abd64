//! The ordered sets that are measured: those of the common table, then peers that are on hardware only. To add a peer,
//! add a row.

use crate::provenance::cores;
use crossbeam_skiplist::SkipSet;
use dashmap::DashSet;
use parking_lot::RwLock;
use spanlock_records::record::{Bytes, SetMemory};
use spanlock_records::trial::run::{Found, Outcome};
use spanlock_workbench::crew::Meter;
use spanlock_workbench::rows;
use spanlock_workbench::set::table::{self, Described, Row};
use spanlock_workbench::set::{self, Set, Trial, fill};
#[cfg(feature = "sim")]
pub use spanlock_workbench_sim::set::table::Row as Simulated;
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A set of another crate.
struct Peer<S>(S);

impl Set for Peer<SkipSet<u64>> {
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    /// The peer does not say whether the set had the key.
    fn insert(&self, key: u64) -> bool {
        self.0.get_or_insert(key);
        true
    }

    fn remove(&self, key: u64) -> bool {
        self.0.remove(&key).is_some()
    }

    fn scan(&self, from: u64, most: usize) -> Option<usize> {
        Some(self.0.range(from..).take(most).count())
    }

    fn len(&self) -> Option<usize> {
        None
    }
}

impl Set for Peer<RwLock<BTreeSet<u64>>> {
    fn contains(&self, key: u64) -> bool {
        self.0.read().contains(&key)
    }

    fn insert(&self, key: u64) -> bool {
        self.0.write().insert(key)
    }

    fn remove(&self, key: u64) -> bool {
        self.0.write().remove(&key)
    }

    fn scan(&self, from: u64, most: usize) -> Option<usize> {
        Some(self.0.read().range(from..).take(most).count())
    }

    fn len(&self) -> Option<usize> {
        Some(self.0.read().len())
    }
}

impl Set for Peer<DashSet<u64>> {
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn insert(&self, key: u64) -> bool {
        self.0.insert(key)
    }

    fn remove(&self, key: u64) -> bool {
        self.0.remove(&key).is_some()
    }

    fn scan(&self, _: u64, _: usize) -> Option<usize> {
        None
    }

    fn len(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// Peers that are on hardware only.
static PEERS: &[Row] = rows! {
    "crossbeam-skiplist" "SkipSet of the crate crossbeam-skiplist: a skip list without locks"
        Peer(SkipSet::new());
    "btree-rwlock" "BTreeSet of the standard library under parking_lot::RwLock"
        Peer(RwLock::new(BTreeSet::new()));
    "dashmap" "DashSet of the crate dashmap: a hash table in parts, without an order"
        Peer(DashSet::new());
};

/// All of them, in the order of tables.
pub static STOCKS: LazyLock<Vec<Stock>> = LazyLock::new(|| {
    let rows = table::ROWS.iter().chain(PEERS);
    rows.map(Stock::new).collect()
});

/// All that can be simulated.
#[cfg(feature = "sim")]
pub static SIMULATED: &[Simulated] = spanlock_workbench_sim::set::table::ROWS;

/// A set that is made and filled for its first run, and serves all later runs: to fill it takes longer than a run.
pub struct Stock {
    /// Its name and what it is.
    pub described: &'static Described,
    make: fn() -> Box<dyn Set>,
    filled: Mutex<Option<Filled>>,
}

struct Filled {
    set: Box<dyn Set>,
    /// The keys from which it was filled.
    of: usize,
    /// The keys that are in it.
    keys: u64,
}

impl Filled {
    /// By as many threads as there are processors.
    fn new(set: Box<dyn Set>, of: usize, seed: u64) -> Self {
        let keys = fill(&*set, of, cores(), seed);
        Self { set, of, keys }
    }
}

impl Stock {
    /// None yet of this set.
    fn new(row: &'static Row) -> Self {
        Self {
            described: &row.described,
            make: row.make,
            filled: Mutex::new(None),
        }
    }

    /// Runs a trial.
    pub(crate) fn run(
        &self,
        trial: &Trial,
        meter: &mut dyn Meter,
    ) -> Result<Outcome, &'static str> {
        let mut stock = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = trial.load.keys;
        let filled = match &mut *stock {
            Some(filled) if filled.of == keys => filled,
            stock => stock.insert(Filled::new((self.make)(), keys, trial.seed)),
        };
        let outcome = set::run(&*filled.set, filled.keys, trial, meter)?;
        if let Found::Keys { found, .. } = outcome.found {
            filled.keys = found;
        }
        Ok(outcome)
    }
}

/// The memory of a set in which half of so many keys are, drawn at random, as the allocator counts it.
#[must_use]
pub fn memory(stock: &Stock, keys: usize, allocated: &dyn Fn() -> Bytes) -> SetMemory {
    // What is kept once for the process does not count.
    drop((stock.make)());
    let before = allocated();
    let set = (stock.make)();
    let inserted = fill(&*set, keys, 1, 0);
    let bytes = allocated() - before;
    SetMemory {
        lock: stock.described.name.to_owned(),
        keys: inserted,
        bytes,
    }
}
