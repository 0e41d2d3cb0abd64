//! What a workload does besides atomic operations, told to the machine. Nothing on hardware, where it just happens.

use crate::world::{self, Access};

/// So many cycles of private work.
pub fn work(cycles: u64) {
    world::work(cycles);
}

/// A plain read of what lies at `place`: the first line of it.
pub fn read<T: ?Sized>(place: &T) {
    world::touch(std::ptr::from_ref(place).addr(), Access::Load);
}

/// A plain write of what lies at `place`: the first line of it.
pub fn write<T: ?Sized>(place: &T) {
    world::touch(std::ptr::from_ref(place).addr(), Access::Store);
}
