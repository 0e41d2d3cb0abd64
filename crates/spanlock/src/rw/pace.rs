//! How fast a lock goes from biased to revoked and back: one word.

use super::policy::Tuning;
use super::visible::LockAddress;
use prim::atomic::{AtomicUsize, Ordering};
use prim::clock::{self, Duration};
use prim::thread;
use std::cell::Cell;

/// The unit in which times are kept.
const UNIT: u64 = 1 << 12;

const TIME_BITS: u32 = 26;
const TIMES: u32 = (1 << TIME_BITS) - 1;

/// No inhibition is longer: about a second. So a word that is looked at after ever so long, when its time has
/// wrapped, is wrong for that long at most.
const LONGEST: u64 = 1 << 18;

/// For how long a bias is put off that cannot be set: about a millisecond.
const PUT_OFF: u64 = 1 << 8;

const DOUBLING_BITS: u32 = 3;

/// Inhibitions are doubled so often at most.
const MOST_DOUBLINGS: u32 = (1 << DOUBLING_BITS) - 1;

/// Three bits are left.
const DETOUR_SHIFT: u32 = TIME_BITS + DOUBLING_BITS;

/// While there is no bias: until when none is to be set. While there is: since when. In units, of which there are
/// 2^26 before they start over (four and a half minutes). And how often inhibitions are to be doubled: once more for each
/// bias that did not live long enough to pay, and for each writer that gave up, so that biases that do not pay get rare;
/// and once less for each that did, and once less again for each time that it lived twice as long. And how long the
/// [`Detour`]s of readers are.
///
/// All zero: no inhibition, and no detours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace(pub(super) u32);

/// What a revocation leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inhibition {
    pub(super) pace: Pace,
    pub(super) lasts: Duration,
}

fn units(nanoseconds: u64) -> u32 {
    (nanoseconds / UNIT) as u32 & TIMES
}

impl Pace {
    fn new(time: u32, doublings: u32, detour: Detour) -> Self {
        Self(detour.0 << DETOUR_SHIFT | doublings << TIME_BITS | time & TIMES)
    }

    fn time(self) -> u32 {
        self.0 & TIMES
    }

    fn doublings(self) -> u32 {
        self.0 >> TIME_BITS & MOST_DOUBLINGS
    }

    /// Without a bias: whether one may be set now.
    pub(super) fn permits(self, now: u64) -> bool {
        let left = self.time().wrapping_sub(units(now)) & TIMES;
        self.time() == 0 || left == 0 || u64::from(left) > LONGEST
    }

    /// The bias is set.
    pub(super) fn biased(self, now: u64) -> Self {
        Self::new(units(now), self.doublings(), self.detour())
    }

    /// None can be set now: not to be looked for again at once.
    pub(super) fn put_off(self, now: u64) -> Self {
        let until = units(now).wrapping_add(PUT_OFF as u32);
        Self::new(until, self.doublings(), self.detour())
    }

    /// A writer began to revoke the bias and gave up: readers had to take the slow path in vain.
    pub(super) fn wasted(self) -> Self {
        Self::new(self.time(), self.more_doublings(), self.detour())
    }

    /// That of a lock that is never biased.
    pub(super) const NEVER: Self = Self(Detour::IDLE.0 << DETOUR_SHIFT);

    fn detour(self) -> Detour {
        Detour(self.0 >> DETOUR_SHIFT)
    }

    fn more_doublings(self) -> u32 {
        (self.doublings() + 1).min(MOST_DOUBLINGS)
    }

