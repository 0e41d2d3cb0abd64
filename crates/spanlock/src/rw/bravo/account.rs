//! The account of a lock's bias: whether it pays, and when it is tried again.
//!
//! Pure arithmetic on one word, with every tuned constant of the bias. It knows neither the protocol nor a clock: it is
//! told what happened and when, and answers. "The policy" in `docs/rwlocks.md` says what is weighed and why, what the
//! answers are bounded by, and what each constant is worth.
//!
//! ```text
//!   bit  31   28 27         20 19                                         0
//!       +-------+-------------+--------------------------------------------+
//!       |  rho  | credit, or  |  time, in units of 256 ns                  |
//!       |       | price       |                                            |
//!       +-------+-------------+--------------------------------------------+
//! ```
//!
//! | field | while the lock is biased, or the bias is kept | while it is unbiased |
//! |---|---|---|
//! | time | since when the path is open, or the table empty | since when there is no bias |
//! | credit, price | units earned; from 192 on, a debt of 2^(n - 192) units | 2^n units until the next trial, at rho = 1 |
//! | rho | 2^(n - 3) | the same |
//!
//! All zero: a new lock, which the first reader may bias. The time wraps after 0.27 s. An answer that is wrong for that
//! reason makes one trial earlier or later, one life short or long, or one writer wait for [`YOUTH`] in vain.

use crate::wait::BRIEF;

/// Nanoseconds in a unit of time, and of credit. Half a unit, which credit loses by rounding, stands for what the clock
/// does not see: cold paths, and the writer's second acquisition.
const UNIT: u64 = 1 << 8;

const TIME_BITS: u32 = 20;

/// The longest time, in units, until the next trial: 67 ms, a quarter of the time that the word can tell.
const LONGEST: u64 = 1 << (TIME_BITS - 2);

/// A difference of times from here on, in units, is negative: of a time up to a quarter of all ahead.
const AHEAD: u64 = 3 << (TIME_BITS - 2);

const CREDIT_BITS: u32 = 8;

/// What is less is credit, in units. What is not is a debt of two to the power of the rest, in units.
const DEBT: u64 = 3 << (CREDIT_BITS - 2);

/// Nanoseconds that a contended slow read keeps the lock's cache line to itself.
const SERVICE: u64 = 256;

/// The power of two of rho = 1: rho is counted in eighths.
const EIGHTHS: u32 = 3;

/// The power of two of rho = 32.
const MOST_RHO: u32 = EIGHTHS + 5;

/// Nanoseconds for which readers wait for the path. Less than a processor takes to put a thread to sleep and wake it,
/// and more than one closing takes (`docs/rwlocks.md`).
pub(super) const OVERDUE: u64 = prim::sized(32_000, 2_000) as u64;

/// Nanoseconds after which a life is long enough for readers that publish by a plain store: short against a time slice,
/// and ten times what it takes to revoke such a bias.
const LONG_LIFE: usize = BRIEF as usize;

/// The shortest life, in nanoseconds, that a writer ends if slow reads take long: in it, readers that have waited
/// notice that the path is open, and get in. A lower bound: the writer looks at the clock now and then.
const YOUTH: u64 = 1_500;

/// The power of two of rho = 4, from which on readers are dense.
const DENSE: u32 = EIGHTHS + 2;

/// How often slow readers are to lose what a revocation cost before the next trial: the standard bound.
pub(super) const BOUND: u32 = 64;

/// A bias is kept that gains `bound` / 32 = 2 times what its revocations cost.
const PAYS: u64 = 32;

/// One revocation in about this many, by the digits of the time in units, takes rho down by a step. A bias that pays
/// may end by that, so it is rare. (Units, because some clocks do not count single nanoseconds.)
const DOUBTS: u64 = 1 << 12;

/// Acquisitions between two looks: at the word, where there is no bias, and at the clock, where there is a fenced one.
/// A look costs about as much as an uncontended acquisition, so this many make it a small part of the whole.
pub(super) const LOOK: usize = 16;

