//! The range locks that are measured: those of the common table, then peers that are on hardware only. To add a peer,
//! add an entry.

use super::{Lock, Make};
use crate::setting::{Setting, Values};
use crate::target::called::{Called, Floor};
use crate::target::{Null, ParkingLot, RangeLockCrate, Std};
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_trial::lock::{Described, Exclusion, Role};
use spanlock_workloads::locks::{self, Maker};
use std::sync::LazyLock;

/// All of them, in the order of tables.
pub static LOCKS: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let mut table = Measured(Vec::new());
    locks::all(&mut table);
    let Measured(mut all) = table;
    all.extend(PEERS);
    all
});

/// Rows that are measured on hardware.
struct Measured(Vec<Lock>);

impl Measured {
    fn add(&mut self, described: Described, measure: impl super::Measure + 'static) {
        if described.role != Role::Configuration {
            self.0.push(Lock {
                described,
                values: Values::NONE,
                measure: Box::leak(Box::new(measure)),
            });
        }
    }
}

impl locks::Table for Measured {
    fn shared<L: locks::Shared>(&mut self, described: Described, make: Maker<L>) {
        let make = move |setting: &Setting| RangeLock::from_raw(make(setting));
        self.add(described, Make(make));
    }

    fn exclusive<L: locks::Exclusive>(&mut self, described: Described, make: Maker<L>) {
        let make = move |setting: &Setting| RangeMutex::from_raw(make(setting));
        self.add(described, Make(make));
    }
}

/// A lock that is on hardware only.
const fn peer(described: Described, measure: &'static dyn super::Measure) -> Lock {
    Lock {
        described,
        values: Values::NONE,
        measure,
    }
}

/// Peers that are on hardware only.
static PEERS: &[Lock] = &[
    peer(
        Described {
            name: "std-rwlock",
            family: "whole resource",
            about: "std::sync::RwLock over the whole resource",
            when: "ranges mostly overlap; sections are short",
            avoid: "ranges are mostly disjoint",
            memory: "8 bytes, with what it protects",
            source: "Rust's standard library",
            ..Described::WHOLE
        },
        &Make(|_: &Setting| Std::default()),
    ),
    peer(
        Described {
            name: "parking-lot",
            family: "whole resource",
            about: "parking_lot::RwLock over the whole resource",
            when: "as std-rwlock, and waits have time limits",
            avoid: "ranges are mostly disjoint",
            memory: "8 bytes, and a table for the process",
            source: "crate parking_lot",
            ..Described::WHOLE
        },
        &Make(|_: &Setting| ParkingLot::default()),
    ),
    peer(
        Described {
            name: "range-lock",
            family: "range-lock",
            about: "a mutex over a B-tree, exclusive; tries, spins, then yields",
            when: "to compare",
            avoid: "requests wait: it can only try",
            memory: "a node of the B-tree for a few ranges held",
            source: "crate range-lock",
            rmw: "4",
            ..Described::RANGES
        },
        &Make(|setting: &Setting| RangeLockCrate::new(setting.units())),
    ),
    peer(
        Described {
            name: "null",
            family: "none",
            about: "no lock: the ceiling. Loses updates when threads overlap, and is not held to the check",
            when: "to compare",
            avoid: "anything depends on it",
            memory: "nothing",
            source: "-",
            exclusion: Exclusion::None,
            rmw: "0",
            ..Described::RANGES
        },
        &Make(|_: &Setting| Null),
    ),
];

/// Lower bounds of the cost of a lock, for [`pairs`](crate::pairs) only.
pub static FLOORS: &[Lock] = &[
    peer(
        Described {
            name: "floor",
            family: "floor",
            about: "one compare-exchange and one store on a private line",
            when: "to compare",
            avoid: "otherwise",
            memory: "128 bytes",
            source: "-",
            rmw: "1",
            ..Described::WHOLE
        },
        &Make(|_: &Setting| Called::<Floor<0>>::default()),
    ),
    peer(
        Described {
            name: "floor-2rmw",
            family: "floor",
            about: "two compare-exchanges on a private line",
            when: "to compare",
            avoid: "otherwise",
            memory: "128 bytes",
            source: "-",
            ..Described::WHOLE
        },
        &Make(|_: &Setting| Called::<Floor<1>>::default()),
    ),
];
