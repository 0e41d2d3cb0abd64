//! The range locks that are measured: those of the common table, then peers that are on hardware only. To add a peer,
//! add a row, and its description to `records/src/trial/locks.toml`.

use super::{Lock, Make};
#[cfg(all(feature = "c", target_os = "linux", target_pointer_width = "64"))]
use crate::peers::c::CRangeLock;
use crate::peers::called::{Called, Floor};
use crate::peers::tasks::ByTasks;
use crate::peers::{Null, ParkingLot, RangeLockCrate, Std, Target};
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_records::trial::lock::{Described, Role, described};
use spanlock_records::trial::setting::{Setting, Values};
use spanlock_workbench::locks::{self, Maker};
use std::sync::LazyLock;

/// All of them, in the order of tables.
pub static LOCKS: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let mut table = Measured(Vec::new());
    locks::all(&mut table);
    #[cfg(all(feature = "c", target_os = "linux", target_pointer_width = "64"))]
    table.add(described("c-slots"), |_| CRangeLock::default());
    table.add(described("slots-tasks"), |_| ByTasks::default());
    table.add(described("std-rwlock"), |_| Std::default());
    table.add(described("parking-lot"), |_| ParkingLot::default());
    table.add(described("range-lock"), |setting| {
        RangeLockCrate::new(setting.units())
    });
    table.add(described("null"), |_| Null);
    table.0
});

/// Lower bounds of the cost of a lock, for [`pairs`](crate::pairs) only.
pub static FLOORS: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let mut table = Measured(Vec::new());
    table.add(described("floor"), |_| Called::<Floor<0>>::default());
    table.add(described("floor-2rmw"), |_| Called::<Floor<1>>::default());
    table.0
});

/// Rows that are measured on hardware.
struct Measured(Vec<Lock>);

impl Measured {
    fn add<T: Target + 'static>(
        &mut self,
        described: Described,
        make: impl Fn(&Setting) -> T + Sync + 'static,
    ) {
        if described.role != Role::Configuration {
            self.0.push(Lock {
                described,
                values: Values::NONE,
                measure: Box::leak(Box::new(Make(make))),
            });
        }
    }
}

impl locks::Table for Measured {
    fn shared<L: locks::Shared>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move |setting| RangeLock::from_raw(make(setting)));
    }

    fn exclusive<L: locks::Exclusive>(&mut self, described: Described, make: Maker<L>) {
        self.add(described, move |setting| {
            RangeMutex::from_raw(make(setting))
        });
    }
}
