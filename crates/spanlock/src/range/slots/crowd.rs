//! When a lock with buckets lists no request in them: where requests crowd, all wait for the lines of a few buckets.
//!
//! ```text
//!              8 votes more of threads whose requests met a crowd than of others
//!    listing ---------------------------------------------------------------------> rest
//!       ^                                                                             |
//!       +-----------------------------------------------------------------------------+
//!              after 1 ms, or twice as long as the last time, if that ended less than 1 ms ago; 64 ms at most
//! ```
//!
//! It decides nothing about who holds what: a request that is not listed looks at all slots, and is counted.

use super::buckets::WORDS;
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many looks at slots cost about as much as one more request in the same line, which goes to and fro between both.
/// On a model checker nothing: it has models of requests that are not listed.
const PRICE: usize = prim::sized(12, 0);

/// A rest begins when the votes for it exceed those against it by this number: a few threads that crowd do not take the
/// buckets from many that are far apart, and vote more often, since they wait less.
const VOTES: u32 = 8;

/// Nanoseconds: a few times as long as it takes to find that requests still crowd. So a rest that begins later than
/// that after the last one has to do with other requests. It is short again.
const SHORTEST: u64 = 1 << 20;
const LONGEST: u64 = SHORTEST << 6;

/// How many met requests a request stands for that found no room in its buckets, in a lock with that number of slots.
/// It met all that are listed there, and it looks at all slots besides. So requests that find no room are a crowd,
/// however many slots there are.
pub(super) fn met_in_vain(slots: usize) -> u32 {
    (WORDS + slots.checked_div(PRICE).unwrap_or(0)) as u32
}

/// Whether `requests` listed requests met too many others, `met` in all, for what each saved: a look at `slots` slots.
#[inline]
pub(super) fn is_crowd(met: u32, requests: u32, slots: usize) -> bool {
    met as usize * PRICE > requests as usize * slots
}

/// Whether a lock's narrow requests are listed in its buckets. All numbers are hints.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// How many more votes there were for a rest than against it; or [`Rest::ON`].
    votes: AtomicU32,
    /// When the last one ends or has ended, and how long it is.
    until: AtomicU64,
    length: AtomicU64,
}

impl Rest {
    const ON: u32 = u32::MAX;

    /// Whether no request is to be listed, as far as anybody has noticed.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.votes.load(Relaxed) == Self::ON
    }

    /// Ends the rest, if its time is over. Returns whether one is still on.
    pub(super) fn continue_or_end(&self, now: impl FnOnce() -> u64) -> bool {
        if !self.is_on() {
            return false;
        }
        let goes_on = now() < self.until.load(Relaxed);
        if !goes_on {
            self.votes.store(0, Relaxed);
        }
        goes_on
    }

    /// Votes against a rest: the requests of a thread met no crowd.
    pub(super) fn vote_against(&self) {
        let votes = self.votes.load(Relaxed);
        if votes != 0 && votes != Self::ON {
            self.count(votes, votes - 1);
        }
    }

    /// Votes for a rest: the requests of a thread met a crowd. The last vote that it takes begins the rest.
    #[cold] // A few times before each rest.
    pub(super) fn vote_for(&self, now: impl FnOnce() -> u64) {
        match self.votes.load(Relaxed) {
            Self::ON => {}
            votes if votes + 1 == VOTES => self.begin(now()),
            votes => self.count(votes, votes + 1),
        }
    }

    fn count(&self, before: u32, votes: u32) {
        // A vote is lost if there is another at that time.
        let _ = self.votes.compare_exchange(before, votes, Relaxed, Relaxed);
    }

    fn begin(&self, now: u64) {
        let (ended, last) = (self.until.load(Relaxed), self.length.load(Relaxed));
        if now < ended {
            return; // Another thread begins it.
        }
        let is_soon = last != 0 && now - ended < SHORTEST;
        let length = if is_soon {
            (2 * last).min(LONGEST)
        } else {
            SHORTEST
        };
        let begins = self
            .until
            .compare_exchange(ended, now + length, Relaxed, Relaxed);
        if begins.is_ok() {
            self.length.store(length, Relaxed);
            self.votes.store(Self::ON, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Rest, SHORTEST, VOTES, is_crowd, met_in_vain};

    /// Votes until the lock rests. Returns how many votes that took.
    fn votes(rest: &Rest, now: u64) -> u32 {
        let mut votes = 0;
        while !rest.is_on() {
            rest.vote_for(|| now);
            votes += 1;
        }
        votes
    }

    /// How long the rest lasts that begins at that time.
    fn length(rest: &Rest, now: u64) -> u64 {
        votes(rest, now);
        let is_over = |length: &u64| !rest.continue_or_end(|| now + length);
        let lengths = (0..=6).map(|digits| SHORTEST << digits);
        lengths.into_iter().find(is_over).expect("a rest ends")
    }

    #[test]
    fn a_few_that_crowd_do_not_outvote_many() {
        let rest = Rest::default();
        for _ in 0..100 * VOTES {
            rest.vote_for(|| 0);
            rest.vote_against();
        }
        assert!(!rest.is_on());
        assert_eq!(votes(&rest, 0), VOTES);
        rest.vote_against();
        assert!(rest.is_on(), "only time ends it");
    }

    /// So a lock whose requests crowd for good lists them rarely, and one whose load changes does so soon.
    #[test]
    fn each_rest_that_follows_soon_is_twice_as_long() {
        let rest = Rest::default();
        let mut now = LONGEST;
        let mut rests = |pause: u64| {
            let length = length(&rest, now);
            now += length + pause;
            length
        };
        let lengths = [(); 8].map(|()| rests(SHORTEST / 2));
        let doubled = [0, 1, 2, 3, 4, 5, 6, 6].map(|digits| SHORTEST << digits);
        assert_eq!(lengths, doubled);
        assert_eq!(rests(2 * SHORTEST), LONGEST);
        assert_eq!(rests(0), SHORTEST, "it has listed for long");
    }

    #[test]
    fn a_crowd_is_more_than_the_looks_that_it_saves() {
        let requests = 64;
        // All threads in one line, each of which meets half of the others.
        for slots in [4, 8, 40] {
            assert!(is_crowd(requests * slots / 2, requests, slots as usize));
        }
        assert!(!is_crowd(requests / 2, requests, 8), "a pair in each line");
        assert!(!is_crowd(requests * 2, requests, 64));
        for slots in [4, 40, 288, 1 << 12] {
            assert!(is_crowd(requests * met_in_vain(slots), requests, slots));
        }
    }
}
