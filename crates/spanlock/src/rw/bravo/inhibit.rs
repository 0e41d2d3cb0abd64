//! The inhibition of a bias: when it may be set again, and how many reads skip the fast path until then.
//!
//! A bias is worth setting only if it lives much longer than its revocation takes. So a revocation starts an
//! *inhibition*, during which no reader sets the bias:
//!
//! ```text
//!        bias set         revocation           inhibition            bias set
//!   --------|=================|-------|-------------------------------|=====--> time
//!           |<---- lived ---->|<took >|<- at least N x took x 2^back-off ->|
//! ```
//!
//! `N` is [`Tuning::bound`]: writers lose at most one part in `N + 1` of their time to revocations. The *back-off*
//! grows with each bias that did not pay, so that such biases get rare, and shrinks with each that did.
//!
//! One word for each lock has all of this:
//!
//! ```text
//!   bit  31   29 28       26 25                                        0
//!       +-------+-----------+-------------------------------------------+
//!       | skips | back-off  |  time, in units of 4096 ns                |
//!       +-------+-----------+-------------------------------------------+
//! ```
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0-25 | time | unbiased: the inhibition's deadline; biased: when the bias was set; it wraps after 4.5 minutes |
//! | 26-28 | back-off | the exponent: the inhibition is 2 to its power times as long |
//! | 29-31 | skips | `n` stands for 2^n - 1 reads that skip the fast path (see [`Skips`]) |
//!
//! All zero: no inhibition, no back-off, no skips.
//!
//! Two more heuristics keep slow reads cheap while there is no bias. Both trade a late notice of the next bias for
//! fewer transfers of a cache line:
//!
//! - After a slow read that found no bias, the thread's next few reads of this lock *skip* the fast path: they do not
//!   load the lock's bias. On a contended lock that load fetches a line that the next atomic operation takes away
//!   again.
//! - Of the slow reads that do not skip, one in [`SAMPLED`] reads the clock and may set the bias.

use super::policy::Tuning;
use super::table::LockAddress;
use prim::atomic::{AtomicUsize, Ordering};
use prim::clock::{self, Duration};
use prim::thread;
use std::cell::Cell;

/// Nanoseconds in a unit of time.
const UNIT: u64 = 1 << 12;

const TIME_BITS: u32 = 26;
const TIMES: u32 = (1 << TIME_BITS) - 1;

/// The longest inhibition, in units: about a second. A word that was stored long ago, whose time has wrapped, is wrong
/// for that long at most.
const LONGEST: u64 = 1 << 18;

/// For how many units a reader puts off a bias that cannot be set: about a millisecond.
const PUT_OFF: u64 = 1 << 8;

const BACKOFF_BITS: u32 = 3;
const MAX_BACKOFF: u32 = (1 << BACKOFF_BITS) - 1;

const SKIPS_SHIFT: u32 = TIME_BITS + BACKOFF_BITS;

/// The word of the module's documentation: a time, a back-off exponent and the number of skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inhibition(pub(super) u32);

/// What follows from a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Revoked {
    pub(super) inhibition: Inhibition,
    pub(super) lasts: Duration,
}

fn units(nanoseconds: u64) -> u32 {
    (nanoseconds / UNIT) as u32 & TIMES
}

impl Inhibition {
    fn new(time: u32, backoff: u32, skips: Skips) -> Self {
        Self(skips.0 << SKIPS_SHIFT | backoff << TIME_BITS | time & TIMES)
    }

    fn time(self) -> u32 {
        self.0 & TIMES
    }

    fn backoff(self) -> u32 {
        self.0 >> TIME_BITS & MAX_BACKOFF
    }

    fn more_backoff(self) -> u32 {
        (self.backoff() + 1).min(MAX_BACKOFF)
    }

    fn skips(self) -> Skips {
        Skips(self.0 >> SKIPS_SHIFT)
    }

    /// Of an unbiased lock: whether the bias may be set now.
    pub(super) fn permits(self, now: u64) -> bool {
        let left = self.time().wrapping_sub(units(now)) & TIMES;
        self.time() == 0 || left == 0 || u64::from(left) > LONGEST
    }

    /// The bias is set now.
    pub(super) fn biased(self, now: u64) -> Self {
        Self::new(units(now), self.backoff(), self.skips())
    }

