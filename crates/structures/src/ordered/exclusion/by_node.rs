//! A lock in each node.

use super::sealed;
use crate::ordered::node::MAX_HEIGHT;
use prim::sync::{Mutex, MutexGuard};
use std::fmt;
use std::ptr;

/// Updates lock each node whose links they change: the list that [`ByRange`](super::ByRange) is compared with.
///
/// # When not to use it
/// It is there for comparison, and where the positions of keys say little about their order.
///
/// # Cost, fairness, blocking
/// As many acquisitions as there are predecessors that differ, and one more for a removal. Each node has a mutex of the
/// standard library, of 8 bytes. Updates lock larger keys first, so they do not deadlock.
///
/// # Source
/// *A Simple Optimistic Skiplist Algorithm* (Herlihy, Lev, Luchangco and Shavit, SIROCCO 2007). Two things differ. A
/// removal marks its node when it holds all locks, and not when it holds the node's alone. And a node is in the map
/// from its link at the lowest level on, so there is no flag that says it is linked at all levels: an update that finds
/// it linked at some levels only waits for the predecessors, and starts over.
#[derive(Debug, Default)]
pub struct ByNode(());

impl ByNode {
    /// Updates under locks in the nodes.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

/// The lock in a node.
#[derive(Debug)]
pub struct NodeLock(Mutex<()>);

impl Default for NodeLock {
    fn default() -> Self {
        Self(Mutex::new(()))
    }
}

/// The locks of all nodes that an update changes, held.
pub struct HeldNodes<'a>(
    #[expect(dead_code, reason = "dropped to release")]
    [Option<MutexGuard<'a, ()>>; MAX_HEIGHT + 1],
);

impl fmt::Debug for HeldNodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldNodes").finish_non_exhaustive()
    }
}

impl sealed::Exclusion for ByNode {
    type OfNode = NodeLock;
    type Held<'a> = HeldNodes<'a>;

    fn exclude<'a>(&'a self, changed: impl Iterator<Item = (u64, &'a NodeLock)>) -> HeldNodes<'a> {
        let mut last = ptr::null();
        // The node comes next to itself, so that each lock is taken once.
        let nodes = changed.map(|(_, lock)| lock);
        let others = nodes.filter(|lock| !ptr::eq(std::mem::replace(&mut last, *lock), *lock));
        let mut held = others.map(|lock| lock.0.lock()).fuse();
        HeldNodes(std::array::from_fn(|_| held.next()))
    }
}
