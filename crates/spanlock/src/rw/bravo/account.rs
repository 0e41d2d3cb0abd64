//! The account of a lock's bias: whether it pays, and when it is tried again.
//!
//! A bias *gains* time for readers while the path is open, and *costs* time while it is closed. The account weighs the
//! two, and decides two questions:
//!
//! 1. A writer has revoked the bias. Is it *kept*, so that the last writer to leave opens the path again?
//! 2. If not: when may a reader *try* it again?
//!
//! ```text
//!              + life x rho      - 2 x cost  - closed    + life x rho     - 2 x cost
//!   open    +=================+                       +================+
//!   closed                    +----------+------------+                +----------+---
//!                          arrival     table        reopened        arrival
//!                                      empty
//! ```
//!
//! **What is weighed.** The *cost* is the time from a writer's arrival until the table is empty. *Closed* is the time
//! from there until the last writer leaves. The *density* `rho` says how many threads' time slow reads of this lock
//! take, and a bias saves. By Little's law that is the latency of a slow read over its service time ([`SERVICE`]),
//! which a reader measures now and then. Of two samples in sequence the smaller counts, since one reader that was
//! interrupted, or came behind a writer, says little. Rho is from an eighth ([`ALONE`]: readers hardly meet) to 32. A
//! fenced read saves a lone reader nothing, because to fence takes as long as an underlying lock that nobody else
//! wants: only a free bias earns it an eighth of its life.
//!
//! **Keep.** The lives of a bias earn credit; its revocations, and the times that the path was closed, spend it, as
//! drawn. The bias is kept while the credit pays for the revocation; it is never more than [`MOST_CREDIT`]. A closing
//! may use the credit up, and no more: readers wait for writers in any lock. So a bias that goes on has gained at least
//! twice what its revocations took, and what it loses in the end is bounded by the most credit. A trial begins with
//! some credit, more if rho is large, because threads notice it one after another, and until then the underlying lock
//! is busy and closings are long.
//!
//! **Try.** A bias that was not kept is tried again after [`Tuning::bound`] times what its last revocation cost,
//! divided by rho: what slow reads lose in it is `bound` times the cost. So where readers hardly meet trials are rare,
//! and where they crowd a trial that fails is soon repeated. That matters, because both states are stable there:
//! readers that crowd at the underlying lock delay the writers that are to open the path, and a trial may fail although
//! the bias would pay once all threads use it.
//!
//! The bound against a lock that is *never* biased is therefore one part in `bound` of what slow reads take, and the
//! most credit once for each bias. Against one that is *always* biased: where biases pay, the lock is without one for
//! `bound` / rho times the cost of a revocation after the credit has been used up, and not again before. The grade is
//! decided apart from this: a bias that has lived for [`LONG_LIFE`] becomes free. Against one that is *always fenced*,
//! writers lose at most the time of a membarrier for each such life; against one that is *always free*, readers lose a
//! fence for each read in that time.
//!
//! ```text
//!   bit  31   28 27         20 19                                         0
//!       +-------+-------------+--------------------------------------------+
//!       |  rho  | credit, or  |  time, in units of 128 ns                  |
//!       |       | price       |                                            |
//!       +-------+-------------+--------------------------------------------+
//! ```
//!
//! | field | while the lock is biased, or the bias is kept | while it is unbiased |
//! |---|---|---|
//! | time | since when the path is open, or the table empty | since when there is no bias |
//! | credit, price | time earned, in units of 512 ns | 2^n units of time until the next trial |
//! | rho | 2^(n - 3) | the same |
//!
//! All zero: a new lock, which the first reader may bias. The time wraps after 0.13 s. An answer that is wrong for that
//! reason makes one trial earlier or later, or one life short.

use super::policy::Tuning;
use super::state::Grade;
use prim::clock::{self, Duration};

/// Nanoseconds in a unit of time.
const UNIT: u64 = 1 << 7;

const TIME_BITS: u32 = 20;
const TIMES: u32 = (1 << TIME_BITS) - 1;

/// A difference of times from here on is negative: of a time up to a quarter of all, or 33 ms, ahead.
const AHEAD: u32 = TIMES - TIMES / 4;

