//! When a lock with buckets lists no request in them: where requests crowd, lines of buckets are what all wait for.
//!
//! ```text
//!              as many more threads meet a crowd than do not
//!   listing --------------------------------------------------> rest, for 1 ms; for twice as long as the last one,
//!      ^                                                         |         if that ended less than so long ago
//!      +----------------------- it is over ----------------------+
//! ```
//!
//! It decides nothing about who holds what: a request that is not listed looks at all slots, and is counted.

use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// To meet a request in a bucket costs about as much as to look at so many slots: both wait for the line, and so do
/// those that come after.
const PRICE: usize = 12;

/// So many more threads than not must meet a crowd: two that crowd do not take the buckets from many that do not.
const VOTES: u32 = 8;

/// Nanoseconds: many times as long as it takes to find that requests still crowd.
const SHORTEST: u64 = 1 << 20;
const LONGEST: u64 = SHORTEST << 6;

/// How many others the requests of a thread may meet, so many requests, if a look at so many slots is saved for each.
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

    /// The same. Ends the rest, if its time is over.
    pub(super) fn goes_on(&self, now: impl FnOnce() -> u64) -> bool {
        let goes_on = self.is_on() && now() < self.until.load(Relaxed);
        if !goes_on && self.is_on() {
            self.votes.store(0, Relaxed);
        }
        goes_on
    }

    /// A thread met no crowd in its last requests.
    pub(super) fn vote_against(&self) {
        let votes = self.votes.load(Relaxed);
        if votes != 0 && votes != Self::ON {
            // A vote is lost if there is another at that time.
            let _ = self
                .votes
                .compare_exchange(votes, votes - 1, Relaxed, Relaxed);
        }
    }

    /// A thread met a crowd.
    #[cold]
    pub(super) fn vote_for(&self, now: impl FnOnce() -> u64) {
        let votes = self.votes.load(Relaxed);
        if votes + 1 < VOTES {
            let _ = self
                .votes
                .compare_exchange(votes, votes + 1, Relaxed, Relaxed);
        } else if votes != Self::ON {
            self.begin(now());
        }
    }

    fn begin(&self, now: u64) {
        let (ended, last) = (self.until.load(Relaxed), self.length.load(Relaxed));
        let is_soon = now.saturating_sub(ended) < last;
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
