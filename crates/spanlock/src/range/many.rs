//! Acquiring one range or several, all or nothing.
//!
//! ```text
//!   wanted: A B C, ascending          round 1: wait for A;  try B, try C --> C is taken: release A and B
//!                                     round 2: wait for C;  try A, try B --> ...
//!                                     after three rounds: wait for A, then B, then C, keeping what it has
//! ```
//!
//! # Why such calls do not deadlock with each other
//!
//! In the first rounds a call waits for one range while it holds none. It only *tries* the others, and releases all it
//! has when one is taken. A thread that holds nothing while it waits is in no cycle. In the last round the call
//! acquires in ascending order and holds what it has. Follow a chain of such calls, each waiting for the next. The next
//! call holds something that overlaps the range that this call waits for, and itself waits for something beyond what it
//! holds. So the positions waited for ascend along the chain, and no chain closes.
//!
//! # Edges
//!
//! - **many-try-looks**: a call that may not wait looks for what is in its way before it acquires the first range. So
//!   one that somebody refuses for as long as it lasts holds nothing meanwhile that would refuse others.
//! - **granules**: ranges are rounded to the lock's granules, and joined, before any is asked for. Otherwise the second
//!   of two ranges in one granule would wait for the first (in a segment lock).

use super::guard::{Guards, HeldToken};
use super::order::{Positions, Ranges};
use super::raw::{Ask, Behind, Mode, RawRangeLock, RawRangeMutex, Wait};
use super::span::Span;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// In how many rounds a call releases everything before it waits again.
pub(super) const EMPTY_HANDED_ROUNDS: usize = 3;

pub(super) type Spans = SmallVec<[Span; 8]>;

/// What a call holds of several ranges.
pub(super) type AllHeld<H> = SmallVec<[H; 8]>;

/// The mode of an acquisition: [`Shared`] or [`Exclusive`].
pub(super) trait AcquireMode<L: RawRangeMutex> {
    const MODE: Mode;

    /// Acquires a range in this mode.
    #[track_caller]
    fn acquire(raw: &L, ask: Ask<'_, L::Token>) -> Option<L::Token>;
}

/// Together with other requests that share.
pub(super) struct Shared;

/// Alone.
pub(super) struct Exclusive;

impl<L: RawRangeLock> AcquireMode<L> for Shared {
    const MODE: Mode = Mode::Shared;

    #[inline]
    fn acquire(raw: &L, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        raw.lock_shared(ask)
    }
}

impl<L: RawRangeMutex> AcquireMode<L> for Exclusive {
    const MODE: Mode = Mode::Exclusive;

    #[inline]
    fn acquire(raw: &L, ask: Ask<'_, L::Token>) -> Option<L::Token> {
        raw.lock_exclusive(ask)
    }
}

/// Acquires one range; `None` if that takes longer than `wait` allows. An empty range is held at once.
///
/// # Panics
/// When the range is reversed.
#[inline]
#[track_caller]
pub(super) fn acquire_one<'a, L: RawRangeMutex, M: AcquireMode<L>>(
    _: M,
    raw: &'a L,
    range: impl RangeBounds<u64>,
    wait: Wait,
) -> Option<HeldToken<'a, L>> {
    let token = match Span::of(range) {
        Some(span) => Some(M::acquire(raw, Ask::new(span, wait))?),
        None => None,
    };
    Some(HeldToken::new(raw, token))
}

/// Acquires several ranges, each with a guard that `guard` makes; `None` if that takes longer than `wait` allows.
///
/// # Panics
/// When a range is reversed.
#[track_caller]
pub(super) fn acquire<'a, L: RawRangeMutex, M: AcquireMode<L>, R: RangeBounds<u64>, G>(
    _: M,
    raw: &'a L,
    ranges: impl IntoIterator<Item = R>,
    wait: Wait,
    guard: impl FnMut(HeldToken<'a, L>) -> G,
) -> Option<Guards<G>> {
    let mut spans = Spans::new();
    for range in ranges {
        spans.extend(Span::of(range));
    }
    acquire_spans::<_, M, _>(raw, arrange(raw, &Positions, spans), wait, guard)
}

/// Acquires several ranges that are [arranged](arrange).
#[track_caller]
pub(super) fn acquire_spans<'a, L: RawRangeMutex, M: AcquireMode<L>, G>(
    raw: &'a L,
    spans: Spans,
    wait: Wait,
    guard: impl FnMut(HeldToken<'a, L>) -> G,
) -> Option<Guards<G>> {
    let mode = PhantomData::<M>;
    let Ok(held) = ThreadRanges { raw, spans, mode }.acquire_all(wait);
    let held = held?;
    Some(Guards::new(held.into_iter().map(guard).collect()))
}

/// The ranges in whole granules of the lock and in ascending order, with those joined that overlap or touch: a call
/// must not conflict with itself.
pub(super) fn arrange<K: ?Sized>(
    raw: &impl RawRangeMutex,
    order: &impl Ranges<K>,
    mut all: Spans,
) -> Spans {
    for span in &mut all {
        // [granules]
        if prim::intact!("granules") {
            *span = raw.granule(*span);
        }
    }
    order.sort(&mut all, |&span| span);
    let mut arranged = Spans::new();
    for span in all {
        let last = arranged.last();
        match last.and_then(|&last| order.joined(last, span)) {
            Some(joined) => *arranged.last_mut().expect("just seen") = joined,
            None => arranged.push(span),
        }
    }
    arranged
}

