//! Crashes at every moment: what a simulated medium may contain after one, and whether the store recovers from it.
//!
//! The package `spanlock-structures-sim` runs the same tests with weakened edges, and adds concurrent writers.

pub mod explore;
pub mod images;
pub mod workloads;

/// How much of everything is tried: `SPANLOCK_CRASH_SCALE`, by default 1. At 64 all pairs of operations are.
pub fn scale() -> usize {
    usize::try_from(spanlock_testkit::setting("SPANLOCK_CRASH_SCALE", 1)).expect("small")
}
