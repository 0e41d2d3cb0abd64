//! How ranges of keys compare: end by end, each by one comparison of keys at most.

use super::cells::{self, End, Side, point_of, with_ends};
use super::{Compare, Key};
use crate::range::inspect::Request;
use crate::range::named::{Named, contained};
use crate::range::order::{Order, Ranges, Relation};
use crate::range::shown::ShownKeys;
use crate::range::sought::Sought;
use crate::range::span::Span;
use crate::range::thread;
use prim::sync::Arc;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// How a key is printed.
pub(super) type Show<K> = fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result;

/// A key with its format.
struct By<'k, K: ?Sized>(&'k K, Show<K>);

impl<K: ?Sized> fmt::Display for By<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(self.0, f)
    }
}

/// The order of a lock's ranges. All spans that it compares name ends of cells that are in use, or that a node bears
/// which the running thread has reached by a walk that goes on.
pub struct KeyOrder<K: ?Sized, C> {
    by: C,
    show: Show<K>,
    /// Invariant: keys are read and written, and the layout of a cell depends on their type.
    keys: PhantomData<fn(&K) -> &K>,
}

impl<K: ?Sized + Key, C: Compare<K>> KeyOrder<K, C> {
    pub(super) fn new(by: C, show: Show<K>) -> Self {
        let keys = PhantomData;
        Self { by, show, keys }
    }

    /// Which of two ends comes first.
    #[inline]
    fn compare(&self, one: u64, other: u64) -> Ordering {
        let compare = |one: End<'_, K>, other: End<'_, K>| cells::compare(one, other, &self.by);
        // SAFETY: they are compared while they live, as the type's documentation says.
        unsafe { with_ends(one, other, compare) }
    }

    #[inline]
    fn is_before(&self, one: u64, other: u64) -> bool {
        self.compare(one, other) == Ordering::Less
    }

    /// The key that a span is, if it is one.
    #[inline]
    fn point_of(&self, span: Span) -> Option<&K> {
        // SAFETY: as for `compare`.
        unsafe { point_of::<K>(span) }
    }

    /// Whether a span is one key.
    #[inline]
    pub(super) fn is_point(&self, span: Span) -> bool {
        self.point_of(span).is_some()
    }

    fn min(&self, one: u64, other: u64) -> u64 {
        if self.is_before(other, one) {
            other
        } else {
            one
        }
    }

