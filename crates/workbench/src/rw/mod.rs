//! Reader-writer locks under the workloads of P2 §5.
//!
//! Numbers are the paper's but for time: it measures for 10 seconds (50 for the table) and takes the median of 7. As
//! source of pauses and choices stands one small generator where the paper has several.
//!
//! | module | what it is |
//! |---|---|
//! | [`locks`] | the table of reader-writer locks: to add one, add a row |
//! | [`guarded`] | what locks guard: it shows an update that was lost and a read that was torn |
//! | [`interference`] | readers of random locks of a pool: do locks get in each other's way (§5.1)? |
//! | [`alternator`] | readers one after the other, in a ring (§5.2) |
//! | [`test_rwlock`] | readers and one writer, with fixed roles (§5.3) |
//! | [`rwbench`] | threads that read or write by chance (§5.4) |
//! | [`hash_table`] | lookups, an inserter and an eraser in one table (§5.6) |
//! | [`readers`] | nothing but reading |

pub mod alternator;
pub mod guarded;
pub mod hash_table;
pub mod interference;
pub mod locks;
pub mod readers;
pub mod rwbench;
pub mod test_rwlock;

use crate::crew::{self, Meter, Phase, Signal, Timekeeper};
use crate::target::{AnyLock, WHOLE};
use crate::workload::Workload;
use fastrand::Rng;
use prim::cost;
use serde::{Deserialize, Serialize};
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Outcome, Tally, Trial};
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// A workload of reader-writer locks.
pub trait OnWhole: Workload {
    /// Makes a run.
    fn run(run: Run<'_, Self>) -> Outcome;
}

/// Runs a workload on fresh locks.
///
/// # Panics
/// When the trial has no threads.
pub fn run<W: OnWhole>(
    make: &dyn Fn() -> Box<dyn AnyLock>,
    trial: &Trial<W>,
    meter: &mut dyn Meter,
) -> Outcome {
    assert!(trial.threads > 0);
    W::run(Run { make, trial, meter })
}

/// A run to be made, and how its locks are.
pub struct Run<'a, W> {
    make: &'a dyn Fn() -> Box<dyn AnyLock>,
    trial: &'a Trial<W>,
    meter: &'a mut dyn Meter,
}

impl<W: Workload> Run<'_, W> {
    fn load(&self) -> W {
        self.trial.load
    }

    fn lock(&self) -> Box<dyn AnyLock> {
        (self.make)()
    }

    /// Lets all threads work, also those that are not counted. Of so many writes, `lost` says which are missing.
    fn work(
        self,
        work: impl Fn(usize, Rng, &Signal, &mut Tally) + Sync,
        lost: impl Fn(u64) -> u64,
    ) -> Outcome {
        let all = Trial {
            threads: self.trial.threads + W::BESIDE,
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