/// One slow read in this many, of those that look at the bias, times its acquisition. That reads the clock twice, and
/// may set the bias.
pub(super) const TIMED: usize = 8;

/// The word of the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account(pub(super) u32);

impl Account {
    /// The account of a new lock, which may be biased at once.
    pub(super) const NEW: Self = Self(0);

    fn new(time: u64, balance: u64, rho: u32) -> Self {
        let time = (time / UNIT) as u32 % (1 << TIME_BITS);
        Self(rho << (TIME_BITS + CREDIT_BITS) | (balance as u32) << TIME_BITS | time)
    }

    /// The credit, the debt or the price.
    fn balance(self) -> u64 {
        u64::from(self.0 >> TIME_BITS) % (1 << CREDIT_BITS)
    }

    fn credit(self) -> u64 {
        self.balance() * u64::from(self.balance() < DEBT)
    }

    fn rho(self) -> u32 {
        self.0 >> (TIME_BITS + CREDIT_BITS)
    }

    /// Nanoseconds since the time in the word; none, if another thread has stored a time that is a little later.
    pub(super) fn elapsed(self, now: u64) -> u64 {
        let now = Self::new(now, 0, 0).0;
        let units = u64::from(now.wrapping_sub(self.0) % (1 << TIME_BITS));
        units * UNIT * u64::from(units < AHEAD)
    }

    /// Nanoseconds from the end of a bias until the next trial, at rho = 1.
    pub(super) fn price(self) -> u64 {
        // What is read as a price may be a credit that a race has left.
        UNIT << self.balance().min(u64::from(TIME_BITS))
    }

    /// Adds a sample to the account of an unbiased lock: a reader's acquisition took `latency` nanoseconds. Returns
    /// whether a bias may be tried now, and the account.
    pub(super) fn sampled(self, now: u64, latency: u64) -> (bool, Self) {
        let rho = (latency.saturating_mul(1 << EIGHTHS) / SERVICE).max(1);
        let rho = rho.ilog2().min(MOST_RHO);
        let wait = (self.price() << EIGHTHS >> rho).min(LONGEST * UNIT);
        let is_due = self.balance() == 0 || self.elapsed(now) >= wait;
        let others = u32::MAX >> (u32::BITS - TIME_BITS - CREDIT_BITS);
        let account = Self(self.0 & others | rho << (TIME_BITS + CREDIT_BITS));
        // A sample that is larger than the one before says little. A trial begins without credit or debt.
        let trial = (is_due && rho <= self.rho()).then(|| Self::new(now, 0, rho));
        (trial.is_some(), trial.unwrap_or(account))
    }

    /// The path is open from now on, after it was closed since the time in the word.
    pub(super) fn opened(self, now: u64) -> Self {
        let closed = self.elapsed(now) / UNIT;
        let left = self.credit().checked_sub(closed);
        let balance = left.unwrap_or_else(|| DEBT + u64::from(closed.ilog2()));
        Self::new(now, balance, self.rho())
    }

    /// A writer closed the path at `since` and gives up now, with the bias set: that time is none of its life.
    pub(super) fn resumed(self, since: u64, now: u64) -> Self {
        let began = now.saturating_sub(self.elapsed(since));
        Self::new(began, self.balance(), self.rho())
    }

    /// Nanoseconds for which a writer that is about to arrive lets the life go on.
    pub(super) fn youth_left(self, now: u64) -> u64 {
        let youth = YOUTH * u64::from(self.rho() >= DENSE);
        youth.saturating_sub(self.elapsed(now))
    }

    /// Whether a bias has lived long.
    pub(super) fn is_old(self, now: u64) -> bool {
        // A model, and a simulated run in which things are scarce, has short lives.
        self.elapsed(now) >= prim::stock(LONG_LIFE, 0) as u64
    }

