//! Where a walk begins: at the head of the list, or at a node nearer to the request.

use crate::range::inspect::Request;
use crate::range::list::node::{Announced, Node};
use crate::range::order::{Order, Positions};
use crate::range::sought::Sought;
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

    /// Whether the words of ranges name something that the nodes bear: [keys](crate::range::keys). To compare them is
    /// to run foreign code, which may panic.
    const NAMING: bool = false;

    /// How ranges compare in the lock.
    type Order: Order;

    /// What a request keeps of other nodes, so that it may compare itself with them when it does not walk.
    type Noted: Default;

    fn order(&self) -> &Self::Order;

    /// A node for a request.
    #[inline]
    fn take_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        record.take_node()
    }

    /// A node without a tower, for the fast path of an owner.
    #[inline]
    fn take_plain_node(&self, record: &ThreadRecord) -> NonNull<Node> {
        record.take_node()
    }

    /// Whether a node that no other thread knows can be the fast path's, which is used again at once: no level will
    /// lead to it.
    #[inline]
    fn make_plain(&self, node: NonNull<Node>) -> bool {
        // [plain-node] SAFETY: the caller has the node, which is alive.
        !unsafe { node.as_ref() }.is_tall() || !prim::intact!("plain-node")
    }

    /// A node that no other thread knows is about to bear a request for that range.
    #[inline]
    fn bear(&self, _node: NonNull<Node>, _span: Span) {}

    /// Keeps what the words in a node's request name. A walk has reached the node.
    fn keep(&self, _kept: &Self::Noted, _node: NonNull<Node>) {}

    /// What keeps a range while its request is in the queue, if anything has to.
    fn own(&self, _span: Span) -> Option<Sought> {
        None
    }

    /// A range as people read it, where the words of a span are no numbers.
    fn describe(&self, _span: Span) -> Option<String> {
        None
    }

    /// A start hint: a node that stands before every node which conflicts with the request. `None`: the walk begins at
    /// the head. The node may have left just now.
    #[inline]
    fn start_hint<'a>(&'a self, _pin: &'a Pin, _request: &Request) -> Option<&'a Node> {
        None
    }

    /// Whether no shared range reaches from before a writer into its range. The writer asks after its fence.
    #[inline]
    fn shares_points_alone(&self) -> bool {
        false
    }

    /// Enters a node that this thread holds, so that it can be a start hint. At least `passed` ranges are held, as far
    /// as the walk to the node and its thread know.
    #[inline]
    fn enter(&self, _pin: &Pin, _node: NonNull<Node>, _passed: usize) {}

    /// Makes known that a node is about to hold a range shared.
    #[inline]
    fn announce_shared(&self, _node: NonNull<Node>, _span: Span) {}

    /// What was made known of a node.
    #[inline]
    fn announced(&self, _node: NonNull<Node>) -> Announced {
        Announced::NOTHING
    }

    /// What was made known is over: the node is marked as gone, or was never inserted.
    #[inline]
    fn ended(&self, _announced: Announced) {}

    /// Removes links to nodes that are gone, in one pass along each level.
    fn sweep(&self, _pin: &Pin) {}

    /// Removes all links to nodes. No other thread uses the list any more.
    fn clear(&self, _pin: &Pin) {}
}

/// No index: every walk begins at the head.
#[derive(Debug)]
pub struct NoIndex;

impl Index for NoIndex {}

impl StartHints for NoIndex {
    type Order = Positions;
    type Noted = ();

    fn order(&self) -> &Positions {
        &Positions
    }
}
