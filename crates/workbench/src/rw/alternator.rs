//! Readers one after the other, in a ring (P2 §5.2): what a reader pays that never meets another, when each reads on a
//! processor of its own.
//!
//! A thread waits until its left neighbour has notified it, reads and leaves, and notifies its right neighbour. Nobody
//! writes, so there is nothing to check. It polls, as the paper's does, but gives the processor away after a number of
//! loads: there may be more threads than processors. The end goes round as turns do.

use super::{
    Deserialize, Kind, OnWhole, Outcome, Phase, Rng, Run, Serialize, Settings, Signal, Tally,
    Timekeeper, WHOLE, Workload, fmt,
};
use crossbeam_utils::CachePadded;
use prim::atomic::{AtomicU64, Ordering};
use prim::workload::until_changed;

/// The last turn.
const END: u64 = u64::MAX;

/// The settings, of which there are none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("alternator")
    }
}

impl Settings for Load {
    const NAME: &'static str = "alternator";
    const KIND: Kind = Kind::Whole;
}

impl Workload for Load {
    const ABOUT: &'static str = "Threads read one after the other, in a ring";
}

impl OnWhole for Load {
    fn run(run: Run<'_, Self>) -> Outcome {
        let lock = run.lock();
        // How often each was notified. The first begins.
        let notified: Vec<_> = (0..run.trial.threads)
            .map(|thread| CachePadded::new(AtomicU64::new(u64::from(thread == 0))))
            .collect();
        let work = |thread: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
            let (own, right) = (&notified[thread], &notified[(thread + 1) % notified.len()]);
            let mut turn = 0;
            loop {
                turn = until_changed(own, turn);
                let phase = signal.phase();
                if turn == END || phase == Phase::Stop {
                    right.store(END, Ordering::Release);
                    return;
                }
                drop(lock.read(WHOLE));
                // Only its left neighbour writes what a thread waits for.
                let next = right.load(Ordering::Relaxed) + 1;
                right.store(next, Ordering::Release);
                tally.reads += u64::from(phase == Phase::Measured);
            }
        };
        run.work(work, |_| 0)
    }
}
