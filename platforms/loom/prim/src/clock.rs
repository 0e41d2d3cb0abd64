//! Time as a counter: each reading of the clock is a microsecond later than the one before.

pub use core::time::Duration;

use hardware::simulated;

/// A point in the time of an execution.
pub type Instant = simulated::Instant<Ticks>;

/// The clock of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks;

impl simulated::Clock for Ticks {
    fn since_start() -> Duration {
        crate::with_execution(|execution| {
            execution.ticks += 1;
            Duration::from_micros(execution.ticks)
        })
    }
}

/// Nanoseconds since the execution began.
#[must_use]
pub fn nanoseconds() -> u64 {
    Instant::nanoseconds()
}
