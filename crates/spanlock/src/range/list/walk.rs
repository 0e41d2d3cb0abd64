//! Walking the list: the one loop that all operations share, and the only place that inserts or unlinks.

use super::node::{AtomicLink, Link, Node};
use crate::range::thread::Pin;
use prim::atomic::Ordering;
use std::ptr::NonNull;

/// A place between two nodes, moving towards the end. The nodes passed stay valid as long as the pin.
///
/// Nodes that are gone are skipped. An insertion unlinks those skipped just before it by the same compare-exchange;
/// so does a [`step`](Self::step) by one of its own. Their links are frozen, so they cannot change meanwhile.
///
/// A walk never sees the head with the fast path's mark: then only the node's holder may read the node, which it reuses
/// at once [demote].
#[derive(Clone)]
pub(in crate::range) struct Walk<'a> {
    pin: &'a Pin,
    head: &'a AtomicLink,
    /// The link that the walk stands on, and what was last seen in it.
    at: &'a AtomicLink,
    seen: Link,
    /// What it would be without the nodes skipped.
    past: Link,
}

impl<'a> Walk<'a> {
    /// Stands before the first node.
    #[inline]
    pub(in crate::range) fn from_head(pin: &'a Pin, head: &'a AtomicLink) -> Self {
        // [publish] Acquire: pairs with the insertion's Release.
        let seen = head.load(prim::order!("publish-acquire", Ordering::Acquire));
        let seen = demoted(head, seen);
        match seen.new_head() {
            // SAFETY: the new head lives as long as the lock, whose head this is.
            Some(moved) => Self::from_head(pin, unsafe { moved.as_ref() }),
            None => Self::standing_on(pin, head, head, seen),
        }
    }

    /// Stands behind a node that was in the list after the pin was taken. If it has left, the walk is cut off.
    #[inline]
    pub(in crate::range) fn behind(pin: &'a Pin, head: &'a AtomicLink, node: &'a Node) -> Self {
        Self::standing_on(pin, head, &node.link, node.load())
    }

    #[inline]
    fn standing_on(pin: &'a Pin, head: &'a AtomicLink, at: &'a AtomicLink, seen: Link) -> Self {
        Self {
            pin,
            head,
            at,
            seen,
            past: seen,
        }
    }

    /// The next node that is not gone, and its link; `None` at the end.
    #[inline]
    pub(in crate::range) fn next(&mut self) -> Option<(&'a Node, Link)> {
        debug_assert!(!(self.is_at_head() && self.seen.is_fast()), "[demote]");
        loop {
            let next = self.past.node()?;
            // SAFETY: reached by links within a walk, so it is not re-used before the pin is dropped [grace].
            let node: &'a Node = unsafe { next.as_ref() };
            // [publish] and [release] Acquire: a thread that finds the node gone, and goes on to hold its range, comes
            // after all that its holder did.
            let link = node
                .link
                .load(prim::order!("release-acquire", Ordering::Acquire));
            if !link.is_gone() {
                return Some((node, link));
            }
            self.past = self.past.with_node(link.node());
        }
    }

    /// The node that [`next`](Self::next) has just returned, as a pointer to all of it: a node may be the first part of
    /// a larger one.
    pub(in crate::range) fn found(&self) -> NonNull<Node> {
        self.past.node().expect("a node was returned")
    }

    /// Moves behind a node that [`next`](Self::next) returned, and changes nothing.
    #[inline]
    pub(in crate::range) fn pass(&mut self, node: &'a Node, link: Link) {
        self.at = &node.link;
        self.seen = link;
        self.past = link;
    }

    /// Unlinks the nodes skipped and moves behind the one that [`next`](Self::next) returned. If something changed,
    /// it stays where it is, and has skipped none; it may be [cut off](Self::is_cut_off).
    #[inline]
    pub(in crate::range) fn step(&mut self, node: &'a Node, link: Link) -> Result<(), ()> {
        if self.past != self.seen {
            // [unlink] Release: later walks that no longer meet the nodes still come after their holders.
            self.change(self.past, prim::order!("unlink", Ordering::Release))?;
        }
        self.pass(node, link);
        Ok(())
    }

