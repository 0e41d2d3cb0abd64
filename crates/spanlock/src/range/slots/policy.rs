//! When a thread keeps its grant, when it asks for more than it needs, and when the lock gets buckets.
//!
//! - A grant is *kept* if the thread asks for the same range again. A grant that is taken away before it was of use
//!   doubles the number of repetitions that the next one needs. One that was of use [`WORTH`] times resets it.
//! - A reader that asks for another range each time has nothing to repeat. After `2^`[`FIRST_RUN`] such requests it
//!   asks for its range with a shared grant of *everything*, which covers whatever it reads next. It does so only if no
//!   writer is there: it revokes no exclusive grant for it. A grant of everything that is refused, or taken away before
//!   it was of use, makes the next one come four times later.
//!
//! - A lock whose threads have looked at [`MANY`] slots for requests far apart gets *buckets*: those requests are
//!   rarely in anybody's way, and yet all slots are looked at for each. Of the requests of a thread [a few](is_sample)
//!   are considered. From then on a narrow request is listed in buckets, and looks there. A narrow range has to be
//!   repeated [`WORTH`] times before its grant is kept, since a kept grant makes requests in buckets look at all slots.
//!   In buckets, a reader asks for everything after [`MOST_REPEATS`] requests at the earliest, for the same reason.
//!
//! - As long as several threads ask for wide ranges, narrow requests look at all slots. Each [`JUDGE_EVERY`]th narrow
//!   request of a thread decides whether the next ones are listed: not, if it finds wide ranges in several slots that
//!   are counted. It votes then, too: if a lock's requests crowd in few buckets, none is listed for a while
//!   (`crowd.rs`).
//!
//! What a thread can lose by it: a grant in the way of another request costs that request one compare-exchange. As the
//! numbers double, useless grants become rare: one in [`MOST_REPEATS`] requests. A request that is listed in vain,
//! since it has to look at all slots as well, loses one atomic operation for each of its buckets, of which it has at
//! most two; that ends at the next decision.
//!
//! All numbers are the slot's owner's. They are atomic because a thread that exits may release what it holds after
//! another thread has got its record. They decide nothing about who holds what.

use super::enter::WholeGrant;
use crate::range::raw::Mode;
use crate::range::span::Span;
use prim::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// A grant that was taken again so often was worth keeping: each time saves more than it costs another thread to revoke
/// the grant once.
const WORTH: u32 = 8;

/// The most repetitions that a grant may need.
const MOST_REPEATS: u32 = 1024;

/// How many narrow requests a thread makes before it uncounts the slots that are counted and idle: an owner that comes
/// back loses by it no more than by a useless grant.
const TIDY_EVERY: u32 = prim::sized(MOST_REPEATS as usize, 2) as u32;

/// A thread decides so often whether its narrow requests are listed: for that it looks at all slots once.
pub(super) const JUDGE_EVERY: u32 = prim::sized(64, 2) as u32;

/// How many looks at slots on behalf of requests that are far apart are worth buckets: to make them costs about as much
/// as to look at as many slots as they have lines, on a large machine.
pub(super) const MANY: u32 = prim::sized(2048, 2) as u32;

/// One announcement in `2^SAMPLE_DIGITS` is considered for that: it takes as many instructions as all else that a
/// thread does before its announcement.
const SAMPLE_DIGITS: u32 = prim::sized(3, 0) as u32;

/// Two ranges are far apart if this many of their length fit between their starts. Then the ranges that are held at a
/// time are rarely in one bucket. A request that is not far from the one before outweighs this many of its thread that
/// are.
const FAR: u64 = 16;

/// `2^FIRST_RUN` requests for different ranges before the first grant of everything: enough that other readers have
/// come.
const FIRST_RUN: u8 = prim::sized(5, 0) as u8;

/// `2^LONGEST_RUN` is the longest run before a grant of everything.
const LONGEST_RUN: u8 = 16;

/// Requests for different ranges are counted.
const DIFFERENT: u32 = 1 << 31;

