//! Readers one after the other, in a ring (P2 §5.2): what a reader pays that never meets another, when each reads on a
//! processor of its own.
//!
//! A thread waits until its left neighbour has notified it, reads and leaves, and notifies its right neighbour. Nobody
//! writes, so there is nothing to check. It waits by looking, as the paper's does, but gives the processor away after
//! so many looks: there may be more threads than processors.

use super::target::RwTarget;
use super::{Outcome, Tally, Trial};
use crate::crew::{self, Phase, Signal};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering};

const LOOKS: u32 = 1000;

pub(super) fn run<T: RwTarget>(make: fn() -> T, trial: &Trial) -> Outcome {
    let lock = CachePadded::new(make());
    // How often each was notified. The first begins.
    let notified: Vec<_> = (0..trial.threads)
        .map(|thread| CachePadded::new(AtomicU64::new(u64::from(thread == 0))))
        .collect();
    let run = crew::run(trial.threads, trial.schedule, &[], |thread, signal| {
        let right = &notified[(thread + 1) % notified.len()];
        let mut tally = Tally::default();
        for turn in 1.. {
            let Some(phase) = await_turn(&notified[thread], turn, signal) else {
                break;
            };
            drop(lock.read());
            // Only its left neighbour writes what a thread waits for.
            let next = right.load(Ordering::Relaxed) + 1;
            right.store(next, Ordering::Release);
            tally.reads += u64::from(phase == Phase::Measured);
        }
        tally
    });
    Outcome::of(&run, |_| 0)
}

/// Waits for a turn and tells its phase; `None` at the end.
fn await_turn(notified: &AtomicU64, turn: u64, signal: &Signal) -> Option<Phase> {
    let mut looks = 0;
    loop {
        let phase = signal.phase();
        if phase == Phase::Stop {
            return None;
        }
        if notified.load(Ordering::Acquire) >= turn {
            return Some(phase);
        }
        looks += 1;
        if looks % LOOKS == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
