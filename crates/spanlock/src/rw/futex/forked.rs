//! Marks that outlive their writers, in a forked child.
//!
//! A forked child has one thread. A lock that it inherits may have the mark of a writer that waited in the parent. That
//! writer is not there, so readers that give way to it would wait for good.
//!
//! So a mark has a date: the number of forks between the first process and this one, modulo 256, in the upper bits of
//! `signals`. A writer stores it there before it sets its mark. A reader that finds a mark in its way compares the
//! date with that of its own process, and clears the mark if they differ (rule 4 of `mod.rs`).
//!
//! A mistake does no harm beyond a wake-up: a mark that seems old is cleared and its writer woken, and that writer sets
//! it again. This happens when the count of wake-ups overflows into the date, once in 2^24, and when a reader does not
//! observe the date yet.

use super::{FutexRwLock, GiveWay, Preference, State};
use prim::atomic::Ordering;
use prim::thread;

/// The bits below count wake-ups.
const FORKS_SHIFT: u32 = 24;

/// The date of this process, in the upper bits.
fn forks() -> u32 {
    thread::forks() << FORKS_SHIFT
}

fn is_of_this_process(signals: u32) -> bool {
    (signals ^ forks()) >> FORKS_SHIFT == 0
}

impl<P: Preference> FutexRwLock<P> {
    /// The value of `signals` that a writer will sleep by, with the date of this process. The writer sets its mark
    /// next.
    pub(super) fn signals_to_sleep_by(&self) -> u32 {
        // Acquire: pairs with [futex-signal]. A thread that clears the mark, or wakes a writer because of it, changes
        // the value that was current when the mark was set.
        let mut signals = self.signals.load(Ordering::Acquire);
        while !is_of_this_process(signals) {
            let ours = forks() | signals & ((1 << FORKS_SHIFT) - 1);
            let (success, failure) = (Ordering::Acquire, Ordering::Acquire);
            let changed = self
                .signals
                .compare_exchange(signals, ours, success, failure);
            signals = changed.map_or_else(|found| found, |_| ours);
        }
        signals
    }

    /// Whether a mark holds readers back for a writer that is no thread of this process.
    pub(super) fn is_marked_before_fork(&self, seen: State) -> bool {
        // Relaxed: a mistake does no harm beyond a wake-up.
        P::GIVE_WAY == GiveWay::ToWaitingWriters
            && seen.has_waiting_writer()
            && !is_of_this_process(self.signals.load(Ordering::Relaxed))
    }
}