/// The numbers of one home slot.
#[derive(Debug)]
pub(super) struct Policy {
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
    /// How often the same range was announced in a row; or, with the flag [`DIFFERENT`], how many shared requests for
    /// different ranges came in a row.
    streak: AtomicU32,
    /// How many looks at slots for requests that are far apart do not count, since other requests were not far apart;
    /// above [`LOOKS_DIGITS`] digits, the number of digits of the longest range of those that are. Once there are
    /// buckets, how many narrow requests there were, up to [`TIDY_EVERY`], and [`UNLISTED`], if they are not listed.
    spread: AtomicU32,
    /// How many other requests those of this thread met in buckets since it decided last.
    met: AtomicU32,
}

const LOOKS_DIGITS: u32 = 16;

/// Narrow requests are not listed.
const UNLISTED: u32 = 1 << 31;

/// Whether the request after the announcement with that number, in the slot with that number, is considered for
/// buckets.
#[inline]
pub(super) fn is_sample(number: u64, slot: u32) -> bool {
    // Fibonacci hashing: no requests that recur in turn are in step with it, nor are slots in step with each other.
    let hash = number
        .wrapping_add(slot.into())
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 32;
    hash >> (32 - SAMPLE_DIGITS) == 0
}

/// What the last announcement in a home slot has to do with a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreviousAnnouncement {
    /// There is a grant, but it does not cover the request.
    pub(super) is_kept: bool,
    /// It was of the same range.
    pub(super) is_repeated: bool,
    pub(super) number: u64,
}

/// What a request adds to the looks of its lock that were for requests far apart.
pub(super) struct Looks {
    /// The number of slots looked at.
    pub(super) slots: u32,
    /// The number of digits of the length of the thread's longest range that was far from another.
    pub(super) digits: u32,
}

/// How often a range must be repeated at the least before its grant is kept.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum MinRepeats {
    /// For a request that looks at all slots.
    One = 1,
    /// For a request that looks in its buckets.
    Worth = WORTH,
}

impl MinRepeats {
    /// After how many shared requests for different ranges a reader may ask for everything. Such a grant makes requests
    /// in buckets look at all slots, so they have it as rarely as useless grants.
    #[inline]
    fn reads(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Worth => MOST_REPEATS,
        }
    }
}

/// With which grant a request is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Its range, which is not kept.
    Once,
    /// Its range.
    Keep,
    /// Everything.
    Everything,
}

impl Plan {
    #[inline]
    pub(super) fn grant(self, span: Span) -> Span {
        match self {
            Self::Once | Self::Keep => span,
            Self::Everything => Span::ALL,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            keeps: AtomicBool::new(false),
            is_wide: AtomicBool::new(false),
            enough: AtomicU8::new(0),
            long_run: AtomicU8::new(FIRST_RUN),
            granted: AtomicU32::new(0),
            streak: AtomicU32::new(0),
            spread: AtomicU32::new(0),
            met: AtomicU32::new(0),
        }
    }
}

impl Policy {
    /// Whether the release keeps the grant.
    #[inline]
    pub(super) fn keeps(&self) -> bool {
        self.keeps.load(Relaxed)
    }

    /// The request had to wait, or is one of several. Its grant is not kept.
    pub(super) fn was_blocked(&self) {
        self.keeps.store(false, Relaxed);
    }

    /// Notes a request that is about to look at `slots` slots, and the range of the one before in the same slot. If the
    /// two are far apart, the result is what that adds to the [looks](MANY) of the lock.
    #[inline]
    pub(super) fn note_spread(
        &self,
        before: (u64, u64),
        span: Span,
        slots: usize,
    ) -> Option<Looks> {
        // An announcement again, after the request was blocked, says nothing.
        if before == (span.start(), span.last()) {
            return None;
        }
        let longer = before
            .1
            .saturating_sub(before.0)
            .max(span.last() - span.start());
        // It stands for those that are not considered. At least [`FAR`] such requests make buckets: a few are chance.
        let most = (MANY as usize).div_ceil(FAR as usize);
        let slots = (slots << SAMPLE_DIGITS).min(most) as u32;
        let spread = self.spread.load(Relaxed);
        let (uncounted, digits) = (spread % (1 << LOOKS_DIGITS), spread >> LOOKS_DIGITS);
        let note = |uncounted: u32, digits| {
            self.spread
                .store(digits << LOOKS_DIGITS | uncounted.min(MANY), Relaxed);
        };
        if before.0.abs_diff(span.start()) / FAR <= longer {
            note(uncounted + FAR as u32 * slots, digits);
            return None;
        }
        let digits = digits.max(u64::BITS - longer.leading_zeros());
        note(uncounted.saturating_sub(slots), digits);
        (uncounted == 0).then_some(Looks { slots, digits })
    }

