//! Whether a narrow request is listed in buckets, and when a lock gets them.
//!
//! A thread decides about its narrow requests, once for many of them ([`Policy`]). While the lock rests, it lists none
//! (`crowd.rs`). Nothing here decides who holds what.

use super::board::{Board, Counted};
use super::buckets::Buckets;
use super::crowd::is_crowd;
use super::policy::{self, JUDGE_EVERY, Looks, MANY, Policy};
use super::slot::Slot;
use crate::range::span::Span;
use prim::atomic::Ordering;
use prim::clock;

/// Where a request is to be listed, and what it meets there to be noted.
#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    pub(super) buckets: &'a Buckets,
    /// The policy of the thread's home slot.
    pub(super) policy: &'a Policy,
}

impl Listing<'_> {
    /// The thread's next requests are not listed, if the lock lists none.
    pub(super) fn stop_if_resting(self) -> bool {
        let is_on = self.buckets.rest.is_on();
        if is_on {
            self.policy.list(false);
        }
        is_on
    }
}

impl Board {
    /// The buckets, if there are any and the range that a thread is about to announce in a slot of its own is to be
    /// listed. If it is time for buckets, the thread makes them.
    #[inline]
    pub(super) fn listing_of<'a>(
        &'a self,
        home: &'a Slot,
        slot: &Slot,
        span: Span,
    ) -> Option<Listing<'a>> {
        match self.buckets() {
            Some(buckets) => self.listing(buckets, home, span),
            None => {
                if policy::is_sample(slot.noted_state().number(), slot.number()) {
                    self.judge_spread(home, slot, span);
                }
                None
            }
        }
    }

    /// Makes buckets, if it is time for them.
    #[cold]
    fn judge_spread(&self, home: &Slot, slot: &Slot, span: Span) {
        // What came before in the slot, or, in a new one, in the home slot.
        let was_used = |slot: &&Slot| slot.load(Ordering::Relaxed).number() != 0;
        let Some(before) = [slot, home].into_iter().find(was_used) else {
            return;
        };
        let spread = home
            .policy()
            .note_spread(before.announced(), span, self.len());
        let Some(Looks { slots, digits }) = spread else {
            return;
        };
        // Relaxed: a hint. The request that completes the number makes the buckets, for ranges of its thread: a few
        // long ranges of another thread would make them useless for all.
        let before = self.looks.fetch_add(slots, Ordering::Relaxed);
        if before <= MANY && before + slots > MANY {
            self.make_buckets(digits);
        }
    }

    /// Where the range that the thread with that home slot is about to announce is to be listed, if it is narrow, and
    /// it pays to list the thread's narrow requests.
    #[inline]
    pub(super) fn listing<'a>(
        &self,
        buckets: &'a Buckets,
        home: &'a Slot,
        span: Span,
    ) -> Option<Listing<'a>> {
        let policy = home.policy();
        let judge = || self.judge_listing(home, buckets);
        let lists = buckets.is_narrow(span.start(), span.last())
            && policy.count_narrow().unwrap_or_else(judge);
        lists.then_some(Listing { buckets, policy })
    }

    /// Decides whether narrow requests are listed. Now and then, uncounts the slots that are idle before.
    #[cold]
    fn judge_listing(&self, home: &Slot, buckets: &Buckets) -> bool {
        // Relaxed: a hint.
        let counted = || Counted(self.counted.load(Ordering::Relaxed));
        if !counted().is_none() && home.policy().is_to_tidy() {
            self.tidy();
        }
        if let Some(met) = home.policy().take_met()
            && !is_crowd(met, JUDGE_EVERY, self.len())
        {
            buckets.rest.vote_against();
        }
        let counted = counted();
        let pays = !buckets.rest.continue_or_end(clock::nanoseconds)
            && (counted.is_none() || counted.only().is_some() || !self.has_several_wide(buckets));
        home.policy().list(pays);
        pays
    }

    /// Notes how many others a listed request met in its lines.
    #[inline(never)] // So that one that is alone is short.
    pub(super) fn note_congestion(&self, listing: Listing<'_>, others: u32) {
        if listing.stop_if_resting() {
            return;
        }
        let [before, now] = listing
            .policy
            .add_met(others)
            .map(|met| is_crowd(met, JUDGE_EVERY, self.len()));
        if now && !before {
            listing.buckets.rest.vote_for(clock::nanoseconds);
        }
    }

    /// Whether several slots are counted because of wide ranges. (Not whether several are counted: a thread whose
    /// requests are not listed is counted, too, and then all would decide as they did before.)
    #[cold]
    fn has_several_wide(&self, buckets: &Buckets) -> bool {
        let mut wide = 0;
        let second = self.find(|slot| {
            let (start, last) = slot.announced();
            let is_counted = slot.load(Ordering::Relaxed).is_counted();
            wide += u32::from(is_counted && !buckets.is_narrow(start, last));
            (wide == 2).then_some(())
        });
        second.is_some()
    }
}
