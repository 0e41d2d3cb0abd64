//! Nodes that bear what the words of their range name: keys, in [locks over keys](crate::range::keys).
//!
//! A walk compares what is named as it reads a node: by its pin, without a count.
//!
//! # Edges
//!
//! - **key-life**: what is named stays with the node until it is prepared for another request, or freed: after the
//!   grace period of its last walk, and after its request has another node or is over.

use super::node::{Announced, Height, Node};
use super::skip::tower::TallNode;
use crate::range::named::Named;
use crate::reclaim::Recycled;
use prim::cell::UnsafeCell;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// A tall node with what its range names.
#[repr(C)] // The tower comes first, so that a pointer to it leads to the whole.
pub(crate) struct NamingNode {
    tall: TallNode,
    /// Only the thread that has the node, and has not published it, changes them; none other looks here.
    named: UnsafeCell<Option<Named>>,
    /// What the index was told of it. Only the thread that has the request, or its token later, uses it.
    announced: Cell<Announced>,
    pooled: Cell<*mut NamingNode>,
}

impl Recycled for NamingNode {
    fn ready() -> usize {
        prim::stock(64, 2)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self {
            tall: TallNode::new(Height::Naming),
            named: UnsafeCell::new(None),
            announced: Cell::new(Announced::NOTHING),
            pooled: Cell::new(ptr::null_mut()),
        })
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

impl NamingNode {
    /// The whole of a node of a list whose nodes bear what is named.
    ///
    /// # Safety
    /// It is one, and alive as long as the result is used.
    #[inline]
    pub(in crate::range) unsafe fn of<'a>(node: NonNull<Node>) -> &'a Self {
        // SAFETY: as the caller promises.
        let whole = unsafe { node.cast::<Self>().as_ref() };
        debug_assert!(whole.tall.base().height() == Height::Naming);
        whole
    }

    /// Gives up the levels drawn for its request.
    ///
    /// # Safety
    /// No other thread knows the node.
    #[inline]
    pub(in crate::range) unsafe fn draw_none(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.tall.draw(0) };
    }

    /// Gives it what its next range names, and returns what the last one named.
    ///
    /// # Safety
    /// No other thread knows the node.
    #[inline]
    pub(in crate::range) unsafe fn set_named(&self, named: Option<Named>) -> Option<Named> {
        // SAFETY: no other thread knows the node, so no other access is under way.
        self.named
            .with_mut(|place| unsafe { std::mem::replace(&mut *place, named) })
    }

    /// What its range names. It does not change before its walks are over.
    ///
    /// # Safety
    /// A walk has reached the node, or its request is the caller's.
    pub(in crate::range) unsafe fn named(&self) -> Option<Named> {
        // SAFETY: it changes only while no other thread knows the node.
        self.named.with(|place| unsafe { (*place).clone() })
    }

    /// What the index was told of it.
    pub(in crate::range) fn announced(&self) -> &Cell<Announced> {
        &self.announced
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn it_is_five_cache_lines() {
        assert_eq!(size_of::<super::NamingNode>(), 320);
    }
}
