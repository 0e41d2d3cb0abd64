//! Whether a lock lists its narrow requests in buckets, and when it gets buckets.
//!
//! Each thread judges a *window* of its requests at a time, and votes. Eight votes more for it than against it decide:
//!
//! ```text
//!                   all samples were far apart                   listed requests paid more than they saved
//!    no buckets -------------------------------->  listing  ------------------------------------------------> rest
//!                                                     ^                                                         |
//!                                                     +---------------------------------------------------------+
//!                                   after 1 ms, or twice as long as the last time, if that ended less than 1 ms ago
//! ```
//!
//! So a few threads that crowd do not outvote many whose requests are far apart, nor the other way round. A request
//! that is not listed looks at all slots, and is counted.

use super::{FAR, MOST_REPEATS, PRICE, REST, SAMPLE_EVERY, VOTES, WINDOW};
use crate::range::span::Span;
use prim::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A rest is no longer than this, in nanoseconds.
const LONGEST_REST: u64 = WINDOW as u64 * REST;

/// Whether the request after the announcement with that number, in the slot with that number, is looked at.
#[inline]
pub(in super::super) fn is_sample(number: u64, slot: u32) -> bool {
    // Fibonacci hashing: no requests that recur in turn are in step with it, nor are slots in step with each other.
    let hash = number
        .wrapping_add(slot.into())
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 32;
    hash >> (32 - SAMPLE_EVERY.ilog2()) == 0
}

/// What a thread has seen of its requests since its last vote.
#[derive(Debug, Default)]
pub(in super::super) struct Window {
    /// Without buckets, how many slots the samples looked at; with buckets, how many narrow requests, up to
    /// [`MOST_REPEATS`].
    count: AtomicU32,
    /// Without buckets, how many samples were not far apart; with buckets, what listed requests paid, in looks at
    /// slots.
    cost: AtomicU32,
    /// Without buckets, the number of digits of the length of the longest range.
    digits: AtomicU8,
}

/// What a listed request met, besides what it looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Met {
    /// How many others are listed in its lines.
    pub(in super::super) others: u32,
    /// If it found no room there, how many slots it has looked at.
    pub(in super::super) slots: u32,
}

impl Met {
    pub(in super::super) const NOBODY: Self = Self {
        others: 0,
        slots: 0,
    };
}

/// A thread's vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Ballot {
    For,
    Against,
}

impl Window {
    /// Notes a sample in a lock without buckets: a request that looks at `slots` slots, and the range of the one before
    /// in the same slot. At the end of a window, whether the lock should get buckets, and for ranges of which length,
    /// in digits.
    pub(in super::super) fn note_sample(
        &self,
        before: (u64, u64),
        span: Span,
        slots: usize,
    ) -> Option<(Ballot, u32)> {
        // The same range again says nothing. Nor does one that overlaps the last: its thread asks for wide ranges.
        if before.0 <= span.last() && span.start() <= before.1 {
            return None;
        }
        let earlier = before.1.saturating_sub(before.0);
        let longer = earlier.max(span.last() - span.start());
        let is_near = before.0.abs_diff(span.start()) / FAR <= longer;
        let near = self.cost.load(Relaxed) + u32::from(is_near);
        let digits = if is_near {
            self.digits.load(Relaxed)
        } else {
            let digits = (u64::BITS - longer.leading_zeros()) as u8;
            self.digits.load(Relaxed).max(digits)
        };
        // A window is over when its samples have looked at so many slots: requests that look at many are soon many.
        let count = self.count.load(Relaxed) + slots.min(WINDOW as usize) as u32;
        let is_over = count >= WINDOW;
        self.count.store(if is_over { 0 } else { count }, Relaxed);
        self.cost.store(if is_over { 0 } else { near }, Relaxed);
        self.digits.store(if is_over { 0 } else { digits }, Relaxed);
        is_over.then(|| match near {
            0 => (Ballot::For, digits.into()),
            _ => (Ballot::Against, digits.into()),
        })
    }

    /// Counts a narrow request in a lock with buckets. Returns whether a window ends with it.
    #[inline]
    pub(in super::super) fn count_narrow(&self) -> bool {
        let count = self.count.load(Relaxed) % MOST_REPEATS + 1;
        self.count.store(count, Relaxed);
        count.is_multiple_of(WINDOW)
    }

    /// Whether the thread is to take the slots off the count that are idle: their owners may never come back, and one
    /// that does loses by it no more than by a useless grant.
    pub(in super::super) fn is_to_tidy(&self) -> bool {
        self.count.load(Relaxed) == MOST_REPEATS
    }