    /// The bias may be set but cannot be: the next reader that tries does so a while later.
    pub(super) fn put_off(self, now: u64) -> Self {
        let until = units(now).wrapping_add(PUT_OFF as u32);
        Self::new(until, self.backoff(), self.skips())
    }

    /// A writer began to revoke the bias and gave up. Readers took the slow path for nothing, so the back-off grows.
    pub(super) fn aborted(self) -> Self {
        Self::new(self.time(), self.more_backoff(), self.skips())
    }

    /// Of a lock that is never biased: no read of it need check.
    pub(super) const NEVER: Self = Self(Skips::IDLE.0 << SKIPS_SHIFT);

    /// The bias was revoked, which took from `start` to `now`.
    pub(super) fn revoked(self, start: u64, now: u64, tuning: Tuning) -> Revoked {
        let took = now.saturating_sub(start);
        let times = u64::from(tuning.bound) << self.backoff(); // 32 bits and at most 7 more.
        let inhibited = took.saturating_mul(times);
        // One unit more than the product rounded up, because `now` is in the middle of a unit.
        let lasts = (inhibited.div_ceil(UNIT) + 1).min(LONGEST);
        let lived = u64::from(units(start).wrapping_sub(self.time()) & TIMES);
        let pays = took.saturating_mul(PAYS_ON_ONE.div_ceil(processors() as u64));
        let pays = pays.div_ceil(UNIT).max(1);
        // A bias that paid takes one step of back-off away, and one more for each time that it lived twice as long.
        let backoff = match (lived / pays).checked_ilog2() {
            None => self.more_backoff(),
            Some(power) => self.backoff().saturating_sub(1 + power),
        };
        let until = units(now).wrapping_add(lasts as u32);
        let skips = Skips::within(lasts * UNIT, processors());
        Revoked {
            inhibition: Self::new(until, backoff, skips),
            lasts: Duration::from_nanos(lasts * UNIT),
        }
    }
}

/// On one processor, a bias pays if it lives this many times as long as its revocation takes. With more processors more
/// readers gain from it at a time, so a shorter life pays; on any machine it is at least as long as the revocation.
const PAYS_ON_ONE: u64 = 4;

/// Of how many slow reads that do not skip one reads the clock, to set the bias: to read the clock costs as much as a
/// read.
const SAMPLED: u32 = 16;

/// Picks one of many at random. Random, because a count would fall in step with a program that uses its locks in turn.
#[derive(Debug)]
pub struct Sampler(
    /// The state of a linear congruential generator. Zero is a state like any other.
    Cell<u32>,
);

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampler {
    /// A sampler, all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// True for one call in `many`, on the average; `many` is a power of two up to 2^16.
    #[inline(always)] // A few instructions on a slow path that is nearly as fast as the fast one.
    pub fn picks_one_in(&self, many: u32) -> bool {
        // The constants are those of *Numerical Recipes*. The upper bits are random enough.
        let next = self.0.get().wrapping_mul(1_664_525);
        let next = next.wrapping_add(1_013_904_223);
        self.0.set(next);
        (next >> 16).is_multiple_of(many)
    }
}

prim::local! {
    static READS: Sampler = Sampler::new();
}

/// Whether this slow read is one that reads the clock.
#[inline]
pub(super) fn samples_this_read() -> bool {
    READS.with(|reads| reads.picks_one_in(prim::stock(SAMPLED as usize, 1) as u32))
}

/// How many reads of a lock skip the fast path, by one thread, after one that found it closed: 2^n - 1 for `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Skips(u32);

impl Skips {
    /// 15 reads: then the load that they spare is a small part of the cost.
    const LONG: Self = Self(4);

    /// 63 reads.
    const LONGEST: Self = Self(6);

    /// 127 reads, where no load ever finds a bias.
    const IDLE: Self = Self(7);

    /// As many as the inhibition allows.
    ///
    /// If all `P` processors skip at once they also contend for the underlying lock, so the cost of the skips grows
    /// with `P` squared. It stays below half of the inhibition. Beyond [`LONG`](Self::LONG), an inhibition that is
    /// sixteen times as long allows twice as many skips, so that few biases are noticed late.
    fn within(nanoseconds: u64, processors: usize) -> Self {
        let processors = processors as u64;
        let reads = nanoseconds / (INHIBITION_PER_SKIP * processors * processors);
        let power = (reads + 1).ilog2();
        let beyond = power.saturating_sub(Self::LONG.0) / 4;
        Self((power.min(Self::LONG.0) + beyond).min(Self::LONGEST.0))
    }

