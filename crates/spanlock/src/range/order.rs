//! How the ranges of a lock compare.
//!
//! A request names its range by two words, a [`Span`]. In most locks the words are positions, and compare as numbers.
//! In a [lock over keys](super::keys) they are the names of two ends, and the lock's order knows the keys there. The
//! code that all locks share asks the lock's order, and does not look at the words.

use super::inspect::Request;
use super::shown::{Shown, ShownKeys};
use super::sought::Sought;
use super::span::Span;
use prim::sync::Arc;
use std::fmt;
use std::ops::RangeBounds;

/// Compares the ranges of one lock.
///
/// The answers may be wrong, or contradict each other, where a user's code compares keys. Then requests may be granted
/// that exclude each other, and nothing worse: no step relies on an answer for memory safety, nor for its end.
pub trait Order: fmt::Debug + Send + Sync {
    /// Whether the two share a position.
    fn overlap(&self, one: Span, other: Span) -> bool;

    /// Whether `one` starts before `other` starts.
    fn starts_before(&self, one: Span, other: Span) -> bool;

    /// Whether `one` starts behind the end of `other`.
    fn is_behind(&self, one: Span, other: Span) -> bool;

    /// Whether `one` is all of `other`, and perhaps more.
    fn covers(&self, one: Span, other: Span) -> bool;

    /// A range as people read it, if it is one of keys.
    fn shown(&self, _span: Span) -> Option<ShownKeys> {
        None
    }

    /// Whether the two cannot be granted together.
    #[inline]
    fn conflict(&self, one: &Request, other: &Request) -> bool {
        one.mode.conflicts(other.mode) && self.overlap(one.span, other.span)
    }

    /// Where another request stands in a list, seen from ours.
    #[inline]
    fn relation(&self, other: &Request, mine: &Request) -> Relation {
        if self.conflict(mine, other) {
            Relation::Conflict
        } else if self.starts_before(other.span, mine.span) {
            Relation::Earlier
        } else {
            Relation::Later
        }
    }
}

/// Where another request stands in a list, seen from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Its range starts before ours and does not conflict with it.
    Earlier,
    /// Its range starts no earlier than ours and does not conflict with it.
    Later,
    Conflict,
}

/// The order of positions, which are numbers.
#[derive(Debug, Clone, Copy)]
pub struct Positions;

impl Order for Positions {
    #[inline]
    fn overlap(&self, one: Span, other: Span) -> bool {
        one.overlaps(other)
    }

    #[inline]
    fn starts_before(&self, one: Span, other: Span) -> bool {
        one.start() < other.start()
    }

    #[inline]
    fn is_behind(&self, one: Span, other: Span) -> bool {
        one.start() > other.last()
    }

    fn covers(&self, one: Span, other: Span) -> bool {
        one.joined(other) == Some(one)
    }
}

/// What the typed locks do with ranges over keys of a type, or over positions. As for [`Order`], the answers may be
/// wrong.
pub trait Ranges<K: ?Sized>: Order {
    /// What of a range is to be asked for; `None` if it is empty.
    ///
    /// # Panics
    /// When it is reversed.
    #[track_caller]
    fn sought(&self, range: &impl RangeBounds<K>) -> Option<Sought>;

    /// Everything.
    fn everything(&self) -> Sought;

    /// A part of ranges that live, to be asked for.
    fn part(&self, span: Span) -> Sought;

    /// What is left of it before `other` and behind it.
    fn without(&self, span: Span, other: Span) -> [Option<Span>; 2];

    /// What the two have in common: `one`, where that is all of it.
    fn intersection(&self, one: Span, other: Span) -> Option<Span>;

    /// The smallest span that holds both, if they overlap or touch.
    fn joined(&self, one: Span, other: Span) -> Option<Span>;

    /// Sorts by the starts of ranges.
    fn sort<T>(&self, all: &mut [T], span_of: impl Fn(&T) -> Span);

    /// As people read it.
    fn describe(&self, span: Span) -> String;
}

impl Ranges<u64> for Positions {
    #[inline]
    #[track_caller]
    fn sought(&self, range: &impl RangeBounds<u64>) -> Option<Sought> {
        let (start, end) = (range.start_bound(), range.end_bound());
        Span::of((start, end)).map(Sought::positions)
    }

    fn everything(&self) -> Sought {
        Sought::positions(Span::ALL)
    }

    #[inline]
    fn part(&self, span: Span) -> Sought {
        Sought::positions(span)
    }

    fn without(&self, span: Span, other: Span) -> [Option<Span>; 2] {
        span.without(other)
    }

    fn intersection(&self, one: Span, other: Span) -> Option<Span> {
        one.intersection(other)
    }

    fn joined(&self, one: Span, other: Span) -> Option<Span> {
        one.joined(other)
    }

    fn sort<T>(&self, all: &mut [T], span_of: impl Fn(&T) -> Span) {
        all.sort_unstable_by_key(|one| span_of(one).start());
    }

    fn describe(&self, span: Span) -> String {
        span.to_string()
    }
}

/// The order of a lock as its queue keeps it, which may outlive the lock.
#[derive(Debug, Clone)]
pub(in crate::range) enum QueueOrder {
    Positions,
    /// This one does not panic. It compares only what lives.
    Keys(Arc<dyn Order>),
}

impl QueueOrder {
    pub(in crate::range) fn conflict(&self, one: &Request, other: &Request) -> bool {
        match self {
            Self::Positions => Positions.conflict(one, other),
            Self::Keys(order) => order.conflict(one, other),
        }
    }

    pub(in crate::range) fn covers(&self, one: Span, other: Span) -> bool {
        match self {
            Self::Positions => Positions.covers(one, other),
            Self::Keys(order) => order.covers(one, other),
        }
    }

    /// A range that lives, as people read it: of one of keys a text, as its words say nothing to them.
    pub(in crate::range) fn shown(&self, span: Span) -> Shown {
        match self {
            Self::Positions => Shown(span, None),
            Self::Keys(order) => Shown(Span::ALL, order.shown(span)),
        }
    }

    /// A range that may be gone, of which that text was noted.
    pub(in crate::range) fn shown_by(&self, span: Span, noted: Option<ShownKeys>) -> Shown {
        match self {
            Self::Positions => Shown(span, None),
            Self::Keys(_) => Shown(Span::ALL, noted),
        }
    }

    /// How many positions follow the first, where that is known.
    pub(in crate::range) fn length(&self, span: Span) -> u64 {
        match self {
            Self::Positions => span.last() - span.start(),
            Self::Keys(_) => 0,
        }
    }

    /// The first words of all ranges that may overlap that one, if none is longer than `longest`.
    pub(in crate::range) fn starts_near(&self, span: Span, longest: u64) -> [u64; 2] {
        match self {
            Self::Positions => [span.start().saturating_sub(longest), span.last()],
            Self::Keys(_) => [0, u64::MAX],
        }
    }

    /// Whether equal words are the only names of equal ranges, at any time.
    pub(in crate::range) fn is_by_position(&self) -> bool {
        matches!(self, Self::Positions)
    }
}