/// Nanoseconds in a unit of credit: less than the shortest revocation costs.
const CREDIT: u64 = 1 << 9;

const CREDIT_BITS: u32 = 8;

/// The most credit: 128 us. A bias survives some closings that are longer than readers wait ([`OVERDUE`]).
const MOST_CREDIT: u32 = (1 << CREDIT_BITS) - 1;

/// Nanoseconds that a contended slow read keeps the lock's cache line to itself.
const SERVICE: u64 = 256;

/// The power of two of rho = 1: rho is counted in eighths.
const EIGHTHS: u32 = 3;

/// The power of two of rho = 32.
const MOST_RHO: u32 = EIGHTHS + 5;

/// Rho of a lock whose slow reads are short: its readers hardly meet.
const ALONE: u32 = 0;

/// The longest time, in units, until the next trial: a quarter of the time that the word can tell.
const LONGEST: u64 = 1 << (TIME_BITS - 2);

/// Nanoseconds for which readers wait for the path. Less than a processor takes to put a thread to sleep and wake it,
/// and more than one closing takes (`docs/rwlocks.md`).
pub(super) const OVERDUE: u64 = prim::sized(32_000, 2_000) as u64;

/// Nanoseconds after which a life is long enough for readers that publish by a plain store. Revoking such a bias takes
/// about a tenth of that.
const LONG_LIFE: usize = 128_000;

/// A bias is kept that gains `bound` / 32 = 2 times what its revocations cost.
const PAYS: u64 = 32;

/// The word of the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account(pub(super) u32);

/// What becomes of a bias that was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The last writer to leave sets it again.
    Kept,
    /// A reader may try it again after that time.
    Ended(Duration),
}

/// The time now, in nanoseconds.
pub(super) fn now() -> u64 {
    clock::nanoseconds()
}

/// A model, and a simulated run in which things are scarce, has short lives.
fn long_life() -> u64 {
    prim::stock(LONG_LIFE, 0) as u64
}

fn units(nanoseconds: u64) -> u32 {
    (nanoseconds / UNIT) as u32 & TIMES
}

impl Account {
    fn new(time: u64, credit: u32, rho: u32) -> Self {
        Self(rho << (TIME_BITS + CREDIT_BITS) | credit << TIME_BITS | units(time))
    }

    fn credit(self) -> u32 {
        self.0 >> TIME_BITS & MOST_CREDIT
    }

    fn rho(self) -> u32 {
        self.0 >> (TIME_BITS + CREDIT_BITS)
    }

    /// Nanoseconds since the time in the word; none, if another thread has stored a time that is a little later.
    pub(super) fn elapsed(self, now: u64) -> u64 {
        match units(now).wrapping_sub(self.0) & TIMES {
            AHEAD.. => 0,
            units => u64::from(units) * UNIT,
        }
    }

    /// Of an unbiased lock, of which a reader's acquisition took `latency` nanoseconds: what it is with a bias, if that
    /// may be tried now, or else without.
    pub(super) fn tried(self, now: u64, latency: u64) -> Result<Self, Self> {
        let rho = (latency.saturating_mul(1 << EIGHTHS) / SERVICE)
            .max(1)
            .ilog2();
        let rho = rho.min(MOST_RHO);
        // Over rho. What is read as a price may be a credit that a race has left.
        let price = 1 << self.credit().min(TIME_BITS) << EIGHTHS >> rho;
        let is_due = self.credit() == 0 || self.elapsed(now) / UNIT >= LONGEST.min(price);
        // A sample that is larger than the one before says little.
        if rho <= self.rho() && is_due {
            // Threads notice the bias one after another, and the more there are, the later the last.
            Ok(Self::new(now, (1 << rho) / 2, rho))
        } else {
            Err(self.with_rho(rho))
        }
    }

    /// No sample of rho is taken while a bias is kept, and readers may have become fewer.
    pub(super) fn doubted(self) -> Self {
        self.with_rho(self.rho().saturating_sub(1))
    }

    fn with_rho(self, rho: u32) -> Self {
        let rest = self.0 & !(u32::MAX << (TIME_BITS + CREDIT_BITS));
        Self(rest | rho << (TIME_BITS + CREDIT_BITS))
    }

