//! Monotonic time. On a model checker time is a counter.

pub use std::time::{Duration, Instant};

use std::sync::OnceLock;

/// Nanoseconds since some moment early in the process's life.
#[must_use]
pub fn nanoseconds() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let since = Instant::now().saturating_duration_since(*ORIGIN.get_or_init(Instant::now));
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