    /// Notes what a listed request met.
    pub(in super::super) fn pay(&self, met: Met) {
        let cost = self.cost.load(Relaxed);
        self.cost
            .store(cost + met.others * PRICE + met.slots, Relaxed);
    }

    /// At the end of a window, in a lock with `slots` slots: whether its requests paid more than a look at all slots
    /// for each.
    pub(in super::super) fn judge(&self, slots: u32) -> Ballot {
        let cost = self.cost.load(Relaxed);
        self.cost.store(0, Relaxed);
        match cost >= WINDOW * slots {
            true => Ballot::For,
            false => Ballot::Against,
        }
    }
}

/// What the threads of one lock have found together.
#[derive(Debug, Default)]
pub(in super::super) struct LockAdvice {
    /// How many more votes there were for a change than against it; or [`Self::RESTING`].
    votes: AtomicU32,
    /// How long the last rest is, in nanoseconds, and when it ends or has ended.
    length: AtomicU32,
    until: AtomicU64,
}

impl LockAdvice {
    const RESTING: u32 = u32::MAX;

    /// Whether narrow requests are listed, where there are buckets.
    #[inline]
    pub(in super::super) fn lists(&self) -> bool {
        self.votes.load(Relaxed) != Self::RESTING
    }

    /// Counts a vote. Returns whether it completes the number.
    pub(in super::super) fn vote(&self, ballot: Ballot) -> bool {
        let votes = self.votes.load(Relaxed);
        let now = match ballot {
            _ if votes == Self::RESTING => return false,
            Ballot::For => (votes + 1) % VOTES,
            Ballot::Against => votes.saturating_sub(1),
        };
        // A vote is lost if there is another at that time.
        let counts = now == votes
            || self
                .votes
                .compare_exchange(votes, now, Relaxed, Relaxed)
                .is_ok();
        counts && ballot == Ballot::For && now == 0
    }

    /// Counts a vote for a rest or against it. Ends a rest whose time is over.
    pub(in super::super) fn vote_on_rest(&self, ballot: Ballot, now: u64) {
        if !self.lists() && now >= self.until.load(Relaxed) {
            self.votes.store(0, Relaxed);
        } else if self.vote(ballot) {
            self.begin_rest(now);
        }
    }