    /// The bias was revoked, which took from `start` to `now`.
    pub(super) fn revoked(self, start: u64, now: u64, tuning: Tuning) -> Inhibition {
        let took = now.saturating_sub(start);
        let times = u64::from(tuning.bound) << self.doublings(); // Of 32 bits and 7 more at most.
        let inhibited = took.saturating_mul(times);
        // One more than a part begun, because now is a part begun itself.
        let lasts = (inhibited.div_ceil(UNIT) + 1).min(LONGEST);
        let lived = u64::from(units(start).wrapping_sub(self.time()) & TIMES);
        let pays = took.saturating_mul(PAYS_ON_ONE.div_ceil(processors() as u64));
        let pays = pays.div_ceil(UNIT).max(1);
        let doublings = match (lived / pays).checked_ilog2() {
            None => self.more_doublings(),
            Some(power) => self.doublings().saturating_sub(1 + power),
        };
        let until = units(now).wrapping_add(lasts as u32);
        let detour = Detour::within(lasts * UNIT, processors());
        Inhibition {
            pace: Self::new(until, doublings, detour),
            lasts: Duration::from_nanos(lasts * UNIT),
        }
    }
}

/// A bias pays that lives so many times as long as its revocation took, on one processor. On more less is enough, since
/// more readers go on at a time; but as long it should live on any.
const PAYS_ON_ONE: u64 = 4;

/// How many slow reads, not counting detours, a thread makes for each that considers to set a bias: the look at the clock
/// costs as much as a read.
const CONSIDERED: usize = 16;

prim::local! {
    static READS: Cell<u32> = Cell::new(0);
}

/// Whether this slow read is one that considers to set a bias. At random, lest locks used in turn fall in step.
#[inline]
pub(super) fn is_considered() -> bool {
    READS.with(|reads| {
        // A linear congruential generator (Numerical Recipes'), whose high bits are good enough.
        let next = reads
            .get()
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        reads.set(next);
        (next >> 16).is_multiple_of(prim::stock(CONSIDERED, 1) as u32)
    })
}

/// How many reads of a lock a thread makes by the slow path without a look at its word, after one that had to: for `n` they
/// are 2^n - 1. The look fetches a line that the next step takes from the others anyway, so it costs as much as
/// that. But a detour while there is a bias is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Detour(u32);

impl Detour {
    /// Fifteen reads: then the look is a small part of the cost.
    const LONG: Self = Self(4);

    const LONGEST: Self = Self(6);

    /// Where no look ever finds a bias: 127.
    const IDLE: Self = Self(7);

    /// As long as the inhibition allows: detours begin together and are in each other's way, so each takes as many times
    /// longer as there are processors, and keeps as many from scaling. Beyond what is long, twice as many reads only where
    /// an inhibition is sixteen times as long: few biases are missed then.
    fn within(nanoseconds: u64, processors: usize) -> Self {
        let processors = processors as u64;
        let reads = nanoseconds / (NANOSECONDS_INHIBITED_PER_READ * processors * processors);
        let power = (reads + 1).ilog2();
        let beyond = power.saturating_sub(Self::LONG.0) / 4;
        Self((power.min(Self::LONG.0) + beyond).min(Self::LONGEST.0))
    }

    fn reads(self) -> usize {
        (1 << self.0) - 1
    }
}

/// A read on a detour takes some fifty: detours are to take less than half of what one processor is inhibited.
const NANOSECONDS_INHIBITED_PER_READ: u64 = 125;

prim::global! {
    static PROCESSORS: AtomicUsize = AtomicUsize::new(0);
}

fn processors() -> usize {
    // Relaxed: everybody would ask for the same.
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => {
            let processors = thread::processors().max(1);
            PROCESSORS.store(processors, Ordering::Relaxed);
            processors
        }
        known => known,
    }
}

/// What a thread is to read without a look.
#[derive(Debug)]
struct Ahead {
    /// The lock, while reads are left.
    of: Cell<Option<LockAddress>>,
    left: Cell<usize>,
}

prim::local! {
    static AHEAD: Ahead = Ahead { of: Cell::new(None), left: Cell::new(0) };
}

/// Whether this read of a lock goes by the slow path unseen.
#[inline]
pub(super) fn is_on_detour(lock: LockAddress) -> bool {
    AHEAD.with(|ahead| ahead.of.get() == Some(lock))
}

