//! The cost of work other than atomic operations. A workload reports such work here, and the machine charges its time.

pub use hardware::cost::Steps;

use crate::world::{self, Access};

/// Charges private work of so many cycles.
pub fn work(cycles: u64) {
    world::work(cycles);
}

/// Charges a plain read of the first cache line of `place`.
pub fn read<T: ?Sized>(place: &T) {
    world::touch(std::ptr::from_ref(place).addr(), Access::Load);
}

/// Charges a plain write of the first cache line of `place`.
pub fn write<T: ?Sized>(place: &T) {
    world::touch(std::ptr::from_ref(place).addr(), Access::Store);
}

/// The costs of those steps on the machine of the run; zero outside a run.
#[must_use]
pub fn steps() -> Steps {
    let steps = world::peek(|world| {
        let cycles = &world.setup.machine.cycles;
        Steps {
            no_op: cycles.no_op,
            slot_read: cycles.slot_read,
            slot_write: cycles.slot_write,
        }
    });
    steps.unwrap_or_default()
}
