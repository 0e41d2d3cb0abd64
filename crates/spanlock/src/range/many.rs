//! Acquiring several ranges, all or nothing.
//!
//! Free of deadlock, whoever else does the same: a request first waits for one range while it holds none, and only
//! *tries* the others; if one is taken it lets go of all and waits for that one. It cannot be part of a cycle, for
//! it never holds while it waits. If it is out of luck several times it acquires in ascending order, holding what
//! it has. Along a chain of such requests, each waiting for the next, the positions waited for ascend: the next one
//! holds something that overlaps this one's wanted range, and itself waits for something beyond what it holds. So
//! no chain closes.
//!
//! - **granules**: ranges are rounded to the lock's granules, and joined, before any is asked for. Of two in one granule
//!   the second would wait for the first (P3's segments do).

use super::guard::Held;
use super::raw::{Behind, RawRangeLock, RawRangeMutex, Wait};
use super::span::Span;
use smallvec::SmallVec;
use std::ops::RangeBounds;

/// How often a request lets go of everything before it acquires in order.
const POLITE_ROUNDS: usize = 3;

pub(super) type Spans = SmallVec<[Span; 8]>;

/// In whole granules of the lock and ascending order, with those joined that overlap or touch: a request must not
/// conflict with itself.
///
/// # Panics
/// When a range is reversed.
#[track_caller]
pub(super) fn arrange<R: RangeBounds<u64>>(
    raw: &impl RawRangeMutex,
    ranges: impl IntoIterator<Item = R>,
) -> Spans {
    let mut all = Spans::new();
    for range in ranges {
        let span = Span::of(range);
        // [granules]
        all.extend(span.map(|span| {
            if prim::intact!("granules") {
                raw.granule(span)
            } else {
                span
            }
        }));
    }
    all.sort_unstable_by_key(|span| span.start());
    let mut arranged = Spans::new();
    for span in all {
        match arranged.last().and_then(|last| last.joined(span)) {
            Some(joined) => *arranged.last_mut().expect("just seen") = joined,
            None => arranged.push(span),
        }
    }
    arranged
}

/// What is held of several ranges.
type AllHeld<'a, L> = SmallVec<[Held<'a, L>; 8]>;

/// What was acquired last, for the next one, which lies behind.
type Last<'a, L> = Option<Behind<'a, <L as RawRangeMutex>::Token>>;

/// In which mode ranges are acquired.
pub(super) trait Way<L: RawRangeMutex> {
    /// # Safety
    /// The last is held in the same lock, by this thread and in this way, and ends before the span starts.
    #[track_caller]
    unsafe fn acquire(raw: &L, span: Span, wait: Wait, last: Last<'_, L>) -> Option<L::Token>;
}

/// With others who share them.
pub(super) struct Shared;

/// Alone.
pub(super) struct Exclusive;

impl<L: RawRangeLock> Way<L> for Shared {
    unsafe fn acquire(raw: &L, span: Span, wait: Wait, last: Last<'_, L>) -> Option<L::Token> {
        match last {
            // SAFETY: the caller's.
            Some(last) => unsafe { raw.lock_shared_behind(span, wait, last) },
            None => raw.lock_shared(span, wait),
        }
    }
}

impl<L: RawRangeMutex> Way<L> for Exclusive {
    unsafe fn acquire(raw: &L, span: Span, wait: Wait, last: Last<'_, L>) -> Option<L::Token> {
        match last {
            // SAFETY: the caller's.
            Some(last) => unsafe { raw.lock_exclusive_behind(span, wait, last) },
            None => raw.lock_exclusive(span, wait),
        }
    }
}

/// Acquires one of `spans`, of which the one before it is the last held, if any is.
#[track_caller]
fn hold<'a, L: RawRangeMutex, W: Way<L>>(
    raw: &'a L,
    spans: &[Span],
    at: usize,
    wait: Wait,
    last: Option<&Held<'a, L>>,
) -> Option<Held<'a, L>> {
    let last = last
        .and_then(Held::token)
        .map(|token| Behind { token, ranges: at });
    // SAFETY: spans ascend and are disjoint.
    let token = unsafe { W::acquire(raw, spans[at], wait, last) }?;
    Some(Held::new(raw, Some(token)))
}

/// Acquires all of `spans`, which are [`arrange`]d; `None` if that takes longer than `wait` allows.
///
/// Each but the first begins to look behind the one acquired before it: all together pass each range of the lock about
/// once.
#[track_caller]
pub(super) fn acquire<'a, L: RawRangeMutex, W: Way<L>>(
    _: W,
    raw: &'a L,
    spans: &[Span],
    wait: Wait,
) -> Option<AllHeld<'a, L>> {
    let rounds = if wait == Wait::Never {
        1
    } else {
        POLITE_ROUNDS
    };
    let mut awaited = 0;
    for _ in 0..rounds {
        if spans.is_empty() {
            break;
        }
        let mut held = AllHeld::new();
        held.push(hold::<L, W>(raw, spans, awaited, wait, None)?);
        let mut taken = None;
        for at in (0..spans.len()).filter(|&at| at != awaited) {
            // The one before it: the first that was acquired, or the last.
            let last = match at.checked_sub(1) {
                None => None,
                Some(before) if before == awaited => held.first(),
                Some(_) => held.last(),
            };
            let Some(next) = hold::<L, W>(raw, spans, at, Wait::Never, last) else {
                taken = Some(at);
                break;
            };
            held.push(next);
        }
        match taken {
            None => return Some(held),
            Some(at) => awaited = at,
        }
    }
    if wait == Wait::Never && !spans.is_empty() {
        return None;
    }
    let mut held = AllHeld::new();
    for at in 0..spans.len() {
        let next = hold::<L, W>(raw, spans, at, wait, held.last())?;
        held.push(next);
    }
    Some(held)
}

#[cfg(test)]
mod tests {
    use super::arrange;
    use crate::range::list::ListEx;
    use crate::range::raw::RawRangeMutex;
    use crate::range::segment::SrlArray;
    use std::ops::Range;

    fn arranged<const N: usize>(
        raw: &impl RawRangeMutex,
        ranges: [Range<u64>; N],
    ) -> Vec<(u64, u64)> {
        arrange(raw, ranges)
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