/// Several ranges that a call acquires, all or none: in ascending order, and apart from each other.
pub(super) trait Several {
    /// What is held of one of them. Dropping it releases it.
    type Hold;
    /// Why one is refused whatever the call does.
    type Refusal;

    /// How many there are.
    fn count(&self) -> usize;

    /// Whether somebody has one of them, as far as a look can tell.
    fn is_taken(&self, at: usize) -> bool;

    /// Acquires one of them. `last` is what the call holds of the one before it, if anything. `None`: that would take
    /// longer than `wait` allows.
    #[track_caller]
    fn acquire(
        &self,
        at: usize,
        wait: Wait,
        last: Option<&Self::Hold>,
    ) -> Result<Option<Self::Hold>, Self::Refusal>;

    /// Acquires all of them; `None` if that takes longer than `wait` allows.
    ///
    /// Each search but the first may begin behind the range acquired before it: together they pass each range of the
    /// lock about once.
    #[track_caller]
    fn acquire_all(&self, wait: Wait) -> Result<Option<AllHeld<Self::Hold>>, Self::Refusal> {
        let rounds = if wait == Wait::Never {
            1
        } else {
            EMPTY_HANDED_ROUNDS
        };
        let all = self.count();
        // [many-try-looks]
        let looks = wait == Wait::Never && all > 1 && prim::intact!("many-try-looks");
        if looks && (0..all).any(|at| self.is_taken(at)) {
            return Ok(None);
        }
        let mut awaited = 0;
        for _ in 0..rounds {
            if all == 0 {
                break;
            }
            let mut held = AllHeld::new();
            match self.acquire(awaited, wait, None)? {
                Some(first) => held.push(first),
                None => return Ok(None),
            }
            let mut taken = None;
            for at in (0..all).filter(|&at| at != awaited) {
                // The one before it was acquired first, or last.
                let last = match at.checked_sub(1) {
                    None => None,
                    Some(before) if before == awaited => held.first(),
                    Some(_) => held.last(),
                };
                let Some(next) = self.acquire(at, Wait::Never, last)? else {
                    taken = Some(at);
                    break;
                };
                held.push(next);
            }
            match taken {
                None => return Ok(Some(held)),
                Some(at) => awaited = at,
            }
        }
        if wait == Wait::Never && all > 0 {
            return Ok(None);
        }
        let mut held = AllHeld::new();
        for at in 0..all {
            match self.acquire(at, wait, held.last())? {
                Some(next) => held.push(next),
                None => return Ok(None),
            }
        }
        Ok(Some(held))
    }
}

/// The ranges that a thread acquires in one mode.
struct ThreadRanges<'a, L, M> {
    raw: &'a L,
    spans: Spans,
    mode: PhantomData<M>,
}

impl<'a, L: RawRangeMutex, M: AcquireMode<L>> Several for ThreadRanges<'a, L, M> {
    type Hold = HeldToken<'a, L>;
    type Refusal = Infallible;

    fn count(&self) -> usize {
        self.spans.len()
    }

    fn is_taken(&self, at: usize) -> bool {
        self.raw.is_taken(self.spans[at], M::MODE)
    }

    #[track_caller]
    fn acquire(
        &self,
        at: usize,
        wait: Wait,
        last: Option<&HeldToken<'a, L>>,
    ) -> Result<Option<HeldToken<'a, L>>, Infallible> {
        let span = self.spans[at];
        let ask = match last.and_then(HeldToken::token) {
            // SAFETY: it is held in this lock and mode. Spans ascend and are disjoint, so it ends before this one
            // starts.
            Some(token) => unsafe { Ask::after(Behind { token, ranges: at }, span, wait) },
            None => Ask::new(span, wait),
        };
        let token = M::acquire(self.raw, ask);
        Ok(token.map(|token| HeldToken::new(self.raw, Some(token))))
    }
}

#[cfg(test)]
mod tests {
    use super::arrange;
    use crate::range::list::ListEx;
    use crate::range::order::Positions;
    use crate::range::raw::RawRangeMutex;
    use crate::range::segment::SrlArray;
    use crate::range::span::Span;
    use std::ops::Range;

    fn arranged<const N: usize>(
        raw: &impl RawRangeMutex,
        ranges: [Range<u64>; N],
    ) -> Vec<(u64, u64)> {
        let spans = ranges.into_iter().filter_map(Span::of).collect();
        arrange(raw, &Positions, spans)
            .into_iter()
            .map(|span| (span.start(), span.last()))
            .collect()
    }

    #[test]
    fn spans_are_sorted_and_joined() {
        let ranges = [7..9, 0..3, 2..5, 40..40, 5..6, 20..21, 20..30];
        assert_eq!(arranged(&ListEx::new(), ranges), [(0, 5), (7, 8), (20, 29)]);
    }

    #[test]
    fn spans_are_joined_by_granules() {
        let lock = SrlArray::builder().segment(8).segments(8).build();
        let ranges = [44..45, 0..1, 6..7, 20..25, 28..29, 70..71, 60..61];
        assert_eq!(
            arranged(&lock, ranges),
            [(0, 7), (16, 31), (40, 47), (56, u64::MAX)]
        );
    }
}