    /// The path is open from now on, after it was closed since the time in the word.
    pub(super) fn opened(self, now: u64) -> Self {
        let closed = self.elapsed(now);
        self.earned(now, self.credit_earned().saturating_sub(closed))
    }

    /// A writer closed the path at `since`, gives up now, and leaves the bias set: that time is none of its life.
    pub(super) fn resumed(self, since: u64, now: u64) -> Self {
        let began = now.saturating_sub(self.elapsed(since));
        Self::new(began, self.credit(), self.rho())
    }

    /// Whether a bias has lived long.
    pub(super) fn is_old(self, now: u64) -> bool {
        self.elapsed(now) >= long_life()
    }

    /// A bias of that grade was revoked, which took from `start` to `now`.
    pub(super) fn revoked(
        self,
        grade: Grade,
        start: u64,
        now: u64,
        tuning: Tuning,
    ) -> (Fate, Self) {
        let (rho, life) = (self.rho(), self.elapsed(start));
        // A fenced read saves a lone reader nothing.
        let gain = match (rho, grade) {
            (ALONE, Grade::Fenced) => 0,
            _ => life << rho >> EIGHTHS,
        };
        let took = now.saturating_sub(start).max(1);
        let loss = took.saturating_mul(u64::from(tuning.bound));
        let credit = self.credit_earned() + gain;
        if let Some(credit) = credit.checked_sub(loss / PAYS) {
            return (Fate::Kept, self.earned(now, credit));
        }
        let price = (loss / UNIT).clamp(1, LONGEST).next_power_of_two();
        let account = Self::new(now, price.ilog2(), self.rho());
        (Fate::Ended(Duration::from_nanos(price * UNIT)), account)
    }

    /// Nanoseconds that a bias has earned.
    fn credit_earned(self) -> u64 {
        u64::from(self.credit()) * CREDIT
    }

    /// A bias that has earned so many nanoseconds. Half a unit, which it loses by rounding, stands for what the clock
    /// does not see: cold paths, and the writer's second acquisition.
    fn earned(self, now: u64, credit: u64) -> Self {
        let credit = (credit / CREDIT).min(u64::from(MOST_CREDIT));
        Self::new(now, credit as u32, self.rho())
    }
}

#[cfg(test)]
mod tests {
    use super::Grade::{Fenced, Free};
    use super::{ALONE, Account, Fate, LONGEST, MOST_CREDIT, TIMES, Tuning, UNIT, long_life};
    use prim::clock::Duration;

    const TUNING: Tuning = Tuning::STANDARD;
    const US: u64 = 1000;

    /// A bias that was tried at a time, after acquisitions that took so long.
    fn tried(at: u64, latency: u64) -> Account {
        let (Ok(account) | Err(account)) = Account(0).tried(0, latency);
        let unbiased = Account::new(0, 0, account.rho());
        unbiased.tried(at, latency).expect("it is due")
    }

    #[test]
    fn a_new_lock_may_be_biased_at_any_time() {
        let wrapped = (u64::from(TIMES) + 1) * UNIT;
        for now in [0, 1, UNIT, 7 * UNIT, wrapped - UNIT, wrapped] {
            assert!(Account(0).tried(now, 20).is_ok());
        }
    }

    #[test]
    fn a_bias_that_lives_long_is_kept_and_one_that_does_not_is_not() {
        let long = long_life();
        for (latency, grade, life, kept) in [
            (20, Fenced, long, false),      // One thread, which gains nothing.
            (20, Free, 4 * US, false),      // It gains an eighth.
            (20, Free, long, true),         // It does.
            (512, Fenced, 4 * US, true),    // As much as it lives.
            (128, Fenced, US / 2, false),   // Shorter than its revocation.
            (8 * US, Fenced, US / 2, true), // Thirty threads gain.
        ] {
            let (opened, arrived) = (5 * US, 5 * US + life);
            let (fate, _) = tried(opened, latency).revoked(grade, arrived, arrived + US, TUNING);
            assert_eq!(fate == Fate::Kept, kept, "{latency} {grade:?} {life}");
        }
    }

