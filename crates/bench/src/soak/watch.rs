//! Sees threads that get nowhere.

use std::time::{Duration, Instant};

/// The number of a thread that is done.
pub(super) const DONE: u64 = u64::MAX;

/// Observes numbers that threads raise as they make progress.
#[derive(Debug)]
pub struct Watch {
    limit: Duration,
    /// For each thread, its number and since when it is that.
    seen: Vec<(u64, Instant)>,
}

impl Watch {
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
            (seen.0 != DONE && time > self.limit).then_some((thread, time))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DONE, Duration, Instant, Watch};

    #[test]
    fn a_thread_without_progress_is_named_unless_it_is_done() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(3, Duration::from_secs(30), start);
        assert_eq!(watch.stuck([1, 1, 1], at(1)), None);
        assert_eq!(watch.stuck([2, 1, DONE], at(20)), None);
        assert_eq!(watch.stuck([3, 1, DONE], at(31)), None);
        let stuck = Some((1, Duration::from_secs(31)));
        assert_eq!(watch.stuck([4, 1, DONE], at(32)), stuck);
        assert_eq!(watch.stuck([4, 2, DONE], at(33)), None, "it got on");
        let stuck = Some((0, Duration::from_secs(31)));
        assert_eq!(watch.stuck([4, 2, DONE], at(63)), stuck);
        let mut never_began = Watch::new(1, Duration::from_secs(30), start);
        assert!(never_began.stuck([0], at(31)).is_some());
    }
}
