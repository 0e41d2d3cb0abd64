//! The cost of work other than atomic operations.
//!
//! A workload reports such work to the simulated machine, which charges its time. On hardware the work takes its time
//! by itself, so these functions do nothing.

/// Reports private work of so many cycles.
#[inline]
pub fn work(_cycles: u64) {}

/// Reports a plain read of the first cache line of `place`.
#[inline]
pub fn read<T: ?Sized>(_place: &T) {}

/// Reports a plain write of the first cache line of `place`.
#[inline]
pub fn write<T: ?Sized>(_place: &T) {}

/// Cycles of a workload's own steps, as assumed for a simulated machine. Here all are zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steps {
    /// A no-op.
    pub no_op: u64,
    /// Reading a slot of an array.
    pub slot_read: u64,
    /// Writing a slot of an array.
    pub slot_write: u64,
}

/// The costs of those steps on this platform.
#[inline]
#[must_use]
pub fn steps() -> Steps {
    Steps::default()
}
