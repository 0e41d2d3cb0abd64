//! Iteration at level 0.

use super::view::{View, entry};
use crate::exclusion::{ByRange, Exclusion};
use crate::key::Key;
use crate::node::NodePtr;
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
    /// The node that the iteration stands on: the head, or a node before all that is still to come.
    at: NodePtr<K, V, X::OfNode>,
    /// The last node that was passed for good: all keys to come are larger. `None` for the head.
    passed: Option<NodePtr<K, V, X::OfNode>>,
    range: R,
}

impl<'v, K: Key, V, X: Exclusion, R: RangeBounds<K>> Iter<'v, K, V, X, R> {
    /// The entries after a node, to the end of the range.
    ///
    /// # Safety
    /// The node is the head, or was found under the pin of the view.
    pub(super) unsafe fn new(
        view: &'v View<'v, K, V, X>,
        after: NodePtr<K, V, X::OfNode>,
        range: R,
    ) -> Self {
        Self {
            view: PhantomData,
            at: after,
            passed: Some(after).filter(|node| *node != view.head()),
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
            // SAFETY: found under the pin, or the head.
            let link = unsafe { self.at.link(0) }.load();
            let node = NodePtr::of(link.node()?);
            // SAFETY: found by a link under the pin.
            let (key, value) = unsafe { entry(node) };
            if self.is_beyond(key) {
                return None;
            }
            self.at = node;
            // From a node that has left, the link may lead to its heir, which has the key that was passed.
            let is_heir = self.passed.filter(|_| link.has_left());
            // SAFETY: found under the pin, and not the head.
            if is_heir.is_some_and(|passed| unsafe { passed.key() } >= key) {
                continue;
            }
            // SAFETY: as above.
            if !unsafe { node.link(0) }.load().has_left() {
                self.passed = Some(node);
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