    fn reads(self) -> usize {
        (1 << self.0) - 1
    }
}

/// Nanoseconds of inhibition for each read that skips, on one processor: such a read takes some fifty.
const INHIBITION_PER_SKIP: u64 = 125;

prim::global! {
    static PROCESSORS: AtomicUsize = AtomicUsize::new(0);
}

fn processors() -> usize {
    // Relaxed: every thread would store the same number.
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => {
            let processors = thread::processors().max(1);
            PROCESSORS.store(processors, Ordering::Relaxed);
            processors
        }
        known => known,
    }
}

/// The lock of which the running thread skips the fast path, and for how many more reads.
#[derive(Debug)]
struct Skipping {
    /// None when no reads are left.
    of: Cell<Option<LockAddress>>,
    left: Cell<usize>,
}

prim::local! {
    static SKIPPING: Skipping = Skipping { of: Cell::new(None), left: Cell::new(0) };
}

/// Whether this read of a lock skips the fast path.
#[inline]
pub(super) fn is_skipping(lock: LockAddress) -> bool {
    SKIPPING.with(|skipping| skipping.of.get() == Some(lock))
}

/// Counts a read that skipped the fast path and has got in, or given up. Not before: an atomic operation waits for
/// earlier stores, and meanwhile the lock is free for others.
#[inline]
pub(super) fn count_skip() {
    SKIPPING.with(|skipping| match skipping.left.get() {
        // Zero, if a signal handler used up what was left, or began to skip for another lock.
        0 | 1 => skipping.of.set(None),
        left => skipping.left.set(left - 1),
    });
}

/// The running thread's next reads of the lock skip the fast path.
#[inline]
pub(super) fn begin_skipping(lock: LockAddress, inhibition: Inhibition) {
    let skips = prim::stock(inhibition.skips().reads(), 0);
    SKIPPING.with(|skipping| {
        skipping.left.set(skips);
        skipping.of.set((skips > 0).then_some(lock));
    });
}

/// The running thread skips no more reads of the lock, which is gone. Another thread that skips reads of a lock at this
/// address goes on until it has counted its skips.
#[inline]
pub(super) fn stop_skipping(lock: LockAddress) {
    SKIPPING.with(|skipping| {
        if skipping.of.get() == Some(lock) {
            skipping.of.set(None);
        }
    });
}

/// The time now, in nanoseconds.
pub(super) fn now() -> u64 {
    clock::nanoseconds()
}

#[cfg(test)]
mod tests {
    use super::{Inhibition, LONGEST, MAX_BACKOFF, PUT_OFF, Revoked, Skips, TIMES, Tuning, UNIT};
    use prim::clock::Duration;

    const TUNING: Tuning = Tuning::STANDARD;

    fn revoke(inhibition: Inhibition, start: u64, took: u64) -> Revoked {
        inhibition.revoked(start, start + took, TUNING)
    }