/// Such a read has got in, or given up. Not before: an atomic operation waits for the stores before it, and while it does
/// the lock is free for others.
#[inline]
pub(super) fn go_on() {
    AHEAD.with(|ahead| match ahead.left.get() {
        // None, where a signal handler began another meanwhile, or went this one to its end.
        0 | 1 => ahead.of.set(None),
        left => ahead.left.set(left - 1),
    });
}

/// The next reads of the lock by this thread will be.
#[inline]
pub(super) fn begin_detour(lock: LockAddress, pace: Pace) {
    let detour = prim::stock(pace.detour().reads(), 0);
    AHEAD.with(|ahead| {
        ahead.left.set(detour);
        ahead.of.set((detour > 0).then_some(lock));
    });
}

/// They will not: the lock is gone. Another thread that was on its way goes it to the end.
#[inline]
pub(super) fn end_detour_of(lock: LockAddress) {
    AHEAD.with(|ahead| {
        if ahead.of.get() == Some(lock) {
            ahead.of.set(None);
        }
    });
}

/// The time now.
pub(super) fn now() -> u64 {
    clock::nanoseconds()
}

#[cfg(test)]
mod tests {
    use super::{Detour, Inhibition, LONGEST, MOST_DOUBLINGS, PUT_OFF, Pace, TIMES, Tuning, UNIT};
    use prim::clock::Duration;

    const TUNING: Tuning = Tuning::STANDARD;

    fn revoke(pace: Pace, start: u64, took: u64) -> Inhibition {
        pace.revoked(start, start + took, TUNING)
    }

    #[test]
    fn what_is_put_off_is_permitted_later() {
        let now = 7 * UNIT;
        let pace = Pace(0).put_off(now);
        assert!(!pace.permits(now));
        assert!(pace.permits(now + (PUT_OFF + 1) * UNIT));
        assert_eq!(pace.doublings(), 0);
    }

    #[test]
    fn a_new_lock_is_not_inhibited() {
        let wrapped = (u64::from(TIMES) + 1) * UNIT;
        for now in [
            0,
            1,
            UNIT,
            7 * UNIT,
            LONGEST * UNIT,
            wrapped - UNIT,
            wrapped,
        ] {
            assert!(Pace(0).permits(now));
        }
    }

    #[test]
    fn a_revocation_inhibits_at_least_so_many_times_as_long_as_it_took() {
        for took in [0, 1, 100, UNIT - 1, UNIT, 10 * UNIT + 1] {
            for start in [0, 5, UNIT - 1, 1000 * UNIT + 17] {
                let since = Pace(0).biased(start);
                let Inhibition { pace, lasts } = revoke(since, start, took);
                let bound = took * u64::from(TUNING.bound);
                assert!(lasts >= Duration::from_nanos(bound));
                assert!(!pace.permits(start + took + bound));
                assert!(pace.permits(start + took + lasts.as_nanos() as u64));
            }
        }
    }

    #[test]
    fn biases_that_do_not_pay_get_rare_and_those_that_pay_less_so() {
        let mut pace = Pace(0);
        let mut now = 0;
        let mut before = Duration::ZERO;
        for round in 0..=MOST_DOUBLINGS {
            let inhibition = revoke(pace.biased(now), now, UNIT);
            assert!(inhibition.lasts > before, "round {round}");
            before = inhibition.lasts;
            pace = inhibition.pace;
            now += UNIT + inhibition.lasts.as_nanos() as u64;
            assert!(pace.permits(now));
        }
        let paid = revoke(pace.biased(now), now + LONGEST * UNIT, UNIT);
        let after = revoke(paid.pace.biased(now), now, UNIT);
        assert!(after.lasts < before);
    }

    #[test]
    fn the_longer_a_bias_lives_the_more_doublings_it_takes_back() {
        let most = Pace::new(0, MOST_DOUBLINGS, Detour(0));
        let after = |lived: u64| {
            let now = UNIT + lived * UNIT;
            revoke(most.biased(UNIT), now, UNIT).pace.doublings()
        };
        let lives = [0, 4, 8, 16, 32, 1 << 20].map(after);
        assert_eq!(lives[0], MOST_DOUBLINGS);
        assert!(lives.windows(2).all(|pair| pair[1] < pair[0]), "{lives:?}");
        assert_eq!(*lives.last().unwrap(), 0);
    }

