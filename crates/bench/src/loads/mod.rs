//! Workloads that run on hardware and on simulated machines. This folder is compiled twice, here and in
//! [`sim`](crate::sim): it says `prim` and `crew`, and means the platform and the threads that are called so where it is.

pub mod alternator;
pub mod guarded;
pub mod hash_table;
pub mod interference;
pub mod micro;
pub mod readers;
pub mod rwbench;
pub mod test_rwlock;

use super::{crew, prim};
use crate::crew::Phase;
use crate::rw::target::RwTarget;
use crate::rw::{Load, Outcome, Tally, Trial};
use crew::Signal;
use prim::cost;

/// Runs a workload on fresh reader-writer locks.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<T: RwTarget>(make: impl Fn() -> T, trial: &Trial) -> Outcome {
    assert!(trial.threads > 0);
    match trial.load {
        Load::Interference { pool } => interference::run(make, pool, trial),
        Load::Alternator => alternator::run(make, trial),
        Load::TestRwlock { pause } => test_rwlock::run(make, pause, trial),
        Load::Rwbench { writes } => rwbench::run(make, writes, trial),
        Load::HashTable { entries } => hash_table::run(make, entries, trial),
        Load::Readers => readers::run(make, trial),
    }
}

/// Repeats an operation until the end, and tells it whether it counts: by 1 or by 0.
#[inline]
fn until_stop(signal: &Signal, mut operation: impl FnMut(u64)) {
    loop {
        match signal.phase() {
            Phase::Warmup => operation(0),
            Phase::Measured => operation(1),
            Phase::Stop => return,
        }
    }
}

/// Advances random numbers: work that no compiler takes away.
#[inline(never)] // The same code for all locks: where a loop like this lies can make a tenth.
fn steps(rng: &mut fastrand::Rng, steps: u32) {
    /// Cycles of each on a simulated machine, fitted to what one thread does of rwbench on a small one.
    const STEP: u64 = 3;
    for _ in 0..steps {
        std::hint::black_box(rng.u64(..));
    }
    cost::work(u64::from(steps) * STEP);
}

/// Counts down to nothing: work that no compiler takes away.
#[inline(never)] // As above.
fn count_down(from: u32) {
    /// Cycles of each on a simulated machine. An assumption: a store and a jump.
    const STEP: u64 = 1;
    for left in (0..from).rev() {
        std::hint::black_box(left);
    }
    cost::work(u64::from(from) * STEP);
}
