//! Links: a pointer to the next node of a level, and two flags about *the node that the link is in*.
//!
//! ```text
//!   level 1    [ b | TOP  ]      TOP: the tower ends here. The flag is set when the node is made and never changes, so
//!   level 0    [ a | LEFT ]           a node does not store its height.
//!                                LEFT, at level 0 only: the node has left the map, and the link does not change any
//!                                more.
//! ```
//!
//! A node that was removed and one that was replaced both have LEFT. The link of a removed node leads to a larger key,
//! that of a replaced node to its *heir*: the node with the same key that has taken its place.

use crate::ordered::node::Node;
use prim::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

/// A link.
pub(crate) struct Link<K, V, N>(*mut Node<K, V, N>);

impl<K, V, N> Clone for Link<K, V, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, N> Copy for Link<K, V, N> {}

const LEFT: usize = 1;
const TOP: usize = 2;

impl<K, V, N> Link<K, V, N> {
    /// The node that the link leads to.
    #[inline]
    pub(crate) fn node(self) -> Option<NonNull<Node<K, V, N>>> {
        const {
            assert!(
                align_of::<Node<K, V, N>>() > LEFT | TOP,
                "the flags are in its address"
            )
        };
        NonNull::new(self.0.map_addr(|address| address & !(LEFT | TOP)))
    }

    /// Whether the node that the link is in has left the map. The link is one of level 0.
    #[inline]
    pub(crate) fn has_left(self) -> bool {
        self.0.addr() & LEFT != 0
    }

    /// Whether the tower that the link is in ends with it.
    #[inline]
    pub(crate) fn is_top(self) -> bool {
        self.0.addr() & TOP != 0
    }

    /// The flags of this link, and `more`, with another successor.
    #[inline]
    fn leading_to(self, next: Option<NonNull<Node<K, V, N>>>, more: usize) -> Self {
        let flags = self.0.addr() & (LEFT | TOP) | more;
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        Self(next.map_addr(|address| address | flags))
    }
}

/// A link in memory. Once the node is published, only a thread that excludes other updates of it changes the link.
pub(crate) struct AtomicLink<K, V, N>(AtomicPtr<Node<K, V, N>>);

impl<K, V, N> AtomicLink<K, V, N> {
    /// The link of a new node, which leads nowhere.
    pub(crate) fn new(is_top: bool) -> Self {
        let nowhere = Link(ptr::null_mut());
        let flags = if is_top { TOP } else { 0 };
        Self(AtomicPtr::new(nowhere.leading_to(None, flags).0))
    }

    /// Follows the link.
    #[inline]
    pub(crate) fn load(&self) -> Link<K, V, N> {
        // [set-publish] Acquire: the content of the node found, and its links. The same of an heir, for [set-leave].
        Link(self.0.load(prim::order!("set-publish", Ordering::Acquire)))
    }

    /// Loads the link to compare it, or in a node that no other thread changes.
    #[inline]
    pub(crate) fn peek(&self) -> Link<K, V, N> {
        // Relaxed: the caller does not follow the link, or excludes other updates and so comes after them.
        Link(self.0.load(Ordering::Relaxed))
    }

    /// Sets the link of a node that no other thread knows.
    #[inline]
    pub(crate) fn prepare(&self, next: Option<NonNull<Node<K, V, N>>>) {
        // Relaxed: published with the node.
        let link = self.peek().leading_to(next, 0);
        self.0.store(link.0, Ordering::Relaxed);
    }

    /// Leads elsewhere from now on. The caller excludes other updates.
    #[inline]
    pub(crate) fn lead_to(&self, next: Option<NonNull<Node<K, V, N>>>) {
        // [set-publish] Release: a thread that follows the link finds the content of the node and its links.
        let release = prim::order!("set-publish", Ordering::Release);
        self.0.store(self.peek().leading_to(next, 0).0, release);
    }

    /// The node with this link, one of level 0, leaves the map. Then the link leads to the heir, or to the node that
    /// comes after. The caller excludes other updates.
    #[inline]
    pub(crate) fn leave(&self, next: Option<NonNull<Node<K, V, N>>>) {
        // [set-leave] Release: as for [set-publish], for a thread that stands on the node.
        let release = prim::order!("set-leave", Ordering::Release);
        self.0.store(self.peek().leading_to(next, LEFT).0, release);
    }
}