    fn max(&self, one: u64, other: u64) -> u64 {
        if self.is_before(one, other) {
            other
        } else {
            one
        }
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Order for KeyOrder<K, C> {
    #[inline]
    fn overlap(&self, one: Span, other: Span) -> bool {
        self.is_before(one.start(), other.last()) && self.is_before(other.start(), one.last())
    }

    #[inline]
    fn starts_before(&self, one: Span, other: Span) -> bool {
        self.is_before(one.start(), other.start())
    }

    #[inline]
    fn is_behind(&self, one: Span, other: Span) -> bool {
        if let (Some(key), Some(other)) = (self.point_of(one), self.point_of(other)) {
            return self.by.compare(other, key) == Ordering::Less;
        }
        !self.is_before(one.start(), other.last())
    }

    fn covers(&self, one: Span, other: Span) -> bool {
        !self.is_before(other.start(), one.start()) && !self.is_before(one.last(), other.last())
    }

    fn shown(&self, span: Span) -> Option<ShownKeys> {
        let shown = |from: End<'_, K>, to: End<'_, K>| {
            let mark = |end: &End<'_, K>, mark| if end.0 == Side::After { mark } else { "" };
            let [first, last] = [from.1, to.1].map(|key| key.map(|key| By(key, self.show)));
            ShownKeys::between([(mark(&from, ">"), first), (mark(&to, "="), last)])
        };
        // SAFETY: the span names ends of cells that are in use, as the type's documentation says.
        Some(unsafe { with_ends(span.start(), span.last(), shown) })
    }

    /// One comparison of keys where the other range ends before ours, and for two points; two elsewhere, or three.
    #[inline]
    fn relation(&self, other: &Request, mine: &Request) -> Relation {
        let (theirs, ours) = (other.span, mine.span);
        if let (Some(one), Some(key)) = (self.point_of(theirs), self.point_of(ours)) {
            return match self.by.compare(one, key) {
                Ordering::Less => Relation::Earlier,
                Ordering::Equal if other.mode.conflicts(mine.mode) => Relation::Conflict,
                Ordering::Equal | Ordering::Greater => Relation::Later,
            };
        }
        if !self.is_before(ours.start(), theirs.last()) {
            Relation::Earlier
        } else if !self.is_before(theirs.start(), ours.last()) {
            Relation::Later
        } else if other.mode.conflicts(mine.mode) {
            Relation::Conflict
        } else if self.starts_before(theirs, ours) {
            Relation::Earlier
        } else {
            Relation::Later
        }
    }
}

impl<K: ?Sized, C> fmt::Debug for KeyOrder<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyOrder")
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Ranges<K> for KeyOrder<K, C> {
    #[inline]
    #[track_caller]
    fn sought(&self, range: &impl RangeBounds<K>) -> Option<Sought> {
        let found = Named::of(range, &self.by, spare());
        // No closure: it would be the caller.
        match found {
            Ok(Some(keys)) => Some(Sought::named(keys)),
            Ok(None) => None,
            Err(keys) => panic!(
                "range {} is reversed: expected its start not to be after its end",
                self.describe(keys.span())
            ),
        }
    }

    fn everything(&self) -> Sought {
        self.sought(&..).expect("it is not empty")
    }

    #[inline]
    fn part(&self, span: Span) -> Sought {
        // SAFETY: the span names ends of cells that are in use, as the caller promises.
        let whole = unsafe { Named::whole(span) };
        Sought::named(whole.unwrap_or_else(|| {
            // SAFETY: the same.
            unsafe { Named::of_span::<K>(span, spare()) }
        }))
    }

    fn without(&self, span: Span, other: Span) -> [Option<Span>; 2] {
        let first = self.min(span.last(), other.start());
        let before = self.is_before(span.start(), other.start());
        let second = self.max(span.start(), other.last());
        let behind = self.is_before(other.last(), span.last());
        [
            before.then(|| Span::named(span.start(), first)),
            behind.then(|| Span::named(second, span.last())),
        ]
    }

    fn intersection(&self, one: Span, other: Span) -> Option<Span> {
        self.overlap(one, other).then(|| {
            let first = self.max(one.start(), other.start());
            Span::named(first, self.min(one.last(), other.last()))
        })
    }

    fn joined(&self, one: Span, other: Span) -> Option<Span> {
        let is_apart =
            self.is_before(one.last(), other.start()) || self.is_before(other.last(), one.start());
        (!is_apart).then(|| {
            let first = self.min(one.start(), other.start());
            Span::named(first, self.max(one.last(), other.last()))
        })
    }

    /// Each behind those before it that start no later. (The standard library's sort panics where a comparator is no
    /// total order.)
    fn sort<T>(&self, all: &mut [T], span_of: impl Fn(&T) -> Span) {
        for sorted in 1..all.len() {
            let next = span_of(&all[sorted]);
            let starts_before = |other: &T| !self.starts_before(next, span_of(other));
            let at = all[..sorted].partition_point(starts_before);
            all[at..=sorted].rotate_right(1);
        }
    }

    fn describe(&self, span: Span) -> String {
        self.shown(span)
            .map_or_else(String::new, |shown| shown.to_string())
    }
}

/// A cell that the running thread keeps.
#[inline]
fn spare() -> Option<Named> {
    thread::with_record(|record| record.parts.spares.take())
}

/// The order where an innocent thread compares: one that releases what others wait for. A panic is no answer, and then
/// the ranges count as apart: the request goes on, compares itself, and the panic is its own [innocent].
#[derive(Debug)]
pub(in crate::range) struct Contained<O>(pub(in crate::range) Arc<O>);

impl<O: Order> Order for Contained<O> {
    fn overlap(&self, one: Span, other: Span) -> bool {
        contained(false, || self.0.overlap(one, other))
    }

    fn starts_before(&self, one: Span, other: Span) -> bool {
        contained(false, || self.0.starts_before(one, other))
    }

    fn is_behind(&self, one: Span, other: Span) -> bool {
        contained(false, || self.0.is_behind(one, other))
    }

    fn covers(&self, one: Span, other: Span) -> bool {
        contained(false, || self.0.covers(one, other))
    }

    fn shown(&self, span: Span) -> Option<ShownKeys> {
        contained(None, || self.0.shown(span))
    }
}
