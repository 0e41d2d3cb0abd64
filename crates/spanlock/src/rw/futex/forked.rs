//! Marks that outlive their writers.
//!
//! A forked child has one thread, and marks of writers that waited in its parent. Readers would hold back for those until
//! one has been inside. So a writer, before it marks the word, has the upper bits of what it sleeps by tell how often
//! the process was forked so far; and a reader that is in a mark's way looks whether that is still so, and else takes
//! the marks off as in rule 4.
//!
//! The rest of that word goes on counting. That it runs over into the bits above, once in 2^24 wake-ups, makes a mark seem to be
//! a dead writer's: it is taken off, and its writer woken, for nothing. So does a reader that does not see what a
//! writer wrote there before its mark.

use super::{FutexRwLock, GiveWay, Preference, State};
use prim::atomic::Ordering;
use prim::thread;

/// Below are the bits that count.
const FORKS_SHIFT: u32 = 24;

/// What the upper bits are to be in this process.
fn forks() -> u32 {
    thread::forks() << FORKS_SHIFT
}

fn is_of_this_process(signals: u32) -> bool {
    (signals ^ forks()) >> FORKS_SHIFT == 0
}

impl<P: Preference> FutexRwLock<P> {
    /// What a writer sleeps by that marks the word next.
    pub(super) fn signals_to_sleep_by(&self) -> u32 {
        // Acquire: pairs with the Release in `signal`. A count that is current when the mark is set is changed by whoever
        // takes the mark off or wakes for it.
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

    /// Whether readers give way to a writer that no thread of this process is.
    pub(super) fn is_marked_by_the_dead(&self, seen: State) -> bool {
        // Relaxed: to be wrong does no harm.
        P::GIVE_WAY == GiveWay::ToWaitingWriters
            && seen.has_waiting_writer()
            && !is_of_this_process(self.signals.load(Ordering::Relaxed))
    }
}
