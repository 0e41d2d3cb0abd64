//! Where a walk begins: at the head of the list, or at a node nearer to the request.

use crate::range::inspect::Request;
use crate::range::list::node::Node;
use crate::range::span::Span;
use crate::range::thread::{Pin, ThreadRecord};
use std::ptr::NonNull;

/// What leads into the list besides its head. Sealed: [`NoIndex`], or the [`SkipIndex`](super::SkipIndex) of a skip
/// list.
#[expect(private_bounds, reason = "that seals it")]
pub trait Index: StartHints {}

/// What a list asks of its index.
pub(in crate::range) trait StartHints: Send + Sync {
    /// Whether the lock may move from its list to [slots](crate::range::slots).
    const MAY_MOVE: bool = false;

    /// A node for a request.
    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node>;

    /// A start hint: a node that stands before every node which conflicts with the request. `None`: the walk begins at
    /// the head. The node may have left just now.
    fn start_hint<'a>(&'a self, pin: &'a Pin, request: &Request) -> Option<&'a Node>;

    /// Enters a node that this thread holds, so that it can be a start hint. The walk to it took so many steps.
    fn enter(&self, pin: &Pin, node: NonNull<Node>, steps: usize);

    /// Makes known that a range is about to be held shared.
    fn announce_shared(&self, span: Span);

    /// Removes links to nodes that are gone, in one pass along each level.
    fn sweep(&self, pin: &Pin);

    /// Removes all links to nodes. No other thread uses the list any more.
    fn clear(&self, pin: &Pin);
}

/// No index: every walk begins at the head.
#[derive(Debug)]
pub struct NoIndex;

impl Index for NoIndex {}

impl StartHints for NoIndex {
    #[inline]
    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        record.take_node()
    }

    #[inline]
    fn start_hint<'a>(&'a self, _: &'a Pin, _: &Request) -> Option<&'a Node> {
        None
    }

    #[inline]
    fn enter(&self, _: &Pin, _: NonNull<Node>, _: usize) {}

    #[inline]
    fn announce_shared(&self, _: Span) {}

    fn sweep(&self, _: &Pin) {}

    fn clear(&self, _: &Pin) {}
}
