//! Iteration at level 0.

use super::view::{View, entry};
use crate::ordered::exclusion::{ByRange, Exclusion};
use crate::ordered::key::Key;
use crate::ordered::node::NodePtr;
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

    fn is_beyond(&self, key: &K) -> bool {
        match self.range.end_bound() {
            Bound::Included(last) => key > last,
            Bound::Excluded(end) => key >= end,
            Bound::Unbounded => false,
        }
    }
}

impl<'v, K: Key, V, X: Exclusion, R: RangeBounds<K>> Iterator for Iter<'v, K, V, X, R> {
    type Item = (&'v K, &'v V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let node = self.ahead?;
            // SAFETY: found under the pin, and no link leads to a head.
            let (key, value) = unsafe { entry(node) };
            if self.is_beyond(key) {
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
