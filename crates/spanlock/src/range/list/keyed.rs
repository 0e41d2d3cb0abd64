//! Nodes that bear keys, for [locks over keys](crate::range::keys).
//!
//! The words of such a node's range name the ends of its keys. A walk compares keys as it reads a node: by its pin,
//! without a count.
//!
//! # Edges
//!
//! - **key-life**: the keys stay with the node until it is prepared for another request, or freed: after the grace
//!   period of its last walk, and after its request has another node or is over.

use super::node::{Height, Node};
use super::skip::Announced;
use super::skip::tower::TallNode;
use crate::range::keys::cells::Keys;
use crate::reclaim::Recycled;
use prim::cell::UnsafeCell;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// A tall node with the keys of its range.
#[repr(C)] // The tower comes first, so that a pointer to it leads to the whole.
pub(crate) struct KeyNode {
    tall: TallNode,
    /// Only the thread that has the node, and has not published it, changes them; none other looks here.
    keys: UnsafeCell<Option<Keys>>,
    /// What the index was told of it. Only the thread that has the request, or its token later, uses it.
    announced: Cell<Announced>,
    pooled: Cell<*mut KeyNode>,
}

impl Recycled for KeyNode {
    fn ready() -> usize {
        prim::stock(64, 2)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self {
            tall: TallNode::new(Height::Keyed),
            keys: UnsafeCell::new(None),
            announced: Cell::new(Announced::NOTHING),
            pooled: Cell::new(ptr::null_mut()),
        })
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

impl KeyNode {
    /// The whole of a node of a list whose nodes bear keys.
    ///
    /// # Safety
    /// It is one, and alive as long as the result is used.
    #[inline]
    pub(in crate::range) unsafe fn of<'a>(node: NonNull<Node>) -> &'a Self {
        // SAFETY: as the caller promises.
        let whole = unsafe { node.cast::<Self>().as_ref() };
        debug_assert!(whole.tall.base().height() == Height::Keyed);
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

    /// Gives it other keys, and returns those it had.
    ///
    /// # Safety
    /// No other thread knows the node.
    #[inline]
    pub(in crate::range) unsafe fn set_keys(&self, keys: Option<Keys>) -> Option<Keys> {
        // SAFETY: no other thread knows the node, so no other access is under way.
        self.keys
            .with_mut(|place| unsafe { std::mem::replace(&mut *place, keys) })
    }

    /// Its keys. They do not change before its walks are over.
    ///
    /// # Safety
    /// A walk has reached the node, or its request is the caller's.
    pub(in crate::range) unsafe fn keys(&self) -> Option<Keys> {
        // SAFETY: the keys change only while no other thread knows the node.
        self.keys.with(|place| unsafe { (*place).clone() })
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
    fn a_node_with_keys_is_five_cache_lines() {
        assert_eq!(size_of::<super::KeyNode>(), 320);
    }
}