    #[test]
    fn writers_who_give_up_make_the_next_inhibition_longer() {
        let once = Pace(0).biased(UNIT);
        let mut before = Duration::ZERO;
        for pace in std::iter::successors(Some(once), |pace| Some(pace.wasted())).take(8) {
            let lasts = revoke(pace, UNIT, UNIT).lasts;
            assert!(lasts > before);
            before = lasts;
        }
        let most = (0..100).fold(once, |pace, _| pace.wasted());
        assert_eq!(revoke(most, UNIT, UNIT).lasts, before);
        assert!(most.permits(UNIT) && most.time() == once.time());
    }

    #[test]
    fn detours_are_short_where_inhibitions_are_or_machines_large() {
        let mut before = 0;
        for inhibition in (0..40).map(|power| 1 << power) {
            let on = |processors| Detour::within(inhibition, processors).reads();
            assert!((before..=63).contains(&on(2)), "{inhibition}");
            before = on(2);
            for processors in [2, 4, 16, 64, 256] {
                // All processors while all that are on one go one after the other.
                let lost = on(processors) * 50 * processors * processors;
                assert!(lost as u64 * 2 <= inhibition, "{processors}, {inhibition}");
                assert!(on(processors) >= on(2 * processors));
            }
        }
        assert_eq!(before, 63);
        assert_eq!(Detour::LONG.reads(), 15);
        assert_eq!(Detour::within(3 * UNIT, 2), Detour::LONG);
        assert_eq!(Detour::within(u64::MAX, 1), Detour::LONGEST);
    }

    #[test]
    fn a_detour_stays_as_long_until_the_next_revocation() {
        assert_eq!(Pace(0).detour().reads(), 0);
        assert_eq!(Pace::NEVER.detour(), Detour::IDLE);
        for detour in [Detour(0), Detour::LONGEST] {
            let pace = Pace::new(1, 5, detour);
            assert_eq!(
                (pace.time(), pace.doublings(), pace.detour()),
                (1, 5, detour)
            );
            assert_eq!(pace.biased(0).detour(), detour);
            assert_eq!(pace.wasted().detour(), detour);
        }
        let long = revoke(Pace(0), 0, LONGEST * UNIT).pace;
        assert!(long.detour().reads() > 0 || super::processors() > 2500);
    }

    #[test]
    fn no_inhibition_is_longer_than_the_longest() {
        let Inhibition { pace, lasts } =
            revoke(Pace::new(0, MOST_DOUBLINGS, Detour(0)), 0, u64::MAX >> 8);
        assert_eq!(lasts, Duration::from_nanos(LONGEST * UNIT));
        let end = u64::MAX >> 8;
        assert!(!pace.permits(end + UNIT));
        assert!(pace.permits(end + LONGEST * UNIT));
    }

    #[test]
    fn a_bound_however_large_inhibits_for_longest() {
        for bound in [1 << 31, u32::MAX] {
            let tuning = Tuning { bound, ..TUNING };
            for took in (0..63).map(|power| 1 << power) {
                for doublings in 0..=MOST_DOUBLINGS {
                    let lasts = Pace::new(0, doublings, Detour(0))
                        .revoked(0, took, tuning)
                        .lasts;
                    assert_eq!(lasts, Duration::from_nanos(LONGEST * UNIT), "{took}");
                }
            }
        }
    }

    #[test]
    fn a_time_that_wraps_is_a_time() {
        let late = u64::from(TIMES) * UNIT;
        let Inhibition { pace, .. } = revoke(Pace(0).biased(late), late, UNIT);
        assert!(!pace.permits(late + 2 * UNIT));
        assert!(pace.permits(late + 12 * UNIT));
    }
}
