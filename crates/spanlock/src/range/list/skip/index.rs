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

/// What a list asks of its index. The defaults are those of a list without one.
pub(in crate::range) trait StartHints: Send + Sync {
    /// Whether the lock may move from its list to [slots](crate::range::slots).
    const MAY_MOVE: bool = false;

    /// A node for a request.
    #[inline]
    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        record.take_node()
    }

    /// A start hint: a node that stands before every node which conflicts with the request. `None`: the walk begins at
    /// the head. The node may have left just now.
    #[inline]
    fn start_hint<'a>(&'a self, _pin: &'a Pin, _request: &Request) -> Option<&'a Node> {
        None
    }

    /// Enters a node that this thread holds, so that it can be a start hint. At least `passed` ranges are held, as far
    /// as the walk to the node and its thread know.
    #[inline]
    fn enter(&self, _pin: &Pin, _node: NonNull<Node>, _passed: usize) {}

    /// Makes known that a range is about to be held shared.
    #[inline]
    fn announce_shared(&self, _span: Span) {}

    /// Removes links to nodes that are gone, in one pass along each level.
    fn sweep(&self, _pin: &Pin) {}

    /// Removes all links to nodes. No other thread uses the list any more.
    fn clear(&self, _pin: &Pin) {}
}

/// No index: every walk begins at the head.
#[derive(Debug)]
pub struct NoIndex;

impl Index for NoIndex {}

impl StartHints for NoIndex {}
