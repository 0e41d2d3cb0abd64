//! Ranges of positions: half-open as users write them, inclusive as locks keep them.

use std::fmt;
use std::ops::{Bound, RangeBounds};

/// A range of positions that is not empty: `start..=last`.
///
/// Both ends belong to it, so that a range can reach to `u64::MAX` itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    start: u64,
    last: u64,
}

impl Span {
    /// Every position.
    pub const ALL: Self = Self {
        start: 0,
        last: u64::MAX,
    };

    /// The span of a range as users write it; `None` for an empty one.
    ///
    /// # Errors
    /// [`ReversedRange`] when it starts after it ends.
    #[inline]
    pub fn new(range: impl RangeBounds<u64>) -> Result<Option<Self>, ReversedRange> {
        // Half-open, in a type that has room for one more than the last position.
        let start = match range.start_bound() {
            Bound::Included(&start) => u128::from(start),
            Bound::Excluded(&before) => u128::from(before) + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => u128::from(last) + 1,
            Bound::Excluded(&end) => u128::from(end),
            Bound::Unbounded => 1 << u64::BITS,
        };
        if start > end {
            return Err(ReversedRange { start, end });
        }
        // Neither is truncated: `start < end <= 2^64`.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        Ok((start < end).then(|| Self {
            start: start as u64,
            last: (end - 1) as u64,
        }))
    }

    /// As [`new`](Self::new), for callers to whom a reversed range is a mistake.
    ///
    /// # Panics
    /// When the range starts after it ends.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn of(range: impl RangeBounds<u64>) -> Option<Self> {
        match Self::new(range) {
            Ok(span) => span,
            Err(error) => panic!("{error}"),
        }
    }

    /// The positions from `start` to `last`, both included; `None` if `start` is after `last`.
    #[inline]
    #[must_use]
    pub const fn inclusive(start: u64, last: u64) -> Option<Self> {
        if start <= last {
            Some(Self { start, last })
        } else {
            None
        }
    }

    /// The first position.
    #[inline]
    #[must_use]
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The last position, which belongs to the span.
    #[inline]
    #[must_use]
    pub const fn last(self) -> u64 {
        self.last
    }

    /// Whether the two share a position.
    #[inline]
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start <= other.last && other.start <= self.last
    }

    /// The smallest span that holds both, if they overlap or touch.
    #[must_use]
    pub fn joined(self, other: Self) -> Option<Self> {
        let apart = |a: Self, b: Self| a.last.checked_add(1).is_some_and(|next| next < b.start);
        (!apart(self, other) && !apart(other, self)).then(|| Self {
            start: self.start.min(other.start),
            last: self.last.max(other.last),
        })
    }
}

impl Span {
    /// What two words name, in a lock whose order knows them.
    #[inline]
    pub(super) const fn named(start: u64, last: u64) -> Self {
        Self { start, last }
    }

    /// From its start to the end of `last`, which does not end before it.
    pub(super) const fn to(self, last: Self) -> Self {
        Self {
            start: self.start,
            last: last.last,
        }
    }

    /// What the two have in common.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        self.overlaps(other).then(|| Self {
            start: self.start.max(other.start),
            last: self.last.min(other.last),
        })
    }

    /// What is left of it before `other` and behind it.
    #[must_use]
    pub fn without(self, other: Self) -> [Option<Self>; 2] {
        let before = (self.start < other.start).then(|| Self {
            start: self.start,
            last: self.last.min(other.start - 1),
        });
        let behind = (self.last > other.last).then(|| Self {
            start: self.start.max(other.last + 1),
            last: self.last,
        });
        [before, behind]
    }
}

impl RangeBounds<u64> for Span {
    fn start_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&u64> {
        Bound::Included(&self.last)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.start, self.last)
    }
}

/// A range that starts after it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReversedRange {
    start: u128,
    end: u128,
}

impl ReversedRange {
    pub(super) fn new(start: u128, end: u128) -> Self {
        Self { start, end }
    }
}

impl fmt::Display for ReversedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end } = self;
        write!(
            f,
            "range {start}..{end} is reversed: expected its start, {start}, not to be after its end, {end}"
        )
    }
}

impl std::error::Error for ReversedRange {}

#[cfg(test)]
mod tests {
    use super::{ReversedRange, Span};
    use std::ops::Bound;

