//! A lock over keys that are numbers is a raw lock as the others are: so that it can be compared with them, and pass
//! their tests.

use super::{Key, KeyRange, KeyRangeLock, KeyRequest, Natural, OverKeys, WaitingForKeys};
use crate::range::inspect::{Request, Snapshot, WaitingRequest};
use crate::range::list::Token;
use crate::range::order::Ranges;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{Ask, AskBy, Asked, Mode, RawOwned, RawOwnedMutex};
use crate::range::raw::{RawRangeLock, RawRangeMutex};
use crate::range::sought::Sought;
use crate::range::span::Span;
use std::ops::{Bound, RangeBounds};
use std::task::{Poll, Waker};

impl<L: OverKeys<u64, Natural>> KeyRangeLock<u64, Natural, L> {
    fn keys_of(&self, span: Span) -> Sought {
        let sought = self.order().sought(&span);
        sought.expect("a span is not empty")
    }

    /// What is asked, in keys. `sought` has those of its span.
    fn asks<'a>(&self, ask: Ask<'a, Token>, sought: &Sought) -> Ask<'a, Token> {
        match ask.behind() {
            None => Ask::new(sought.span(), ask.wait),
            // SAFETY: as the caller has promised of the numbers.
            Some(behind) => unsafe { Ask::after(behind, sought.span(), ask.wait) },
        }
    }
}

/// The numbers between two ends; `None` if there are none, as between those just behind 3 and just before 4.
fn numbers<K: Key + Copy + Into<u64>>(range: &KeyRange<K>) -> Option<Span> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start.into(),
        Bound::Excluded(&start) => start.into().checked_add(1)?,
        Bound::Unbounded => u64::MIN,
    };
    let last = match range.end_bound() {
        Bound::Included(&last) => last.into(),
        Bound::Excluded(&end) => end.into().checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    Span::inclusive(start, last)
}

/// # Safety
/// The span names ends of cells that are in use, and their keys are numbers.
unsafe fn span_of(span: Span) -> Option<Span> {
    // SAFETY: the caller's promise.
    numbers::<u64>(&unsafe { KeyRange::of_span(span) })
}

// SAFETY: the order of the keys is that of the numbers.
unsafe impl<L: OverKeys<u64, Natural>> RawRangeMutex for KeyRangeLock<u64, Natural, L> {
    type Token = Token;

    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token> {
        let sought = self.keys_of(ask.span);
        self.raw.lock_exclusive(self.asks(ask, &sought))
    }

    unsafe fn unlock(&self, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.raw.unlock(token) };
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.raw.is_taken(self.keys_of(span).span(), mode)
    }

    unsafe fn span_of(&self, token: &Token) -> Option<Span> {
        // SAFETY: it is held, as the caller promises.
        let named = unsafe { token.span() };
        // SAFETY: so are the keys that its node bears.
        unsafe { span_of(named) }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let listed = self.snapshot();
        let request =
            |one: &KeyRequest<u64>| Some(Request::new(numbers(&one.range)?, one.mode, one.owner));
        let holders = listed.holders.iter().filter_map(request).collect();
        let waiting = |one: &WaitingForKeys<u64>| {
            let asked = request(&one.request)?;
            Some(WaitingRequest {
                request: asked,
                behind: one.behind.as_ref().and_then(request).unwrap_or(asked),
            })
        };
        let waiters = listed.waiters.iter().filter_map(waiting).collect();
        Some(Snapshot::new(holders, waiters))
    }
}

// SAFETY: the same.
unsafe impl<L: OverKeys<u64, Natural>> RawRangeLock for KeyRangeLock<u64, Natural, L> {
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token> {
        let sought = self.keys_of(ask.span);
        self.raw.lock_shared(self.asks(ask, &sought))
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: the caller's promise.
        unsafe { self.raw.downgrade(token) }
    }
}

// SAFETY: the same.
unsafe impl<L: OverKeys<u64, Natural>> RawOwnedMutex for KeyRangeLock<u64, Natural, L> {
    fn lock_by(&self, ask: AskBy<'_, Token>) -> Result<Token, Refusal> {
        let (sought, shares) = (self.keys_of(ask.span), self.shares(&ask));
        self.raw.lock_by(ask.naming(&sought, shares.as_ref()))
    }

    fn poll_by(
        &self,
        ask: AskBy<'_, Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<Token, Refusal>> {
        let (sought, shares) = (self.keys_of(ask.span), self.shares(&ask));
        let ask = ask.naming(&sought, shares.as_ref());
        self.raw.poll_by(ask, asked, waker)
    }

    fn forget_by(&self, owner: &Owner, mode: Mode, asked: &mut Asked) {
        self.raw.forget_by(owner, mode, asked);
    }

    unsafe fn unlock_by(&self, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.raw.unlock_by(token) };
    }
}

// SAFETY: the same.
unsafe impl<L: OverKeys<u64, Natural>> RawOwned for KeyRangeLock<u64, Natural, L> {
    unsafe fn share_by(&self, token: &Token) {
        // SAFETY: the caller's promise.
        unsafe { self.raw.share_by(token) };
    }
}

impl<L: OverKeys<u64, Natural>> KeyRangeLock<u64, Natural, L> {
    /// The keys of what the owner shares, if it wants some of that alone.
    fn shares(&self, ask: &AskBy<'_, Token>) -> Option<Sought> {
        ask.shares().map(|shares| self.keys_of(shares))
    }
}

#[cfg(test)]
mod tests {
    use super::KeyRangeLock;
    use crate::range::raw::RawRangeMutex;
    use std::ops::Bound;

    #[test]
    fn ranges_of_all_kinds_of_ends_are_listed_as_numbers() {
        let lock = KeyRangeLock::<u64>::new();
        let held = [
            lock.write(..3),
            lock.write(3..5),
            lock.write((Bound::Excluded(5), Bound::Excluded(6))),
            lock.write((Bound::Excluded(6), Bound::Included(8))),
            lock.write(9..),
        ];
        let listed = RawRangeMutex::snapshot(&lock).expect("it is listed");
        let spans: Vec<_> = listed.holders.iter().map(|one| one.span).collect();
        let ends = spans.iter().map(|span| (span.start(), span.last()));
        assert_eq!(
            ends.collect::<Vec<_>>(),
            [(0, 2), (3, 4), (7, 8), (9, u64::MAX)]
        );
        drop(held);
    }
}
