//! Searches: from the top level down, at each level along the nodes before the place that is searched for.

use crate::ordered::node::{MAX_HEIGHT, NodePtr};
use prim::cost;
use std::cmp::Ordering;

/// A place at one level: between two nodes.
pub(crate) struct Place<K, V, N> {
    /// The last node before it, or the head.
    pub(crate) pred: NodePtr<K, V, N>,
    /// The first node that is not before it.
    pub(crate) next: Option<NodePtr<K, V, N>>,
    /// Whether that node is what is searched for.
    pub(crate) is_match: bool,
}

impl<K, V, N> Place<K, V, N> {
    /// Where a search begins.
    pub(crate) fn before_all(head: NodePtr<K, V, N>) -> Self {
        Self {
            pred: head,
            next: None,
            is_match: false,
        }
    }

    /// Walks along a level, from the predecessor that was found at the level above. `order` says where a key is: before
    /// the place, at it, or after it.
    ///
    /// # Safety
    /// The caller has been pinned since before the search began, and the predecessor has this level.
    #[inline]
    pub(crate) unsafe fn advance(&mut self, level: usize, order: impl Fn(&K) -> Ordering) {
        loop {
            // SAFETY: the node is the head, or was found by this search, so the pin keeps it alive. It has this level,
            // because it was found at this level or above.
            let next = unsafe { self.pred.link(level) }.load().node();
            self.next = next.map(NodePtr::of);
            let Some(node) = self.next else {
                self.is_match = false;
                return;
            };
            // Often the node that ended the walk along the level above. Its key is compared again all the same: then
            // walks end as often as they go on, and a processor that waits for a key predicts either. It follows the
            // links below meanwhile, and their nodes are on the way when the search comes to them.
            // SAFETY: the search has just found the node, and no link leads to a head.
            let key = unsafe { node.key() };
            cost::read(key);
            match order(key) {
                Ordering::Less => self.pred = node,
                found => {
                    self.is_match = found == Ordering::Equal;
                    return;
                }
            }
        }
    }
}

/// A place at all levels.
pub(crate) struct Path<K, V, N> {
    /// The last node before it at each level. The keys do not grow from one level to the level above.
    pub(crate) preds: [NodePtr<K, V, N>; MAX_HEIGHT],
    /// The first node at each level that is not before it.
    pub(crate) nexts: [Option<NodePtr<K, V, N>>; MAX_HEIGHT],
    /// Whether that node, at level 0, is what is searched for.
    pub(crate) is_match: bool,
}

/// Searches for a place at all levels.
///
/// # Safety
/// The caller has been pinned since before the call, and until it uses the path no more.
pub(crate) unsafe fn locate<K, V, N>(
    head: NodePtr<K, V, N>,
    order: impl Fn(&K) -> Ordering,
) -> Path<K, V, N> {
    let mut place = Place::before_all(head);
    let mut path = Path {
        preds: [head; MAX_HEIGHT],
        nexts: [None; MAX_HEIGHT],
        is_match: false,
    };
    for level in (0..MAX_HEIGHT).rev() {
        // SAFETY: the caller is pinned, and the head has all levels.
        unsafe { place.advance(level, &order) };
        path.preds[level] = place.pred;
        path.nexts[level] = place.next;
    }
    path.is_match = place.is_match;
    path
}

/// Searches for a place at level 0.
///
/// # Safety
/// As for [`locate`].
#[inline]
pub(crate) unsafe fn reach<K, V, N>(
    head: NodePtr<K, V, N>,
    order: impl Fn(&K) -> Ordering,
) -> Place<K, V, N> {
    let mut place = Place::before_all(head);
    for level in (0..MAX_HEIGHT).rev() {
        // SAFETY: the caller is pinned, and the head has all levels.
        unsafe { place.advance(level, &order) };
    }
    place
}

/// Searches for a node, at any level.
///
/// # Safety
/// As for [`locate`].
#[inline]
pub(crate) unsafe fn find<K, V, N>(
    head: NodePtr<K, V, N>,
    order: impl Fn(&K) -> Ordering,
) -> Option<NodePtr<K, V, N>> {
    let mut place = Place::before_all(head);
    for level in (0..MAX_HEIGHT).rev() {
        // SAFETY: the caller is pinned, and the head has all levels.
        unsafe { place.advance(level, &order) };
        if place.is_match {
            return place.next;
        }
    }
    None
}