    const MAX: u64 = u64::MAX;

    fn span(start: u64, last: u64) -> Span {
        Span { start, last }
    }

    #[test]
    fn every_way_to_write_a_range() {
        assert_eq!(Span::new(..), Ok(Some(Span::ALL)));
        assert_eq!(Span::new(0..=MAX), Ok(Some(Span::ALL)));
        assert_eq!(Span::new(3..5), Ok(Some(span(3, 4))));
        assert_eq!(Span::new(3..=5), Ok(Some(span(3, 5))));
        assert_eq!(Span::new(..5), Ok(Some(span(0, 4))));
        assert_eq!(Span::new(MAX..), Ok(Some(span(MAX, MAX))));
        assert_eq!(Span::new(MAX..=MAX), Ok(Some(span(MAX, MAX))));
        let open = (Bound::Excluded(3), Bound::Excluded(6));
        assert_eq!(Span::new(open), Ok(Some(span(4, 5))));
    }

    #[test]
    fn spans_are_cut() {
        assert_eq!(span(3, 9).intersection(span(5, MAX)), Some(span(5, 9)));
        assert_eq!(span(3, 9).intersection(span(10, 12)), None);
        assert_eq!(
            span(3, 9).without(span(5, 6)),
            [Some(span(3, 4)), Some(span(7, 9))]
        );
        assert_eq!(span(3, 9).without(Span::ALL), [None, None]);
        assert_eq!(span(3, 9).without(span(0, 4)), [None, Some(span(5, 9))]);
        assert_eq!(Span::ALL.without(span(0, MAX)), [None, None]);
        assert_eq!(
            Span::ALL.without(span(MAX, MAX)),
            [Some(span(0, MAX - 1)), None]
        );
        // Apart: the whole is on one side.
        assert_eq!(span(3, 4).without(span(7, 8)), [Some(span(3, 4)), None]);
        assert_eq!(span(7, 8).without(span(3, 4)), [None, Some(span(7, 8))]);
        assert_eq!(Span::of(span(3, 9)), Some(span(3, 9)));
    }

    #[test]
    fn both_ends_given() {
        assert_eq!(Span::inclusive(3, 5), Some(span(3, 5)));
        assert_eq!(Span::inclusive(0, MAX), Some(Span::ALL));
        assert_eq!(Span::inclusive(MAX, MAX), Some(span(MAX, MAX)));
        assert_eq!(Span::inclusive(5, 4), None);
    }

    #[test]
    fn empty_ranges_anywhere() {
        for at in [0, 7, MAX] {
            assert_eq!(Span::new(at..at), Ok(None));
        }
        #[expect(clippy::reversed_empty_ranges, reason = "it is the case under test")]
        let closed = 5..=4;
        assert_eq!(Span::new(closed), Ok(None));
        let after_the_end = (Bound::Excluded(MAX), Bound::Unbounded);
        assert_eq!(Span::new(after_the_end), Ok(None));
    }

    #[test]
    fn reversed_ranges_name_their_bounds() {
        #[expect(clippy::reversed_empty_ranges, reason = "it is the case under test")]
        let reversed = 5..3;
        let error: ReversedRange = Span::new(reversed).unwrap_err();
        let text = error.to_string();
        assert!(text.contains('5') && text.contains('3'), "{text}");
        let open = (Bound::Excluded(3), Bound::Excluded(3));
        assert!(Span::new(open).is_err());
    }

    #[test]
    fn overlap_is_by_shared_position() {
        assert!(span(0, 4).overlaps(span(4, 9)));
        assert!(!span(0, 4).overlaps(span(5, 9)));
        assert!(!span(5, 9).overlaps(span(0, 4)));
        assert!(span(0, MAX).overlaps(span(MAX, MAX)));
    }

    #[test]
    fn joining() {
        assert_eq!(span(0, 4).joined(span(5, 9)), Some(span(0, 9)));
        assert_eq!(span(5, 9).joined(span(0, 4)), Some(span(0, 9)));
        assert_eq!(span(0, 4).joined(span(6, 9)), None);
        assert_eq!(span(6, 9).joined(span(0, 4)), None);
        assert_eq!(span(0, MAX).joined(span(3, 4)), Some(Span::ALL));
    }
}
