//! Reader-writer locks under the workloads of P2 §5. To add one, add a module, a variant of [`Load`] and its arm in
//! [`run`].
//!
//! | module | what it is |
//! |---|---|
//! | [`locks`] | the table of reader-writer locks: to add one, add a row |
//! | [`guarded`] | what locks guard: it shows an update that was lost and a read that was torn |
//! | `interference` | readers of random locks of a pool: do locks get in each other's way (§5.1)? |
//! | `alternator` | readers one after the other, in a ring (§5.2) |
//! | `test_rwlock` | readers and one writer, with fixed roles (§5.3) |
//! | `rwbench` | threads that read or write by chance (§5.4) |
//! | `hash_table` | lookups, an inserter and an eraser in one table (§5.6) |
//! | `readers` | nothing but reading |

mod alternator;
pub mod guarded;
mod hash_table;
mod interference;
pub mod locks;
mod readers;
mod rwbench;
mod test_rwlock;

use crate::crew::{self, Meter, Phase, Signal, Timekeeper};
use crate::target::{Target, WHOLE};
use crossbeam_utils::CachePadded;
use fastrand::Rng;
use prim::cost;
use spanlock_records::trial::run::{Outcome, Tally};
use spanlock_records::trial::rw::{Load, Trial};

/// Runs a workload on fresh reader-writer locks.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<T: Target>(make: impl Fn() -> T, trial: &Trial, meter: &mut impl Meter) -> Outcome {
    assert!(trial.threads > 0);
    let run = Run { make, trial, meter };
    match trial.load {
        Load::Interference { pool } => interference::run(run, pool),
        Load::Alternator => alternator::run(run),
        Load::TestRwlock { pause } => test_rwlock::run(run, pause),
        Load::Rwbench {
            writes,
            inside,
            outside,
        } => rwbench::run(run, writes, inside, outside),
        Load::HashTable { entries } => hash_table::run(run, entries),
        Load::Readers => readers::run(run),
    }
}

/// A run to be made, and how its locks are.
struct Run<'a, F, M> {
    make: F,
    trial: &'a Trial,
    meter: &'a mut M,
}

impl<T, F: Fn() -> T, M: Meter> Run<'_, F, M> {
    /// A lock on lines of its own.
    fn lock(&self) -> CachePadded<T> {
        CachePadded::new((self.make)())
    }

    /// Lets all threads work, also those that are not counted. Of so many writes, `lost` says which are missing.
    fn work(
        self,
        work: impl Fn(usize, Rng, &Signal, &mut Tally) + Sync,
        lost: impl Fn(u64) -> u64,
    ) -> Outcome {
        let all = Trial {
            threads: self.trial.threads + self.trial.load.more_threads(),
            ..*self.trial
        };
        crew::tallied(&all, self.meter, work, |all| all.data(lost(all.added)))
    }
}

/// Repeats an operation until the end, with whether it counts: by 1 or by 0.
#[inline]
pub(crate) fn until_stop(signal: &Signal, mut operation: impl FnMut(u64)) {
    signal.until_stop(|phase| operation(phase.counts()));
}

/// Advances random numbers: work that no compiler takes away.
#[inline(never)] // The same code for all locks: where a loop like this lies can make a tenth.
pub(crate) fn steps(rng: &mut Rng, steps: u32) {
    /// Cycles of each on a simulated machine, fitted to what one thread does of rwbench on a small one.
    const STEP: u64 = 3;
    for _ in 0..steps {
        std::hint::black_box(rng.u64(..));
    }
    cost::work(u64::from(steps) * STEP);
}

/// Counts down to nothing: work that no compiler takes away.
#[inline(never)] // As above.
pub(crate) fn count_down(from: u32) {
    /// Cycles of each on a simulated machine. An assumption: a store and a jump.
    const STEP: u64 = 1;
    for left in (0..from).rev() {
        std::hint::black_box(left);
    }
    cost::work(u64::from(from) * STEP);
}
