//! Nodes that one thread has unlinked from one map.

use super::epoch::Grace;
use super::record::epochs;
use crate::ordered::node::NodePtr;
use prim::cell::UnsafeCell;
use std::mem;

/// As many nodes are sealed at a time, so that the cost of the heavy side of the barrier, some microseconds, is a small
/// part of the cost of as many removals.
fn batch() -> usize {
    prim::stock(128, 1)
}

/// What a thread has unlinked from a map. The owner of the bag is the owner of the record with the same number.
pub(crate) struct Bag<K, V, N>(UnsafeCell<Content<K, V, N>>);

struct Content<K, V, N> {
    /// Unlinked. Other threads may stand on them.
    retired: Vec<NodePtr<K, V, N>>,
    /// Unlinked before `grace` began.
    sealed: Vec<NodePtr<K, V, N>>,
    grace: Grace,
}

// SAFETY: only the owner accesses the content: see `retire`.
unsafe impl<K, V, N> Sync for Bag<K, V, N> {}
// SAFETY: keys and values may be dropped by another thread, since the map that has the bag asks that of them.
unsafe impl<K, V, N> Send for Bag<K, V, N> {}

impl<K, V, N> Default for Bag<K, V, N> {
    fn default() -> Self {
        Self(UnsafeCell::new(Content {
            retired: Vec::new(),
            sealed: Vec::new(),
            grace: Grace::default(),
        }))
    }
}

impl<K, V, N> Bag<K, V, N> {
    /// Gives up a node that this thread has unlinked. Frees the nodes whose grace period is over.
    ///
    /// # Safety
    /// The bag has the number of the caller's pin. The node was unlinked from the map with this bag, and is retired
    /// once.
    #[inline]
    pub(crate) unsafe fn retire(&self, node: NodePtr<K, V, N>) {
        let free = self.0.with_mut(|content| {
            // SAFETY: the caller has the record of this number, and so has no other thread. No user code runs while
            // the reference lives.
            let content = unsafe { &mut *content };
            content.retired.push(node);
            if content.retired.len().is_multiple_of(batch()) {
                content.collect()
            } else {
                Vec::new()
            }
        });
        for node in free {
            // SAFETY: it was unlinked, and its grace period is over.
            drop(unsafe { node.into_parts() });
        }
    }
}

impl<K, V, N> Content<K, V, N> {
    /// Seals the retired nodes, and returns those that can be freed.
    #[cold] // Once in so many removals.
    fn collect(&mut self) -> Vec<NodePtr<K, V, N>> {
        if !self.grace.is_over() {
            return Vec::new();
        }
        let free = mem::replace(&mut self.sealed, mem::take(&mut self.retired));
        self.grace.restart(epochs);
        free
    }
}

impl<K, V, N> Drop for Bag<K, V, N> {
    fn drop(&mut self) {
        let (retired, sealed) = self.0.with_mut(|content| {
            // SAFETY: the map is dropped, so no thread has a view of it.
            let content = unsafe { &mut *content };
            (
                mem::take(&mut content.retired),
                mem::take(&mut content.sealed),
            )
        });
        for node in retired.into_iter().chain(sealed) {
            // SAFETY: it was unlinked, and no thread has a view of the map.
            drop(unsafe { node.into_parts() });
        }
    }
}
