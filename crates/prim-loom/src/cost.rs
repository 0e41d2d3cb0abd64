//! What a workload does besides atomic operations, for a simulated machine to charge. Nothing here: it just happens.

/// So many cycles of private work.
#[inline]
pub fn work(_cycles: u64) {}

/// A plain read of what lies at `place`: the first line of it.
#[inline]
pub fn read<T: ?Sized>(_place: &T) {}

/// A plain write of what lies at `place`: the first line of it.
#[inline]
pub fn write<T: ?Sized>(_place: &T) {}
