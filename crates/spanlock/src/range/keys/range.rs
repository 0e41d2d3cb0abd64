//! Ranges of keys as people read them.

use super::Key;
use super::cells::{Side, with_ends};
use crate::range::span::Span;
use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// A range of keys that keeps them.
pub struct KeyRange<K: ?Sized + Key> {
    start: Bound<K::Owned>,
    end: Bound<K::Owned>,
}

impl<K: ?Sized + Key> KeyRange<K> {
    /// # Safety
    /// The span names ends of cells that are in use, or that a node bears which a walk has reached, and their keys are
    /// `K`.
    pub(super) unsafe fn of_span(span: Span) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            with_ends::<K, _>(span.start(), span.last(), |from, to| {
                let bound = |(side, key): (Side, Option<&K>), included| match key.map(K::to_owned) {
                    None => Bound::Unbounded,
                    Some(key) if side == included => Bound::Included(key),
                    Some(key) => Bound::Excluded(key),
                };
                Self {
                    start: bound(from, Side::Before),
                    end: bound(to, Side::After),
                }
            })
        }
    }
}

impl<K: ?Sized + Key> RangeBounds<K> for KeyRange<K> {
    fn start_bound(&self) -> Bound<&K> {
        self.start.as_ref().map(Borrow::borrow)
    }

    fn end_bound(&self) -> Bound<&K> {
        self.end.as_ref().map(Borrow::borrow)
    }
}

/// As ranges are written: `"b"..="m"`, and `>"b"..` where the first key is excluded.
impl<K: ?Sized + Key> fmt::Display for KeyRange<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start_bound() {
            Bound::Included(key) => write!(f, "{key:?}..")?,
            Bound::Excluded(key) => write!(f, ">{key:?}..")?,
            Bound::Unbounded => f.write_str("..")?,
        }
        match self.end_bound() {
            Bound::Included(key) => write!(f, "={key:?}"),
            Bound::Excluded(key) => write!(f, "{key:?}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

impl<K: ?Sized + Key> fmt::Debug for KeyRange<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<K: ?Sized + Key> Clone for KeyRange<K> {
    fn clone(&self) -> Self {
        let copy = |bound: Bound<&K>| bound.map(K::to_owned);
        Self {
            start: copy(self.start_bound()),
            end: copy(self.end_bound()),
        }
    }
}