    /// A bias was revoked, which took from `start` to `now`: whether it is kept, and its account after that.
    pub(super) fn revoked(self, start: u64, now: u64, bound: u32) -> (bool, Self) {
        let rho = self.rho() - u32::from(self.rho() > 0 && (now / UNIT).is_multiple_of(DOUBTS));
        let gain = self.elapsed(start) << rho >> EIGHTHS;
        let took = now.saturating_sub(start).max(1);
        let loss = took.saturating_mul(u64::from(bound));
        let credit = self.credit() * UNIT + gain;
        if let Some(credit) = credit.checked_sub(loss / PAYS) {
            return (true, Self::new(now, (credit / UNIT).min(DEBT - 1), rho));
        }
        let debt = self.balance().checked_sub(DEBT);
        let loss = loss / UNIT + debt.map_or(0, |power| u64::from(bound) << power);
        let price = loss.clamp(1, LONGEST).next_power_of_two();
        (false, Self::new(now, u64::from(price.ilog2()), rho))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Account, BOUND, CREDIT_BITS, DEBT, EIGHTHS, LONG_LIFE, LONGEST, MOST_RHO, TIME_BITS, UNIT,
        YOUTH,
    };
    const US: u64 = 1000;

    /// An unbiased lock, whose readers' acquisitions took that long.
    fn sampled(latency: u64) -> Account {
        Account(0).sampled(0, latency).1
    }

    /// A bias that was tried at a time, after acquisitions that took that long.
    fn tried(at: u64, latency: u64) -> Account {
        let (is_to_try, account) = sampled(latency).sampled(at, latency);
        assert!(is_to_try, "it is due");
        account.opened(at)
    }

    #[test]
    fn a_new_lock_may_be_biased_at_any_time() {
        let wrapped = UNIT << TIME_BITS;
        for now in [
            0,
            1,
            UNIT,
            7 * UNIT,
            wrapped / 4 * 3,
            wrapped - UNIT,
            wrapped,
        ] {
            assert!(Account(0).sampled(now, 20).0);
            assert!(sampled(512).sampled(now, 512).0);
        }
    }

    #[test]
    fn a_bias_that_lives_long_is_kept_and_one_that_does_not_is_not() {
        let long = LONG_LIFE as u64;
        for (latency, life, kept) in [
            (20, 4 * US, false),    // One thread, which gains an eighth.
            (20, long, true),       // It does.
            (512, 4 * US, true),    // As much as it lives.
            (128, US / 2, false),   // Shorter than its revocation.
            (8 * US, US / 2, true), // Thirty threads gain.
        ] {
            let (opened, arrived) = (5 * US + 1, 5 * US + 1 + life);
            let revoked = tried(opened, latency).revoked(arrived, arrived + US, BOUND);
            assert_eq!(revoked.0, kept, "{latency} {life}");
        }
    }

    #[test]
    fn of_two_samples_the_smaller_counts() {
        assert!(!sampled(20).sampled(US, 1 << 20).0);
        let (is_to_try, fewer) = sampled(1 << 20).sampled(US, 20);
        assert!(is_to_try && fewer.rho() == 0);
    }

    /// How many of a hundred short lives the credit pays for, if the path is closed for that long between them.
    fn short_lives(mut account: Account, mut now: u64, closed: u64) -> usize {
        let kept = (0..100).take_while(|_| {
            let (is_kept, revoked) = account.revoked(now, now + US, BOUND);
            now += US + closed;
            account = revoked.opened(now);
            is_kept
        });
        kept.count()
    }

    #[test]
    fn a_density_is_doubted_now_and_then() {
        let mut account = tried(1, 1 << 20);
        assert_eq!(account.rho(), MOST_RHO);
        for step in 1..=2 * MOST_RHO {
            account = account.revoked(0, 0, 0).1;
            assert_eq!(account.rho(), MOST_RHO.saturating_sub(step));
            account = account.revoked(0, UNIT, 0).1;
            assert_eq!(account.rho(), MOST_RHO.saturating_sub(step));
        }
        assert_eq!(short_lives(account, 1, 0), 0);
    }

