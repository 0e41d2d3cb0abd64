//! W1 and W2 (P4 §4.3.1): threads write ranges of shared memory, one at a time or in batches held together.
//!
//! From the thesis: all ranges are exclusive, and each is written by a `memset` of 1 KB. In W1 a thread "locks a
//! single memory range, performs a modification […] and immediately releases the lock before proceeding to the next
//! range in its queue"; in W2 "a series of memory ranges (typically 16) are locked, modified […], and then unlocked
//! in a single batch". It counts ranges locked and unlocked per second (§4.3.3). So an operation here is one range.
//!
//! The thesis does not say where the ranges are, how large the memory is, whether each range is written when it is
//! locked or all are when all are locked, nor how threads avoid to wait for each other in a circle: its lock can only
//! try. Here the ranges are blocks of 1 KB of an area of [`RANGES`] blocks, unless told otherwise; each batch is drawn
//! at random without repetition and acquired in ascending order, so that no circle of waiting threads closes; and
//! once all are held each is written. W1 is a batch of one.
//!
//! Every thread writes a pattern of its own and looks at all of it once more before it releases: a word of somebody
//! else's means that two holders met. In the end no block may hold words of two threads.

mod area;
mod record;

pub use area::{Area, RANGE_BYTES};
pub use record::Record;

use crate::counters::Event;
use crate::crew::{self, Phase, Schedule, Signal, Throughput};
use crate::registry::Exclusion;
use crate::setting::Resource;
use crate::target::Target;
use fastrand::Rng;
use std::fmt;

/// Ranges in the area: 4 MiB, so that threads that hold 16 each seldom meet.
pub const RANGES: usize = 4096;

/// The largest area.
pub const MAX_RANGES: usize = 1 << 20;

/// The largest batch.
pub const MAX_HOLD: usize = 1024;

/// One run of the benchmark, but for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Ranges held together: from 1 to [`MAX_HOLD`] and to `ranges`.
    pub hold: usize,
    /// Ranges in the area: up to [`MAX_RANGES`].
    pub ranges: usize,
    /// Threads.
    pub threads: usize,
    /// How long it lasts.
    pub schedule: Schedule,
    /// What is counted meanwhile.
    pub events: &'static [Event],
    /// Random numbers follow from this, from `repeat` and from the thread's number.
    pub seed: u64,
    /// Which of several equal runs it is, from 0.
    pub repeat: u32,
}

impl Trial {
    /// The area, in bytes.
    #[must_use]
    pub fn resource(&self) -> Resource {
        Resource {
            units: (self.ranges * RANGE_BYTES) as u64,
            grain: RANGE_BYTES as u64,
        }
    }
}

/// What a run yielded.
#[derive(Debug)]
pub struct Outcome {
    /// The ranges that were locked, written and released in the measured time.
    pub work: Throughput,
    /// Ranges that somebody else wrote while a thread held them, and those that held words of two threads in the end.
    pub torn: u64,
}

impl Outcome {
    /// Holds the lock to what it claims.
    ///
    /// # Errors
    /// When a range was torn although the lock promises exclusion.
    pub fn check(&self, exclusion: Exclusion) -> Result<(), Torn> {
        if self.torn == 0 || exclusion == Exclusion::None {
            Ok(())
        } else {
            Err(Torn(self.torn))
        }
    }
}

/// A lock let holders meet that exclude each other: so many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn(pub u64);

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(torn) = self;
        write!(
            f,
            "{torn} times a held range had foreign bytes in it: holders met that exclude each other"
        )
    }
}

impl std::error::Error for Torn {}

/// Runs a trial on a lock that can hold as many ranges as the trial asks for.
///
/// # Panics
/// When the trial's numbers are not within what they say of themselves.
pub fn run<T: Target>(lock: &T, trial: &Trial) -> Outcome {
    assert!((1..=MAX_RANGES).contains(&trial.ranges));
    assert!((1..=MAX_HOLD.min(trial.ranges)).contains(&trial.hold));
    let area = Area::new(trial.ranges);
    let run = crew::run(
        trial.threads,
        trial.schedule,
        trial.events,
        |thread, signal| work(lock, &area, trial, thread, signal),
    );
    let torn_while_held: u64 = run.workers.iter().map(|tally| tally.torn).sum();
    Outcome {
        work: Throughput::of(&run, |tally| tally.ops),
        torn: torn_while_held + area.mixed(),
    }
}

/// What one thread did.
#[derive(Default)]
struct Tally {
    /// Ranges in the measured time.
    ops: u64,
    /// Those found torn, from start to end.
    torn: u64,
}

fn work<T: Target>(lock: &T, area: &Area, trial: &Trial, thread: usize, signal: &Signal) -> Tally {
    let mut rng = crew::rng(trial.seed, trial.repeat, thread);
    let mut tally = Tally::default();
    let mut batch = Vec::with_capacity(trial.hold);
    let mut held = Vec::with_capacity(trial.hold);
    loop {
        let phase = signal.phase();
        if phase == Phase::Stop {
            return tally;
        }
        draw(&mut rng, trial.hold, trial.ranges, &mut batch);
        held.extend(
            batch
                .iter()
                .map(|&range| lock.write(Area::positions(range))),
        );
        for &range in &batch {
            area.fill(range, thread);
        }
        let torn = batch
            .iter()
            .filter(|&&range| !area.is_filled(range, thread));
        tally.torn += torn.count() as u64;
        held.clear();
        if phase == Phase::Measured {
            tally.ops += trial.hold as u64;
        }
    }
}

/// Replaces `batch` by random ranges, all different, in ascending order.
pub(crate) fn draw(rng: &mut Rng, hold: usize, ranges: usize, batch: &mut Vec<usize>) {
    batch.clear();
    // Floyd's algorithm: each set of ranges is as likely as any other.
    for last in ranges - hold..ranges {
        let range = rng.usize(..=last);
        let taken = batch.contains(&range);
        batch.push(if taken { last } else { range });
    }
    batch.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn batches_ascend_without_repetition_and_reach_every_range() {
        for (hold, ranges) in [(1, 1), (1, 9), (3, 9), (8, 9), (9, 9)] {
            let mut rng = fastrand::Rng::with_seed(3);
            let mut seen = vec![0; ranges];
            let mut batch = Vec::new();
            for _ in 0..500 {
                draw(&mut rng, hold, ranges, &mut batch);
                assert_eq!(batch.len(), hold);
                assert!(batch.is_sorted_by(|a, b| a < b), "{batch:?}");
                batch.iter().for_each(|&range| seen[range] += 1);
            }
            assert!(seen.iter().all(|&times| times > 0), "{seen:?}");
        }
    }
}