    fn begin_rest(&self, now: u64) {
        let (ended, last) = (
            self.until.load(Relaxed),
            u64::from(self.length.load(Relaxed)),
        );
        if now < ended {
            return; // Another thread begins it.
        }
        let is_soon = last != 0 && now - ended < REST;
        let length = if is_soon {
            (2 * last).min(LONGEST_REST)
        } else {
            REST
        };
        let begins = self
            .until
            .compare_exchange(ended, now + length, Relaxed, Relaxed);
        if begins.is_ok() {
            self.length.store(length as u32, Relaxed);
            self.votes.store(Self::RESTING, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Ballot, FAR, LONGEST_REST, LockAdvice, MOST_REPEATS, Met, PRICE, REST, SAMPLE_EVERY, VOTES,
        WINDOW, Window, is_sample,
    };
    use crate::range::span::Span;

    /// A thread that does the same things in turn has each of them looked at, about as often as the others.
    #[test]
    fn samples_are_in_step_with_nothing() {
        for turns in 1..=64 {
            for turn in 0..turns {
                let samples = (0..1 << 12).filter(|round| is_sample(turn + round * turns, 0));
                let (count, fair) = (samples.count(), (1 << 12) / SAMPLE_EVERY as usize);
                assert!(
                    count > fair / 2 && count < 2 * fair,
                    "{turn} of {turns}: {count}"
                );
            }
        }
    }

    /// As many slots as make a window of eight samples.
    const SLOTS: usize = WINDOW as usize / SAMPLES;
    const SAMPLES: usize = 8;

    /// The vote at the end of a window of samples, each at that multiple of a request's length from the one before.
    fn samples(window: &Window, distances: [u64; SAMPLES]) -> (Ballot, u32) {
        let votes = distances.map(|distance| {
            let start = 1_000 * distance;
            window.note_sample(
                (0, 999),
                Span::of(start..start + 1_000).expect("it has positions"),
                SLOTS,
            )
        });
        let [before @ .., last] = votes;
        assert_eq!(before, [None; SAMPLES - 1]);
        last.expect("the window is over")
    }

    #[test]
    fn one_near_request_in_a_window_is_one_too_many() {
        let window = Window::default();
        let far = [2 * FAR; SAMPLES];
        assert_eq!(samples(&window, far), (Ballot::For, 10));
        let mut one_near = far;
        one_near[3] = FAR / 2;
        assert_eq!(samples(&window, one_near), (Ballot::Against, 10));
        assert_eq!(samples(&window, far), (Ballot::For, 10), "it begins anew");
        for range in [0..1_000, 999..u64::MAX] {
            let span = Span::of(range.clone()).expect("it has positions");
            let vote = window.note_sample((0, 999), span, SLOTS);
            assert_eq!(vote, None, "{range:?} overlaps the last");
        }
        assert_eq!(samples(&window, far), (Ballot::For, 10), "says nothing");
    }

    /// Long ranges of one window do not make the buckets for later ones long.
    #[test]
    fn a_window_has_the_longest_of_its_own_ranges() {
        let window = Window::default();
        let digits = |length: u64| {
            let span = Span::of(1 << 50..(1 << 50) + length).expect("it has positions");
            let votes = [(); SAMPLES].map(|()| window.note_sample((0, 999), span, SLOTS));
            votes[SAMPLES - 1].expect("the window is over").1
        };
        assert_eq!(digits(1 << 40), 40);
        assert_eq!(digits(1000), 10);
    }

    #[test]
    fn a_thread_votes_and_tidies_now_and_then() {
        let window = Window::default();
        let (mut votes, mut tidied) = (0, 0);
        for _ in 0..2 * MOST_REPEATS {
            if window.count_narrow() {
                votes += 1;
                tidied += u32::from(window.is_to_tidy());
            }
        }
        assert_eq!((votes, tidied), (2 * MOST_REPEATS / WINDOW, 2));
    }

    /// The vote after a window of requests each of which met that, in a lock with `slots` slots.
    fn vote(met: Met, slots: u32) -> Ballot {
        let window = Window::default();
        (0..WINDOW).for_each(|_| window.pay(met));
        window.judge(slots)
    }

    #[test]
    fn a_crowd_is_more_than_the_looks_that_it_saves() {
        let met = |others, slots| Met { others, slots };
        // All threads in one line, each of which meets half of the others.
        for slots in [4, 8, 40] {
            assert_eq!(vote(met(slots / 2, 0), slots), Ballot::For);
        }
        assert_eq!(vote(met(1, 0), 2 * PRICE), Ballot::Against, "a pair");
        assert_eq!(vote(met(2, 0), 64), Ballot::Against);
        for slots in [1, 4, 40, 1 << 12] {
            assert_eq!(vote(met(0, slots), slots), Ballot::For, "no room");
            assert_eq!(vote(met(0, 0), slots), Ballot::Against);
        }
    }

    /// Votes until the lock rests. Returns how many votes that took.
    fn votes(lock: &LockAdvice, now: u64) -> u32 {
        let mut votes = 0;
        while lock.lists() {
            lock.vote_on_rest(Ballot::For, now);
            votes += 1;
        }
        votes
    }

    /// How long the rest lasts that begins at that time.
    fn length(lock: &LockAdvice, now: u64) -> u64 {
        votes(lock, now);
        let is_over = |length: &u64| {
            lock.vote_on_rest(Ballot::For, now + length);
            lock.lists()
        };
        let lengths = (0..=WINDOW.ilog2()).map(|digits| REST << digits);
        lengths.into_iter().find(is_over).expect("a rest ends")
    }

    #[test]
    fn a_few_that_crowd_do_not_outvote_many() {
        let lock = LockAdvice::default();
        for _ in 0..100 * VOTES {
            lock.vote_on_rest(Ballot::For, 0);
            lock.vote_on_rest(Ballot::Against, 0);
        }
        assert!(lock.lists());
        assert_eq!(votes(&lock, 0), VOTES);
        lock.vote_on_rest(Ballot::Against, 0);
        assert!(!lock.lists(), "only time ends it");
    }

    /// So a lock whose requests crowd for good lists them rarely, and one whose load changes does so soon.
    #[test]
    fn each_rest_that_follows_soon_is_twice_as_long() {
        let lock = LockAdvice::default();
        let mut now = LONGEST_REST;
        let mut rests = |pause: u64| {
            let length = length(&lock, now);
            now += length + pause;
            length
        };
        let lengths = [(); 8].map(|()| rests(REST / 2));
        let doubled = [0, 1, 2, 3, 4, 5, 6, 6].map(|digits| REST << digits);
        assert_eq!(lengths, doubled);
        assert_eq!(rests(2 * REST), LONGEST_REST);
        assert_eq!(rests(0), REST, "it has listed for long");
    }
}
