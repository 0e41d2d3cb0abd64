//! W1 and W2 (P4 §4.3.1): threads write ranges of shared memory, one at a time or in batches held together.
//!
//! From the thesis: all ranges are exclusive, and each is written by a `memset` of 1 KB. In W1 a thread "locks a
//! single memory range, performs a modification […] and immediately releases the lock before proceeding to the next
//! range in its queue"; in W2 "a series of memory ranges (typically 16) are locked, modified […], and then unlocked
//! in a single batch". It counts ranges locked and unlocked per second (§4.3.3). So an operation here is one range.
//!
//! The thesis does not say where the ranges are, how large the memory is, whether each range is written when it is
//! locked or all are when all are locked, nor how threads avoid to wait for each other in a circle: its lock can only
//! try. Here the ranges are blocks of 1 KB of an area of 4096 blocks,
//! unless users choose otherwise; each batch is drawn at random without repetition and acquired in ascending order, so
//! that no circle of waiting threads closes; and once all are held each is written. W1 is a batch of one.
//!
//! Every thread writes a pattern of its own and reads all of it once more before it releases. A word of another
//! thread's means that two holders met. In the end no block may hold words of two threads.

mod area;

pub use area::Area;

use crate::crew::{self, Keeper, Meter, Timekeeper};
use crate::target::AnyLock;
use crate::workload::{Makes, OnRanges, Workload};
use fastrand::Rng;
use prim::clock::Duration;
use prim::cost;
use serde::{Deserialize, Serialize};
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Found, Outcome, Tally};
use spanlock_records::trial::setting::Resource;
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// Bytes in a range (P4 §4.3.1: "for each ranges we will write 1KB").
pub const RANGE_BYTES: usize = 1024;

/// The largest area.
pub const MAX_RANGES: usize = 1 << 20;

/// The largest batch.
pub const MAX_HOLD: usize = 1024;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Ranges held together: from 1 to [`MAX_HOLD`] and to `ranges`.
    pub hold: usize,
    /// Ranges in the area: up to [`MAX_RANGES`].
    pub ranges: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hold {
            1 => f.write_str("W1, ranges held one at a time"),
            hold => write!(f, "W2, {hold} ranges held together"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "batch";
    const KIND: Kind = Kind::Ranges;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "W1 and W2: threads write 1 KB ranges, held one at a time or in batches";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::whole(
            "hold",
            1..=MAX_HOLD,
            "1,16",
            "Ranges held together: 1 is W1, 16 is W2",
        ),
        Argument::whole(
            "ranges",
            1..=MAX_RANGES,
            "4096",
            "Ranges in the memory that is written, 1 KB each",
        ),
    ];
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);

    fn refused(trial: &Trial) -> Option<String> {
        let Self { hold, ranges } = trial.load;
        (hold > ranges)
            .then(|| format!("--hold {hold} is more than there are ranges: --ranges is {ranges}"))
    }
}

/// One run.
type Trial = spanlock_records::trial::run::Trial<Load>;

impl OnRanges for Load {
    fn run(
        lock: &dyn Makes,
        trial: &Trial,
        meter: &mut dyn Meter,
    ) -> Result<Outcome, &'static str> {
        let Self { hold, ranges } = trial.load;
        let resource = Resource {
            units: (ranges * RANGE_BYTES) as u64,
            grain: RANGE_BYTES as u64,
        };
        if let Some(why) = lock.holds_one_because(resource).filter(|_| hold > 1) {
            return Err(why);
        }
        let (lock, area) = (&*lock.make(resource), Area::new(ranges));
        Ok(crew::tallied(
            trial,
            meter,
            |thread, rng, keeper: &Keeper, tally| {
                work(lock, &area, trial, thread, rng, keeper, tally);
            },
            |all| Found::Ranges(all.torn + area.mixed()),
        ))
    }
}

fn work(
    lock: &dyn AnyLock,
    area: &Area,
    trial: &Trial,
    thread: usize,
    mut rng: Rng,
    keeper: &impl Timekeeper,
    tally: &mut Tally,
) {
    let Load { hold, ranges } = trial.load;
    let mut batch = Vec::with_capacity(hold);
    let mut held = Vec::with_capacity(hold);
    keeper.until_stop(|phase| {
        draw(&mut rng, hold, ranges, &mut batch);
        cost::work(DRAW * hold as u64);
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
        tally.writes += hold as u64 * phase.counts();
    });
}

/// Cycles of drawing a range on a simulated machine. An assumption: a few instructions.
const DRAW: u64 = 20;

/// Replaces `batch` by random ranges, all different, in ascending order.
fn draw(rng: &mut Rng, hold: usize, ranges: usize, batch: &mut Vec<usize>) {
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