    /// Counts a narrow request, where there are buckets. Returns whether it is listed. `None`: that is to be decided.
    #[inline]
    pub(super) fn count_narrow(&self) -> Option<bool> {
        let spread = self.spread.load(Relaxed);
        let count = (spread & !UNLISTED) % TIDY_EVERY + 1;
        self.spread.store(spread & UNLISTED | count, Relaxed);
        (!count.is_multiple_of(JUDGE_EVERY)).then_some(spread & UNLISTED == 0)
    }

    /// Whether the thread that decides about that uncounts idle slots before.
    pub(super) fn is_to_tidy(&self) -> bool {
        self.spread.load(Relaxed) & !UNLISTED == TIDY_EVERY
    }

    /// Decides whether the thread's next narrow requests are listed.
    pub(super) fn list(&self, pays: bool) {
        let count = self.spread.load(Relaxed) & !UNLISTED;
        let flag = if pays { 0 } else { UNLISTED };
        self.spread.store(count | flag, Relaxed);
    }

    /// How many other requests those of this thread met in buckets since it decided last, if they were listed. Begins
    /// anew.
    pub(super) fn take_met(&self) -> Option<u32> {
        let met = self.met.load(Relaxed);
        self.met.store(0, Relaxed);
        (self.spread.load(Relaxed) & UNLISTED == 0).then_some(met)
    }

    /// Adds what a request met to what those of this thread met since it decided last. Returns the sum before and
    /// after.
    #[inline]
    pub(super) fn add_met(&self, others: u32) -> [u32; 2] {
        let before = self.met.load(Relaxed);
        self.met.store(before + others, Relaxed);
        [before, before + others]
    }

    /// The plan for a request that no grant covers.
    #[inline]
    pub(super) fn plan(
        &self,
        last: PreviousAnnouncement,
        mode: Mode,
        min_repeats: MinRepeats,
    ) -> Plan {
        if self.keeps.load(Relaxed) {
            self.judge(last);
        }
        let streak = self.streak.load(Relaxed);
        if last.is_repeated {
            let repeats = if streak & DIFFERENT == 0 {
                streak + 1
            } else {
                1
            };
            self.streak.store(repeats.min(MOST_REPEATS), Relaxed);
            if repeats >= (1 << self.enough.load(Relaxed)).max(min_repeats as u32) {
                return Plan::Keep;
            }
        } else if mode == Mode::Exclusive {
            self.streak.store(0, Relaxed);
        } else {
            let run = streak.saturating_sub(DIFFERENT) + 1;
            let enough = (1 << self.long_run.load(Relaxed)).max(min_repeats.reads());
            if run > enough {
                self.streak.store(0, Relaxed);
                return Plan::Everything;
            }
            self.streak.store(DIFFERENT | run, Relaxed);
        }
        Plan::Once
    }

    /// Draws the lesson from the last grant that was kept.
    #[cold]
    fn judge(&self, last: PreviousAnnouncement) {
        self.keeps.store(false, Relaxed);
        let hits = (last.number as u32).wrapping_sub(self.granted.load(Relaxed));
        let was_worth_it = hits >= WORTH;
        if self.is_wide.load(Relaxed) {
            if !was_worth_it && !last.is_kept {
                self.wait_longer();
            } else if was_worth_it {
                self.long_run.store(FIRST_RUN, Relaxed);
            }
        } else if was_worth_it {
            self.enough.store(0, Relaxed);
        } else if !last.is_kept {
            let more = self.enough.load(Relaxed) + 1;
            self.enough
                .store(more.min(MOST_REPEATS.ilog2() as u8), Relaxed);
        }
    }

    #[cold]
    fn wait_longer(&self) {
        let longer = self.long_run.load(Relaxed) + 2;
        self.long_run.store(longer.min(LONGEST_RUN), Relaxed);
    }

