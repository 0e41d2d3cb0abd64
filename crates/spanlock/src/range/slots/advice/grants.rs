//! When a thread keeps its grant, and when it asks for more than it needs.
//!
//! - A grant is *kept* if the thread asks for the same range again. A grant that is taken away before it was of use
//!   doubles the number of repetitions that the next one needs. [`WORTHWHILE_HITS`] uses reset it.
//! - A reader that asks for another range each time has nothing to repeat. After [`DIFFERENT_RANGES`] such requests it
//!   asks for its range with a shared grant of *everything*, which covers whatever it reads next. It does so only if no
//!   writer is there: it revokes no exclusive grant for it. A grant of everything that is refused, or taken away before
//!   it was of use, doubles the number of requests before the next one.
//!
//! A grant in the way of another request costs that request one compare-exchange. As the numbers double, useless grants
//! become rare.

use super::{DIFFERENT_RANGES, LISTED_REPEATS, MOST_REPEATS, Plan, WORTHWHILE_HITS};
use crate::range::mode::Mode;
use prim::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// Requests for different ranges are counted.
const DIFFERENT: u32 = 1 << 31;

/// What a thread has learned about its grants.
#[derive(Debug)]
pub(in super::super) struct Grants {
    /// Whether the release keeps the grant.
    keeps: AtomicBool,
    /// Whether the grant is one of everything.
    is_wide: AtomicBool,
    /// How many repetitions are enough, and which run is long: the numbers' digits.
    enough: AtomicU8,
    long_run: AtomicU8,
    /// The number of the announcement with which the grant came, modulo `2^32`. Each time that the grant is taken again
    /// adds one to it.
    granted: AtomicU32,
    /// How often one range was announced in a row; or, with the flag [`DIFFERENT`], how many shared requests for
    /// different ranges came in a row.
    streak: AtomicU32,
}

/// What the last announcement in a home slot has to do with a request.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Previous {
    /// There is a grant, but it does not cover the request.
    pub(in super::super) is_kept: bool,
    /// It was of the same range.
    pub(in super::super) is_repeated: bool,
    pub(in super::super) number: u64,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            keeps: AtomicBool::new(false),
            is_wide: AtomicBool::new(false),
            enough: AtomicU8::new(0),
            long_run: AtomicU8::new(Self::FIRST_RUN),
            granted: AtomicU32::new(0),
            streak: AtomicU32::new(0),
        }
    }
}

impl Grants {
    const FIRST_RUN: u8 = DIFFERENT_RANGES.ilog2() as u8;

    /// Whether the release keeps the grant.
    #[inline]
    pub(in super::super) fn keeps(&self) -> bool {
        self.keeps.load(Relaxed)
    }

    /// The grant of the request that is about to be announced is not kept.
    pub(in super::super) fn drop_next(&self) {
        self.keeps.store(false, Relaxed);
    }

    /// The plan for a request that no grant covers, given the one for a request whose grant is not kept.
    #[inline]
    pub(in super::super) fn plan(&self, otherwise: Plan, last: Previous, mode: Mode) -> Plan {
        if self.keeps.load(Relaxed) {
            self.judge(last);
        }
        let least = match otherwise {
            Plan::Listed => LISTED_REPEATS,
            _ => 1,
        };
        let streak = self.streak.load(Relaxed);
        if last.is_repeated {
            let repeats = if streak & DIFFERENT == 0 {
                streak + 1
            } else {
                1
            };
            self.streak.store(repeats.min(MOST_REPEATS), Relaxed);
            if repeats >= (1 << self.enough.load(Relaxed)).max(least) {
                return Plan::Keep;
            }
        } else if mode == Mode::Exclusive {
            self.streak.store(0, Relaxed);
        } else {
            let run = streak.saturating_sub(DIFFERENT) + 1;
            if run > 1 << self.long_run.load(Relaxed) {
                self.streak.store(0, Relaxed);
                return Plan::Everything;
            }
            self.streak.store(DIFFERENT | run, Relaxed);
        }
        otherwise
    }

    /// Draws the lesson from the last grant that was kept.
    #[cold]
    fn judge(&self, last: Previous) {
        self.keeps.store(false, Relaxed);
        let hits = (last.number as u32).wrapping_sub(self.granted.load(Relaxed));
        let was_worth_it = hits >= WORTHWHILE_HITS;
        let (number, first) = match self.is_wide.load(Relaxed) {
            true => (&self.long_run, Self::FIRST_RUN),
            false => (&self.enough, 0),
        };
        if was_worth_it {
            number.store(first, Relaxed);
        } else if !last.is_kept {
            Self::double(number);
        }
    }

    /// Doubles a number, of which these are the digits.
    #[cold]
    fn double(digits: &AtomicU8) {
        let more = digits.load(Relaxed) + 1;
        digits.store(more.min(MOST_REPEATS.ilog2() as u8), Relaxed);
    }

    /// The request was granted by the announcement with that number, and its grant is to be kept.
    #[inline]
    pub(in super::super) fn granted(&self, plan: Plan, number: u64) {
        self.granted.store(number as u32, Relaxed);
        self.keeps.store(true, Relaxed);
        self.is_wide.store(plan == Plan::Everything, Relaxed);
    }

    /// The request was granted, but not all of the grant of everything that it asked for.
    pub(in super::super) fn was_refused(&self) {
        self.keeps.store(false, Relaxed);
        Self::double(&self.long_run);
    }
}

#[cfg(test)]
mod tests {
    use super::{DIFFERENT_RANGES, Grants, Plan, Previous};
    use crate::range::mode::Mode;

    /// How many shared requests for different ranges there are before a thread asks for everything.
    fn run(otherwise: Plan) -> usize {
        let grants = Grants::default();
        let last = Previous {
            is_kept: false,
            is_repeated: false,
            number: 0,
        };
        let is_once = |_: &u32| grants.plan(otherwise, last, Mode::Shared) == otherwise;
        (0..).take_while(is_once).count()
    }

    /// So a lock of readers alone has a grant of everything for each, although there are buckets.
    #[test]
    fn readers_of_different_ranges_ask_for_everything() {
        assert_eq!(run(Plan::Once), DIFFERENT_RANGES as usize);
        assert_eq!(run(Plan::Listed), DIFFERENT_RANGES as usize);
    }
}
