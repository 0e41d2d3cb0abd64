//! Ranges of pages.

use crate::vm::kind::PAGE;

/// A range of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Range {
    /// All addresses that any space has, with room for a page on both sides.
    pub(crate) const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    #[inline]
    pub(crate) fn hull(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    #[inline]
    pub(crate) fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// With a page on each side.
    #[inline]
    pub(crate) fn widened(self) -> Self {
        Self {
            start: self.start.saturating_sub(PAGE),
            end: self.end.saturating_add(PAGE),
        }
    }

    /// The part within `other`; if there is none, some range of no length.
    #[inline]
    pub(crate) fn within(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self {
            start,
            end: self.end.min(other.end).max(start),
        }
    }

    /// The part before an address; if there is none, some range of no length.
    #[inline]
    pub(crate) fn before(self, address: u64) -> Self {
        let end = self.end.min(address).max(self.start);
        Self { end, ..self }
    }

    /// The part from an address on; if there is none, some range of no length.
    #[inline]
    pub(crate) fn after(self, address: u64) -> Self {
        let start = self.start.max(address).min(self.end);
        Self { start, ..self }
    }

    /// All between two addresses.
    #[inline]
    pub(crate) fn between(one: u64, other: u64) -> Self {
        Self {
            start: one.min(other),
            end: one.max(other),
        }
    }

    #[inline]
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }
}
