//! Walking the list: the one loop that all operations share.

use super::node::{AtomicLink, Link, Node};
use crate::local::Pin;
use prim::atomic::Ordering;
use std::ptr::NonNull;

/// A place between two nodes, moving towards the end. The nodes passed stay valid as long as the pin.
///
/// It never sees the head with the fast path's mark: then only the node's holder may look at the node, which it
/// re-uses at once [demote].
pub(super) struct Walk<'a> {
    pin: &'a Pin,
    head: &'a AtomicLink,
    /// The link that the walk stands on, and what was last seen in it.
    at: &'a AtomicLink,
    seen: Link,
}

impl<'a> Walk<'a> {
    /// Stands before the first node.
    #[inline]
    pub(super) fn from_head(pin: &'a Pin, head: &'a AtomicLink) -> Self {
        // [publish] Acquire: pairs with the insertion's Release.
        let seen = head.load(prim::order!("publish-acquire", Ordering::Acquire));
        Self {
            pin,
            head,
            at: head,
            seen: demoted(head, seen),
        }
    }

    /// Stands behind a node of the list.
    #[inline]
    pub(super) fn behind(pin: &'a Pin, head: &'a AtomicLink, node: &'a Node) -> Self {
        let seen = node
            .link
            .load(prim::order!("publish-acquire", Ordering::Acquire));
        Self {
            pin,
            head,
            at: &node.link,
            seen,
        }
    }

    /// The next node that is not gone, and its link; `None` at the end. Unlinks those that are gone.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(&'a Node, Link)> {
        loop {
            debug_assert!(!(self.is_at_head() && self.seen.is_fast()), "[demote]");
            let next = self.seen.node()?;
            // SAFETY: reached by links within a walk, so it is not re-used before the pin is dropped [grace].
            let node: &'a Node = unsafe { next.as_ref() };
            // [publish] and [release] Acquire: whoever finds the node gone, and goes on to hold its range, comes
            // after all that its holder did.
            let link = node
                .link
                .load(prim::order!("release-acquire", Ordering::Acquire));
            if !link.is_gone() {
                return Some((node, link));
            }
            let past = self.seen.with_node(link.node());
            if self.is_cut_off() && prim::intact!("cut-off") {
                // The node this walk stands on is gone itself. Its link is frozen: read on, write nothing.
                self.seen = past;
                continue;
            }
            // [unlink] Release: later walks that no longer meet the node still come after its holder.
            let unlinked = self.at.replace(
                self.seen,
                past,
                prim::order!("unlink", Ordering::Release),
                Ordering::Acquire,
            );
            self.seen = match unlinked {
                Ok(()) => {
                    self.pin.retire(next);
                    past
                }
                Err(found) => self.found(found),
            };
        }
    }

    /// Moves behind a node that [`next`](Self::next) returned.
    #[inline]
    pub(super) fn step(&mut self, node: &'a Node, link: Link) {
        self.at = &node.link;
        self.seen = link;
    }

    /// Whether the node this walk stands on is gone, and what follows may be unlinked too.
    #[inline]
    pub(super) fn is_cut_off(&self) -> bool {
        self.seen.is_gone()
    }

    /// The node last seen next, if any.
    #[inline]
    pub(super) fn seen(&self) -> Link {
        self.seen
    }

    /// Whether the list was last seen empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.is_at_head() && self.seen == Link::NULL
    }

    #[inline]
    fn is_at_head(&self) -> bool {
        std::ptr::eq(self.at, self.head)
    }

    /// What a change that failed has found: in the head, perhaps a node that the fast path inserted meanwhile.
    #[inline]
    fn found(&self, found: Link) -> Link {
        if self.is_at_head() && prim::intact!("demote-again") {
            demoted(self.head, found)
        } else {
            found
        }
    }

    /// Inserts a node here, unless something changed.
    #[inline]
    pub(super) fn insert(&mut self, now: Link) -> Result<(), ()> {
        // [publish] Release: the node's content is visible to whoever reaches it. [unlink] Acquire: the link may
        // have changed and changed back since it was seen, by a node that came, went and was unlinked.
        let inserted = self.at.replace(
            self.seen,
            now,
            prim::order!(
                "publish",
                prim::order!("unlink-acquire", Ordering::AcqRel, Ordering::Release),
                Ordering::Acquire
            ),
            Ordering::Acquire,
        );
        inserted.map_err(|found| self.seen = self.found(found))
    }

    /// What this walk stands on points to a node inserted here.
    #[inline]
    pub(super) fn link_to(&self, node: NonNull<Node>) -> Link {
        self.seen.with_node(Some(node))
    }
}

/// What is in the head once a node of the fast path, if that was seen there, is a regular one.
#[inline]
fn demoted(head: &AtomicLink, seen: Link) -> Link {
    let mut seen = seen;
    while seen.is_fast() && prim::intact!("demote") {
        // [demote] Acquire: the node may have been released and inserted again since it was seen. Release is not
        // needed: this continues the insertion's release sequence.
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
