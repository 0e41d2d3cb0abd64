//! The crash tests of the store with weakened edges, and crashes between the steps of concurrent writers, on the
//! simulated machine.
#![cfg(target_os = "linux")]

#[path = "../../../../../crates/structures/tests/store/common/mod.rs"]
mod common;
#[path = "../../../../../crates/structures/tests/store/crash/mod.rs"]
mod crash;

mod concurrent;
mod directed;
mod mutants;

use spanlock::range as spanlock_range;
use spanlock_structures_sim::store;

/// The same memory in each run, so that a seed gives the same schedule.
#[global_allocator]
static HEAP: prim::heap::OnLines = prim::heap::OnLines;