    /// The request was granted, with a grant to be kept.
    #[inline]
    pub(super) fn granted(&self, plan: Plan, whole: WholeGrant, number: u64) {
        match whole {
            WholeGrant::Allowed => {
                self.granted.store(number as u32, Relaxed);
                self.keeps.store(true, Relaxed);
                self.is_wide.store(plan == Plan::Everything, Relaxed);
            }
            // Only everything is more than was asked for.
            WholeGrant::RuledOut => self.wait_longer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        FIRST_RUN, JUDGE_EVERY, MOST_REPEATS, MinRepeats, Plan, Policy, PreviousAnnouncement,
        SAMPLE_DIGITS, TIDY_EVERY, is_sample,
    };
    use crate::range::raw::Mode;
    use crate::range::span::Span;

    /// A thread that does the same things in turn has each of them considered, about as often as the others.
    #[test]
    fn samples_are_in_step_with_nothing() {
        for turns in 1..=64 {
            for turn in 0..turns {
                let samples = (0..1 << 12).filter(|round| is_sample(turn + round * turns, 0));
                let (count, fair) = (samples.count(), 1 << (12 - SAMPLE_DIGITS));
                assert!(
                    count > fair / 2 && count < 2 * fair,
                    "{turn} of {turns}: {count}"
                );
            }
        }
    }

    /// It counts narrow requests alone: a thread that asks for a wide range after each narrow one decides, too.
    #[test]
    fn a_thread_decides_about_listing_now_and_then() {
        let policy = Policy::default();
        let (mut judged, mut tidied) = (0, 0);
        let mut pays = true;
        for _ in 0..2 * TIDY_EVERY {
            match policy.count_narrow() {
                Some(lists) => assert_eq!(lists, pays),
                None => {
                    judged += 1;
                    tidied += u32::from(policy.is_to_tidy());
                    pays = !pays;
                    policy.list(pays);
                }
            }
        }
        assert_eq!((judged, tidied), (2 * TIDY_EVERY / JUDGE_EVERY, 2));
    }

    /// What a thread's request adds to the looks of its lock, after a request at that place.
    fn looks(policy: &Policy, before: u64, start: u64) -> Option<(u32, u32)> {
        let span = Span::of(start..start + 1000).expect("it has positions");
        let looks = policy.note_spread((before, before + 999), span, 40)?;
        Some((looks.slots, looks.digits))
    }

    /// Each request that is far from the one before counts for the lock, but for so many after one that is not.
    #[test]
    fn a_request_that_is_not_far_makes_up_for_others() {
        let policy = Policy::default();
        let (near, far) = (1000, 1 << 40);
        let first = looks(&policy, 0, far);
        assert!(first.is_some_and(|(slots, digits)| slots > 0 && digits == 10));
        assert_eq!(looks(&policy, far, far), None, "the same again");
        assert_eq!(looks(&policy, far, far), None, "says nothing");
        assert_eq!(looks(&policy, 0, far), first);
        assert_eq!(looks(&policy, 0, near), None);
        let mut made_up = 0;
        while looks(&policy, 0, far).is_none() {
            made_up += 1;
        }
        assert_eq!(made_up, super::FAR);
        assert_eq!(looks(&policy, 0, far), first);
    }

    /// Long ranges of one thread do not make the buckets of others long.
    #[test]
    fn a_thread_notes_the_longest_of_its_own_ranges() {
        let (long, short) = (Policy::default(), Policy::default());
        let digits = |policy: &Policy, length: u64| {
            let span = Span::of(1 << 50..(1 << 50) + length).expect("it has positions");
            Some(policy.note_spread((0, 999), span, 40)?.digits)
        };
        assert_eq!(digits(&long, 1 << 40), Some(40));
        assert_eq!(digits(&long, 1000), Some(40));
        assert_eq!(digits(&short, 1000), Some(10));
    }

    /// Readers in buckets ask for everything as rarely as a thread may keep a useless grant.
    #[test]
    fn readers_in_buckets_rarely_ask_for_everything() {
        let run = |min_repeats| {
            let policy = Policy::default();
            let last = PreviousAnnouncement {
                is_kept: false,
                is_repeated: false,
                number: 0,
            };
            let is_once = |_: &u32| policy.plan(last, Mode::Shared, min_repeats) == Plan::Once;
            (0..).take_while(is_once).count()
        };
        assert_eq!(run(MinRepeats::One), 1 << FIRST_RUN);
        assert_eq!(run(MinRepeats::Worth), MOST_REPEATS as usize);
    }
}
