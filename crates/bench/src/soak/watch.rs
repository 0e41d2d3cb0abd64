//! Sees threads that get nowhere.

use std::time::{Duration, Instant};

/// Observes numbers that threads raise as they make progress.
#[derive(Debug)]
pub struct Watch {
    limit: Duration,
    /// For each thread, its number and since when it is that.
    seen: Vec<(u64, Instant)>,
}

impl Watch {
    /// The number of a thread that is done.
    pub const DONE: u64 = u64::MAX;

    /// Of so many threads, none of which may get nowhere for longer than `limit`.
    #[must_use]
    pub fn new(threads: usize, limit: Duration, now: Instant) -> Self {
        Self {
            limit,
            seen: vec![(0, now); threads],
        }
    }

    /// A thread whose number has stayed the same for too long, and how long.
    pub fn stuck(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
        now: Instant,
    ) -> Option<(usize, Duration)> {
        for (seen, number) in self.seen.iter_mut().zip(numbers) {
            if seen.0 != number {
                *seen = (number, now);
            }
        }
        self.seen.iter().enumerate().find_map(|(thread, seen)| {
            let time = now.saturating_duration_since(seen.1);
            (seen.0 != Self::DONE && time > self.limit).then_some((thread, time))
        })
    }
}
