//! The library's locks under random schedules, and what the same schedules find in mutants.
//!
//! `cargo test -p spanlock-bench --test fuzz -- --nocapture` prints what is caught. `SPANLOCK_FUZZ_RUNS` sets how many
//! schedules are tried.

mod mutants;
mod range;
mod rw;

use prim_sim::{Ended, Failure};
use spanlock_bench::sim::fuzz::Case;

#[global_allocator]
static HEAP: prim_sim::heap::OnLines = prim_sim::heap::OnLines;

const RUNS: u64 = 300;

fn runs() -> u64 {
    let told = std::env::var("SPANLOCK_FUZZ_RUNS");
    told.map_or(RUNS, |text| text.parse().expect("a whole number"))
}

type Run = Box<dyn Fn(&Case) -> Result<Ended<()>, Box<Failure>>>;

/// How to run a case on the lock of that name.
fn find(lock: &str) -> Result<Run, String> {
    range::find(lock).or_else(|_| rw::find(lock))
}