    #[test]
    fn a_bias_that_was_put_off_is_permitted_later() {
        let now = 7 * UNIT;
        let inhibition = Inhibition(0).put_off(now);
        assert!(!inhibition.permits(now));
        assert!(inhibition.permits(now + (PUT_OFF + 1) * UNIT));
        assert_eq!(inhibition.backoff(), 0);
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
            assert!(Inhibition(0).permits(now));
        }
    }

    #[test]
    fn a_revocation_inhibits_at_least_so_many_times_as_long_as_it_took() {
        for took in [0, 1, 100, UNIT - 1, UNIT, 10 * UNIT + 1] {
            for start in [0, 5, UNIT - 1, 1000 * UNIT + 17] {
                let since = Inhibition(0).biased(start);
                let Revoked { inhibition, lasts } = revoke(since, start, took);
                let bound = took * u64::from(TUNING.bound);
                assert!(lasts >= Duration::from_nanos(bound));
                assert!(!inhibition.permits(start + took + bound));
                assert!(inhibition.permits(start + took + lasts.as_nanos() as u64));
            }
        }
    }

    #[test]
    fn biases_that_do_not_pay_get_rare_and_those_that_pay_less_so() {
        let mut inhibition = Inhibition(0);
        let mut now = 0;
        let mut before = Duration::ZERO;
        for round in 0..=MAX_BACKOFF {
            let revoked = revoke(inhibition.biased(now), now, UNIT);
            assert!(revoked.lasts > before, "round {round}");
            before = revoked.lasts;
            inhibition = revoked.inhibition;
            now += UNIT + revoked.lasts.as_nanos() as u64;
            assert!(inhibition.permits(now));
        }
        let paid = revoke(inhibition.biased(now), now + LONGEST * UNIT, UNIT);
        let after = revoke(paid.inhibition.biased(now), now, UNIT);
        assert!(after.lasts < before);
    }

    #[test]
    fn the_longer_a_bias_lives_the_more_backoff_it_takes_away() {
        let most = Inhibition::new(0, MAX_BACKOFF, Skips(0));
        let after = |lived: u64| {
            let now = UNIT + lived * UNIT;
            revoke(most.biased(UNIT), now, UNIT).inhibition.backoff()
        };
        let lives = [0, 4, 8, 16, 32, 1 << 20].map(after);
        assert_eq!(lives[0], MAX_BACKOFF);
        assert!(lives.windows(2).all(|pair| pair[1] < pair[0]), "{lives:?}");
        assert_eq!(*lives.last().unwrap(), 0);
    }

    #[test]
    fn writers_that_give_up_make_the_next_inhibition_longer() {
        let once = Inhibition(0).biased(UNIT);
        let mut before = Duration::ZERO;
        for inhibition in
            std::iter::successors(Some(once), |inhibition| Some(inhibition.aborted())).take(8)
        {
            let lasts = revoke(inhibition, UNIT, UNIT).lasts;
            assert!(lasts > before);
            before = lasts;
        }
        let most = (0..100).fold(once, |inhibition, _| inhibition.aborted());
        assert_eq!(revoke(most, UNIT, UNIT).lasts, before);
        assert!(most.permits(UNIT) && most.time() == once.time());
    }

    #[test]
    fn skips_are_few_where_inhibitions_are_short_or_machines_large() {
        let mut before = 0;
        for inhibition in (0..40).map(|power| 1 << power) {
            let on = |processors| Skips::within(inhibition, processors).reads();
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
        assert_eq!(Skips::LONG.reads(), 15);
        assert_eq!(Skips::within(3 * UNIT, 2), Skips::LONG);
        assert_eq!(Skips::within(u64::MAX, 1), Skips::LONGEST);
    }

    #[test]
    fn the_number_of_skips_stays_until_the_next_revocation() {
        assert_eq!(Inhibition(0).skips().reads(), 0);
        assert_eq!(Inhibition::NEVER.skips(), Skips::IDLE);
        for skips in [Skips(0), Skips::LONGEST] {
            let inhibition = Inhibition::new(1, 5, skips);
            assert_eq!(
                (inhibition.time(), inhibition.backoff(), inhibition.skips()),
                (1, 5, skips)
            );
            assert_eq!(inhibition.biased(0).skips(), skips);
            assert_eq!(inhibition.aborted().skips(), skips);
        }
        let long = revoke(Inhibition(0), 0, LONGEST * UNIT).inhibition;
        assert!(long.skips().reads() > 0 || super::processors() > 2500);
    }

    #[test]
    fn no_inhibition_is_longer_than_the_longest() {
        let Revoked { inhibition, lasts } =
            revoke(Inhibition::new(0, MAX_BACKOFF, Skips(0)), 0, u64::MAX >> 8);
        assert_eq!(lasts, Duration::from_nanos(LONGEST * UNIT));
        let end = u64::MAX >> 8;
        assert!(!inhibition.permits(end + UNIT));
        assert!(inhibition.permits(end + LONGEST * UNIT));
    }

    #[test]
    fn a_bound_however_large_inhibits_for_longest() {
        for bound in [1 << 31, u32::MAX] {
            let tuning = Tuning { bound, ..TUNING };
            for took in (0..63).map(|power| 1 << power) {
                for backoff in 0..=MAX_BACKOFF {
                    let lasts = Inhibition::new(0, backoff, Skips(0))
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
        let Revoked { inhibition, .. } = revoke(Inhibition(0).biased(late), late, UNIT);
        assert!(!inhibition.permits(late + 2 * UNIT));
        assert!(inhibition.permits(late + 12 * UNIT));
    }
}
