//! Iteration at level 0.

use super::view::{View, entry};
use crate::ordered::exclusion::{ByRange, Exclusion};
use crate::ordered::key::Key;
use crate::ordered::node::NodePtr;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds, RangeFull};

/// The entries of a map in the order of their keys, from [`View::iter`] and [`View::range`].
///
/// Wait-free. [`RangeSkipMap`](super::RangeSkipMap) states the consistency. To reverse an iteration, collect it.
#[must_use = "iterators do nothing unless they are used"]
pub struct Iter<'v, K: Key, V, X: Exclusion = ByRange, R = RangeFull> {
    /// The pin of the view keeps alive what the iteration finds.
    view: PhantomData<&'v View<'v, K, V, X>>,
    /// The node that comes next, if it has not left the map when the iteration comes to it.
    ahead: Option<NodePtr<K, V, X::OfNode>>,
    range: R,
}

impl<'v, K: Key, V, X: Exclusion, R: RangeBounds<K>> Iter<'v, K, V, X, R> {
    /// The entries from a node to the end of the range.
    ///
    /// # Safety
    /// The node was found under the pin of the view.
    pub(super) unsafe fn new(ahead: Option<NodePtr<K, V, X::OfNode>>, range: R) -> Self {
        Self {
            view: PhantomData,
            ahead,
            range,
        }
    }
}

/// Where a key is, seen from the place before the first key that a range may have.
pub(super) fn before_or_after_start<K: Ord>(range: &impl RangeBounds<K>, key: &K) -> Ordering {
    let is_before = match range.start_bound() {
        Bound::Included(start) => key < start,
        Bound::Excluded(start) => key <= start,
        Bound::Unbounded => false,
    };
    match is_before {
        true => Ordering::Less,
        false => Ordering::Greater,
    }
}

/// Whether a key is behind a range.
pub(super) fn is_beyond<K: Ord>(range: &impl RangeBounds<K>, key: &K) -> bool {
    match range.end_bound() {
        Bound::Included(last) => key > last,
        Bound::Excluded(end) => key >= end,
        Bound::Unbounded => false,
    }
}

impl<'v, K: Key, V, X: Exclusion, R: RangeBounds<K>> Iterator for Iter<'v, K, V, X, R> {
    type Item = (&'v K, &'v V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let node = self.ahead?;
            // SAFETY: found under the pin, and no link leads to a head.
            let (key, value) = unsafe { entry(node) };
            if is_beyond(&self.range, key) {
                self.ahead = None;
                return None;
            }
            // SAFETY: found under the pin.
            let link = unsafe { node.link(0) }.load();
            // A larger key; or the heir, if the node was replaced, and then the key was not yielded yet.
            self.ahead = link.node().map(NodePtr::of);
            if !link.has_left() {
                return Some((key, value));
            }
        }
    }
}

impl<K: Key, V, X: Exclusion, R: RangeBounds<K>> FusedIterator for Iter<'_, K, V, X, R> {}

impl<K: Key, V, X: Exclusion, R> fmt::Debug for Iter<'_, K, V, X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
