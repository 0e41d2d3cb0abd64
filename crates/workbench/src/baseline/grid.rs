//! A resource in parts of equal size: the granularity of locks with a bit or a word for each part.

use spanlock::range::Span;

/// Parts of a resource, by number. The last one also has all positions after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    positions: u64,
    last: u64,
}

impl Grid {
    /// A resource of so many positions in parts of so many.
    ///
    /// # Panics
    /// When the resource or a part is empty.
    pub(crate) fn new(units: u64, positions: u64) -> Self {
        assert!(
            units > 0 && positions > 0,
            "{units} positions in parts of {positions}"
        );
        Self {
            positions,
            last: (units - 1) / positions,
        }
    }

    /// The last part.
    pub(crate) const fn last(self) -> u64 {
        self.last
    }

    /// The first and the last part of a range.
    pub(crate) fn parts(self, span: Span) -> (u64, u64) {
        let part = |position: u64| (position / self.positions).min(self.last);
        (part(span.start()), part(span.last()))
    }

    /// All positions of the parts of a range.
    pub(crate) fn granule(self, span: Span) -> Span {
        let (first, last) = self.parts(span);
        let end = if last == self.last {
            u64::MAX
        } else {
            last * self.positions + (self.positions - 1)
        };
        Span::of(first * self.positions..=end).expect("a part has positions")
    }
}