    #[test]
    fn a_trial_that_fails_is_not_repeated_for_bound_times_its_cost_over_rho() {
        let slow = 400 * US; // Beside slow readers: all of it counts.
        for (took, latency, eighths) in [
            (US, 20, 64),
            (2 * US, 256, 8),
            (3 * US, 20, 64),
            (slow, 512, 4),
        ] {
            let end = US + took;
            let (is_kept, account) = tried(US, latency).revoked(US, end, BOUND);
            assert!(!is_kept, "it does not pay");
            let loss = took * u64::from(BOUND);
            assert!(
                (loss - UNIT..=2 * loss).contains(&account.price()),
                "{took}"
            );
            let again = |after: u64| account.sampled(end + after, latency).0;
            let wait = loss * eighths / 8;
            assert!(
                !again(wait - 2 * UNIT) && again(2 * wait + 8 * UNIT),
                "{took}"
            );
        }
    }

    /// Threads overwrite each other's accounts: the credit of a writer that gave up may be read as a price.
    #[test]
    fn whatever_a_race_leaves_a_trial_comes_in_time() {
        for balance in 0..1 << CREDIT_BITS {
            for rho in 0..=MOST_RHO {
                let (is_to_try, _) = Account::new(0, balance, rho).sampled(LONGEST * UNIT, 20);
                assert!(is_to_try, "{balance} {rho}");
            }
        }
    }

    #[test]
    fn credit_pays_for_short_lives_and_runs_out() {
        let (is_kept, account) = tried(US, 256).revoked(1000 * US, 1002 * US, BOUND);
        assert!(is_kept, "it pays");
        assert_eq!(account.credit(), DEBT - 1);
        let lives = |closed| short_lives(account.opened(1002 * US), 1002 * US, closed);
        assert!((20..=64).contains(&lives(0)), "{}", lives(0));
        assert!((2..20).contains(&lives(20 * US)), "{}", lives(20 * US));
    }

    #[test]
    fn a_bias_that_ends_after_a_long_closing_is_tried_again_after_bound_times_that() {
        let (is_kept, account) = tried(US, 256).revoked(10 * US, 11 * US, BOUND);
        assert!(is_kept, "it pays");
        for (closed, least) in [(US, 1), (100 * US, 64 * BOUND), (900 * US, 512 * BOUND)] {
            let open = 11 * US + closed;
            let (is_kept, ended) = account.opened(open).revoked(open, open + 50 * US, BOUND);
            assert!(!is_kept, "{closed}");
            assert!(ended.price() >= u64::from(least) * US, "{closed}");
        }
        // What a life has paid for is forgotten.
        let open = 1000 * US;
        let account = account.opened(open);
        let (is_kept, account) = account.revoked(open + 9 * US, open + 10 * US, BOUND);
        assert!(is_kept && account.balance() < DEBT, "it pays");
    }

    #[test]
    fn writers_let_a_life_go_on_that_has_just_begun_where_readers_are_dense() {
        let (opened, youth) = (5000 * US, YOUTH);
        for (latency, left) in [(8 * US, youth), (1024, youth), (1000, 0), (20, 0)] {
            let account = tried(opened, latency);
            assert_eq!(account.youth_left(opened), left, "{latency}");
            let later = left.saturating_sub(2 * UNIT);
            assert_eq!(account.youth_left(opened + 2 * UNIT), later);
            assert_eq!(account.youth_left(opened + youth + UNIT), 0);
        }
    }

    #[test]
    fn what_writers_closed_that_gave_up_is_not_life() {
        let account = tried(100 * US, 512).resumed(200 * US, 10_000 * US);
        assert!(account.elapsed(10_000 * US).abs_diff(100 * US) <= UNIT);
        assert_eq!((account.credit(), account.rho()), (0, EIGHTHS + 1));
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
    fn without_a_bound_a_bias_is_always_kept_and_with_the_largest_never() {
        let (is_kept, account) = tried(0, 1).revoked(0, 1 << 40, 0);
        let account = account.opened(1 << 50);
        assert!(is_kept && account.revoked(1 << 50, 1 << 51, 0).0);
        let account = tried(1, 1 << 40);
        let (is_kept, ended) = account.revoked(100 * US, 101 * US, u32::MAX);
        assert!(!is_kept);
        assert_eq!(ended.price(), LONGEST * UNIT);
    }
}
