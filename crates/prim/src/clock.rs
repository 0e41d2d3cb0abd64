//! Monotonic time. On a model checker time is a counter.

pub use std::time::{Duration, Instant};