    /// Unlinks the nodes skipped, if that can be done at once.
    ///
    /// A reader's validation does this: readers that hand over to one another are inserted before each other, so no
    /// other walk would pass the nodes that they leave behind.
    #[inline]
    pub(in crate::range) fn trim(&mut self) {
        if self.past != self.seen && !self.is_cut_off() {
            // A failure does no harm: the thread that changed the link passes these nodes as well.
            let _ = self.change(self.past, prim::order!("unlink", Ordering::Release));
        }
    }

    /// Inserts a node here, in place of the nodes skipped. If something changed, it stays where it is, and has
    /// skipped none; it may be [cut off](Self::is_cut_off).
    #[inline]
    pub(in crate::range) fn insert(&mut self, now: Link) -> Result<(), ()> {
        // [publish] Release: the node's content is visible to every thread that reaches it. [unlink] Release, as in
        // `step`, and [unlink-acquire] Acquire: the link may have changed and changed back since it was seen, by a node
        // that came, went and was unlinked.
        self.change(
            now,
            prim::order!(
                "publish",
                prim::order!("unlink-acquire", Ordering::AcqRel, Ordering::Release),
                Ordering::Acquire
            ),
        )
    }

    #[inline]
    fn change(&mut self, now: Link, success: Ordering) -> Result<(), ()> {
        match self.at.replace(self.seen, now, success, Ordering::Acquire) {
            Ok(()) => {
                self.retire_skipped();
                self.seen = now;
                self.past = now;
                Ok(())
            }
            Err(found) => {
                self.seen = found;
                self.past = found;
                Err(())
            }
        }
    }

    /// Gives up the nodes skipped, which this thread has just unlinked.
    #[inline]
    fn retire_skipped(&self) {
        let mut skipped = self.seen.node();
        while skipped != self.past.node() {
            let Some(node) = skipped else { break };
            // SAFETY: reached by links within a walk, so it is not re-used before the pin is dropped [grace]. Relaxed:
            // it was seen to be gone, so its pointer is frozen.
            skipped = unsafe { node.as_ref() }.link.load(Ordering::Relaxed).node();
            self.pin.unlinked(node);
        }
    }

    /// Whether a change failed because the node this walk stands on is gone, so that nothing may be written through
    /// its link; or because the fast path has inserted a node. Then the walk is to start over.
    #[inline]
    pub(in crate::range) fn is_cut_off(&self) -> bool {
        self.seen.is_gone() && prim::intact!("cut-off")
    }

    /// Whether the walk is in another list than that of `head`: the lock has moved to slots.
    #[inline]
    pub(in crate::range) fn has_left(&self, head: &AtomicLink) -> bool {
        !std::ptr::eq(self.head, head)
    }

    /// What follows this place once the nodes skipped are unlinked.
    #[inline]
    pub(in crate::range) fn following(&self) -> Option<NonNull<Node>> {
        self.past.node()
    }

    /// Whether the list was last seen empty, but for nodes that are gone.
    #[inline]
    pub(in crate::range) fn is_empty(&self) -> bool {
        self.is_at_head() && self.past == Link::NULL
    }

    #[inline]
    fn is_at_head(&self) -> bool {
        std::ptr::eq(self.at, self.head)
    }

    /// What this walk stands on, pointing to a node inserted here.
    #[inline]
    pub(in crate::range) fn link_to(&self, node: NonNull<Node>) -> Link {
        self.seen.with_node(Some(node))
    }
}

/// What is in the head once a node of the fast path, if that was seen there, is a regular one.
#[inline]
fn demoted(head: &AtomicLink, seen: Link) -> Link {
    let mut seen = seen;
    while seen.is_fast() && !seen.is_moved() && prim::intact!("demote") {
        // [demote-acquire] Acquire: the node may have been released and inserted again since it was seen. Release is
        // not needed: this continues the insertion's release sequence.
        let demoted = head.replace(
            seen,
            seen.regular(),
            prim::order!("demote-acquire", Ordering::Acquire),
            Ordering::Acquire,
        );
        seen = match demoted {
            Ok(()) => seen.regular(),
            Err(found) => found,
        };
    }
    seen
}
