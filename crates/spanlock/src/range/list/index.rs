//! Where a walk begins: at the head, or nearer to where it goes.

use super::node::Node;
use crate::local::{Local, Pin};
use crate::range::inspect::Claim;
use crate::range::span::Span;
use std::ptr::NonNull;

/// What leads into the list besides its head. Sealed: [`NoIndex`], or the [`Levels`](super::Levels) of a skip list.
#[expect(private_bounds, reason = "that seals it")]
pub trait Index: Guide {}

/// What a list asks of its index.
pub(super) trait Guide: Send + Sync {
    /// A node for a request.
    fn take_node(&self, local: &Local) -> NonNull<Node>;

    /// A node that all who conflict with the request come after; `None`: the head. It may have left just now.
    fn waypoint<'a>(&'a self, pin: &'a Pin, claim: &Claim) -> Option<&'a Node>;

    /// Makes a waypoint of a node that this thread holds; the walk to it took so many steps.
    fn enter(&self, pin: &Pin, node: NonNull<Node>, steps: usize);

    /// Makes known that a range is to be held shared, before it is.
    fn announce_shared(&self, span: Span);

    /// Removes links to nodes that are gone, as many as can be removed in passing once along everything.
    fn sweep(&self, pin: &Pin);

    /// Removes all links to nodes; nobody else uses the list any more.
    fn clear(&self, pin: &Pin);
}

/// No index: every walk begins at the head.
#[derive(Debug)]
pub struct NoIndex;

impl Index for NoIndex {}

impl Guide for NoIndex {
    #[inline]
    fn take_node(&self, local: &Local) -> NonNull<Node> {
        local.take_node()
    }

    #[inline]
    fn waypoint<'a>(&'a self, _: &'a Pin, _: &Claim) -> Option<&'a Node> {
        None
    }

    #[inline]
    fn enter(&self, _: &Pin, _: NonNull<Node>, _: usize) {}

    #[inline]
    fn announce_shared(&self, _: Span) {}

    fn sweep(&self, _: &Pin) {}

    fn clear(&self, _: &Pin) {}
}
