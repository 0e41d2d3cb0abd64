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
use super::raw::{RawRangeMutex, Wait};
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

/// Acquires all of `spans`, which are [`arrange`]d, by `acquire`; `None` if that takes longer than `wait` allows.
pub(super) fn acquire<'a, L: RawRangeMutex>(
    raw: &'a L,
    spans: &[Span],
    wait: Wait,
    acquire: impl Fn(Span, Wait) -> Option<L::Token>,
) -> Option<SmallVec<[Held<'a, L>; 8]>> {
    let hold = |at: usize, wait| Some(Held::new(raw, Some(acquire(spans[at], wait)?)));
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
        let mut held = SmallVec::new();
        held.push(hold(awaited, wait)?);
        let taken = (0..spans.len()).filter(|&at| at != awaited).find(|&at| {
            let granted = hold(at, Wait::Never);
            let missed = granted.is_none();
            held.extend(granted);
            missed
        });
        match taken {
            None => return Some(held),
            Some(at) => awaited = at,
        }
    }
    if wait == Wait::Never && !spans.is_empty() {
        return None;
    }
    (0..spans.len()).map(|at| hold(at, wait)).collect()
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
