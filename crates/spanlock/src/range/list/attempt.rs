//! What may become of an attempt to insert a node: blockers, and how two requests stand to each other.

use super::Token;
use super::node::Node;
use crate::range::thread::Pin;
use prim::atomic::Ordering;
use prim::spin::{self, Spin};
use std::ptr::NonNull;

/// A node in the way, and the walk that met it: the pin keeps the node from being reused.
pub(in crate::range) struct Blocker {
    node: NonNull<Node>,
    _pin: Pin,
}

impl Blocker {
    /// # Safety
    /// A walk under the pin has met the node.
    pub(in crate::range) unsafe fn new(node: NonNull<Node>, pin: Pin) -> Self {
        Self { node, _pin: pin }
    }

    pub(super) fn node(&self) -> &Node {
        // SAFETY: a walk under the pin has met the node, so it is not reused before the pin is dropped [grace].
        unsafe { self.node.as_ref() }
    }

    /// Whether it is a rival that is not decided.
    pub(super) fn is_tentative(&self) -> bool {
        self.node().is_tentative()
    }

    pub(super) fn is_gone(&self) -> bool {
        // Relaxed: the next walk acquires.
        self.node().link.load(Ordering::Relaxed).is_gone()
    }
}

/// What became of one attempt.
pub(in crate::range) enum Tried {
    Granted(Token),
    Blocked(Blocker),
    /// Other threads inserted faster again and again.
    Overtaken,
    /// The lock has moved to slots.
    Moved,
    /// Something that is no node is in the way. The acquisition is over.
    Refused,
}

/// What is in the way of a request whose node is in a list, and is not in that list.
pub(in crate::range) enum Outside {
    /// A node of another list, which a walk under the same pin has met.
    Node(NonNull<Node>),
    /// Something else.
    Other,
}

/// What became of one insertion.
pub(super) enum Insertion {
    /// The node is in the list, after a walk of that many steps.
    Granted(Token, usize),
    /// A conflicting node is in the way. Ours was never in the list.
    Blocked(NonNull<Node>),
    /// A conflicting node is in the way, in this list or another. Ours was in the list, is marked as gone, and may
    /// still be linked (invariant 3).
    Withdrew(NonNull<Node>),
    /// Other threads inserted faster again and again.
    Overtaken,
    /// The lock has moved to slots. The node was never in the list.
    Moved,
    /// The lock has moved to slots. The node was in the list, is marked as gone, and may still be linked.
    WithdrewMoved,
    /// Something that is no node is in the way. The same is true of our node.
    Refused,
}

impl From<Outside> for Insertion {
    fn from(met: Outside) -> Self {
        match met {
            Outside::Node(node) => Self::Withdrew(node),
            Outside::Other => Self::Refused,
        }
    }
}

/// Waits a little until a rival knows whether it stays.
pub(in crate::range) fn await_decision(rival: &Node) {
    let mut spin = Spin::new(spin::ON_DECISION);
    while rival.is_tentative() && !rival.link.load(Ordering::Relaxed).is_gone() && spin.round() {}
}