    #[test]
    fn of_two_samples_the_smaller_counts() {
        let sampled = |latency| Account::new(0, 0, tried(0, latency).rho());
        assert!(sampled(20).tried(US, 1 << 20).is_err());
        let fewer = sampled(1 << 20).tried(US, 20).expect("it is due");
        assert_eq!(fewer.rho(), ALONE);
    }

    /// How many of a hundred short lives the credit pays for, if the path is closed for so long between them.
    fn short_lives(mut account: Account, mut now: u64, closed: u64) -> usize {
        let kept = (0..100).take_while(|_| {
            let (fate, after) = account.revoked(Fenced, now, now + US, TUNING);
            now += US + closed;
            account = after.opened(now);
            fate == Fate::Kept
        });
        kept.count()
    }

    #[test]
    fn a_density_that_is_doubted_does_not_keep_a_bias_for_good() {
        let account = (0..16).fold(tried(US, 1 << 20), |account, _| account.doubted());
        assert_eq!(account.rho(), ALONE);
        assert!(short_lives(account, US, 0) <= 64);
    }

    #[test]
    fn a_trial_that_fails_is_not_repeated_for_so_many_times_its_cost() {
        for (took, latency, more) in [(US, 20, 8), (2 * US, 256, 1), (3 * US, 20, 8)] {
            let (fate, account) = tried(US, latency).revoked(Fenced, US, US + took, TUNING);
            let bound = took * u64::from(TUNING.bound);
            assert!(
                matches!(fate, Fate::Ended(after) if after >= Duration::from_nanos(bound - UNIT))
            );
            let again = |after: u64| account.tried(US + took + after, latency).is_ok();
            assert!(
                !again(bound * more - UNIT) && again(2 * bound * more + 8 * UNIT),
                "{took}"
            );
        }
    }

    #[test]
    fn credit_pays_for_short_lives_and_runs_out() {
        let (_, account) = tried(US, 256).revoked(Fenced, 1000 * US, 1002 * US, TUNING);
        assert_eq!(account.credit(), MOST_CREDIT);
        let lives = |closed| short_lives(account.opened(1002 * US), 1002 * US, closed);
        assert!((20..=64).contains(&lives(0)));
        assert!((4..20).contains(&lives(20 * US)));
    }

    #[test]
    fn what_writers_closed_that_gave_up_is_not_life() {
        let account = tried(100 * US, 512).resumed(200 * US, 10_000 * US);
        assert_eq!(account.elapsed(10_000 * US).div_ceil(US), 100);
        // Another one that began before the first gave up.
        let account = account.resumed(300 * US, 10_001 * US);
        assert_eq!(account.elapsed(10_001 * US), 0);
    }

    #[test]
    fn a_time_that_another_thread_stored_a_little_later_is_no_long_life() {
        for ahead in [1, UNIT, US, 1000 * US] {
            let account = tried(5000 * US + ahead, 512);
            assert_eq!(account.elapsed(5000 * US), 0, "{ahead}");
        }
    }

    #[test]
    fn a_trial_beside_slow_readers_is_paid_for_by_all_that_it_took() {
        let slow = 400 * US;
        let (fate, _) = tried(US, 512).revoked(Fenced, US, US + slow, TUNING);
        let bound = slow * u64::from(TUNING.bound);
        assert!(matches!(fate, Fate::Ended(after) if after >= Duration::from_nanos(bound)));
    }

    #[test]
    fn without_a_bound_a_bias_is_always_kept_and_with_the_largest_never() {
        let with = |bound| Tuning { bound, ..TUNING };
        let (fate, none) = tried(0, 1).revoked(Fenced, 0, 1 << 40, with(0));
        assert_eq!(fate, Fate::Kept);
        let (fate, _) = none
            .opened(1 << 50)
            .revoked(Free, 1 << 50, 1 << 51, with(0));
        assert_eq!(fate, Fate::Kept);
        let (fate, _) = tried(0, 1 << 40).revoked(Free, 100 * US, 101 * US, with(u32::MAX));
        assert_eq!(fate, Fate::Ended(Duration::from_nanos(LONGEST * UNIT)));
    }
}
