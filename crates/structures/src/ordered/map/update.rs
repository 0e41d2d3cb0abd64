//! Updates: search, exclude, validate, change. The parent module explains the steps.

use super::RangeSkipMap;
use crate::ordered::exclusion::Exclusion;
use crate::ordered::key::Key;
use crate::ordered::node::{MAX_HEIGHT, NodePtr};
use crate::ordered::reclaim::Pin;
use crate::ordered::search::{Path, locate};
use std::cmp::Ordering;
use std::mem::ManuallyDrop;

/// Of as many nodes of a level, one is in the next: 2 to this power. A search passes fewer nodes than with a quarter,
/// and each may be a cache miss; a node has two links on average, and not one and a third.
const DIGITS: u32 = 1;

/// A node that is in no map yet. Dropping it drops key and value.
pub(super) struct Fresh<K, V, N>(NodePtr<K, V, N>);

impl<K, V, N: Default> Fresh<K, V, N> {
    /// A node of the height that a new key gets, by lot.
    pub(super) fn of_random_height(pin: &Pin, key: K, value: V) -> Self {
        let wins = prim::wins(pin.random(), DIGITS) as usize;
        Self::new(key, value, 1 + wins.min(MAX_HEIGHT - 1))
    }

    /// A node with the same key as another, for its place.
    ///
    /// # Panics
    /// When a key's clone is another key: in that place it would break the order.
    pub(super) fn instead(key: &K, value: V, height: usize) -> Self
    where
        K: Key + Clone,
    {
        let fresh = Self::new(key.clone(), value, height);
        assert!(fresh.key() == key, "a key's clone is another key");
        fresh
    }

    /// A node of that height.
    pub(super) fn new(key: K, value: V, height: usize) -> Self {
        Self(NodePtr::new(key, value, height))
    }

    /// A node with the same key and value, and so many levels.
    fn of_height(self, height: usize) -> Self {
        // SAFETY: the node is alive.
        if unsafe { self.0.height() } == height {
            return self;
        }
        // SAFETY: no other thread knows the node, and this thread gives it up.
        let (key, value) = unsafe { self.give_up().into_parts() };
        Self::new(key, value, height)
    }

    /// The node, which is not dropped any more.
    pub(super) fn give_up(self) -> NodePtr<K, V, N> {
        ManuallyDrop::new(self).0
    }
}

impl<K, V, N> Fresh<K, V, N> {
    pub(super) fn key(&self) -> &K {
        // SAFETY: the node is alive, and has a key.
        unsafe { self.0.key() }
    }
}

impl<K, V, N> Drop for Fresh<K, V, N> {
    fn drop(&mut self) {
        // SAFETY: the node is in no map, so no other thread knows it.
        drop(unsafe { self.0.into_parts() });
    }
}

/// The node that is in the map now, or the one that could not be put there.
type Linked<K, V, N> = Result<NodePtr<K, V, N>, Fresh<K, V, N>>;

/// What a search for a key has found.
pub(super) enum Found<K, V, N> {
    /// The key is in the map.
    Here(NodePtr<K, V, N>),
    /// A node with the key is about to be unlinked.
    Leaving(NodePtr<K, V, N>),
    /// It is not in the map.
    Nothing,
}

/// What an update makes of the links.
pub(super) struct Change<'a, K, V, N> {
    pub(super) path: &'a Path<K, V, N>,
    /// The links up to this level change.
    pub(super) height: usize,
    /// The node that leaves the map.
    pub(super) victim: Option<NodePtr<K, V, N>>,
}

impl<K, V, N> Path<K, V, N> {
    /// What the search has found.
    ///
    /// # Safety
    /// The caller has been pinned since before the search.
    pub(super) unsafe fn found(&self) -> Found<K, V, N> {
        match self.nexts[0].filter(|_| self.is_match) {
            None => Found::Nothing,
            // SAFETY: the search has found the node, and the caller is pinned.
            Some(node) if unsafe { node.link(0) }.load().has_left() => Found::Leaving(node),
            Some(node) => Found::Here(node),
        }
    }
}

impl<K, V, N> Change<'_, K, V, N> {
    /// Whether all links are as the search has found them.
    ///
    /// # Safety
    /// The caller has been pinned since before the search, and excludes other updates.
    pub(super) unsafe fn is_valid(&self) -> bool {
        // [set-validate]
        if !prim::intact!("set-validate") {
            return true;
        }
        let Path { preds, nexts, .. } = self.path;
        (0..self.height).all(|level| {
            let (pred, next) = (preds[level], self.victim.or(nexts[level]));
            // SAFETY: the search has found the node, at this level, and the caller is pinned.
            let has_left = unsafe { pred.link(0) }.peek().has_left();
            // SAFETY: likewise.
            let found = unsafe { pred.link(level) }.peek().node().map(NodePtr::of);
            !has_left && found == next
        })
    }
}

impl<K, V, N> Change<'_, K, V, N> {
    /// Puts an heir of the same height in the place of a node, which leaves the map.
    ///
    /// # Safety
    /// The caller has been pinned since before the search, and excludes other updates. The path is valid, but for what
    /// the caller has changed in larger keys since. No other thread knows the heir.
    pub(super) unsafe fn put(&self, node: NodePtr<K, V, N>, heir: NodePtr<K, V, N>) {
        for level in 0..self.height {
            // SAFETY: the search has found the node, and it has as many levels.
            let next = unsafe { node.link(level) }.peek().node();
            // SAFETY: this thread's own node.
            unsafe { heir.link(level) }.prepare(next);
        }
        // SAFETY: as above.
        let last = unsafe { node.link(0) };
        // [set-replacement]
        if !prim::intact!("set-replacement") {
            last.leave(last.peek().node());
        }
        last.leave(Some(heir.raw()));
        for (level, pred) in self.path.preds[..self.height].iter().enumerate().rev() {
            // SAFETY: the search has found the node, at this level, and the caller is pinned.
            unsafe { pred.link(level) }.lead_to(Some(heir.raw()));
        }
    }
}

impl<K: Key, V, X: Exclusion> RangeSkipMap<K, V, X> {
    /// Searches for a key.
    ///
    /// # Safety
    /// The caller has been pinned since before the call, and until it uses the path no more.
    pub(super) unsafe fn locate(&self, key: &K) -> Path<K, V, X::OfNode> {
        // SAFETY: the caller's.
        unsafe { locate(self.head, |other| other.cmp(key)) }
    }

    /// Searches for the first key.
    ///
    /// # Safety
    /// As for [`locate`](Self::locate).
    pub(super) unsafe fn locate_first(&self) -> Path<K, V, X::OfNode> {
        // SAFETY: the caller's.
        unsafe { locate(self.head, |_| Ordering::Equal) }
    }

    /// Waits until no other update is under way that changes the same links, and excludes more of them.
    ///
    /// # Safety
    /// The caller has been pinned since before the search.
    unsafe fn exclude(&self, change: &Change<'_, K, V, X::OfNode>) -> X::Held<'_> {
        let Change { path, victim, .. } = change;
        // [set-neighbourhood]
        let height = if prim::intact!("set-neighbourhood") {
            change.height
        } else {
            1
        };
        // [set-victim]
        let victim = victim.filter(|_| prim::intact!("set-victim"));
        let changed = victim
            .into_iter()
            .chain(path.preds[..height].iter().copied());
        let changed = changed.map(|node| {
            // SAFETY: the search has found the node, and the caller is pinned.
            let position = unsafe { self.position(node) };
            // SAFETY: likewise, and the pin outlives the result: the caller drops it before.
            (position, unsafe { node.lock() })
        });
        self.exclusion.exclude(changed)
    }

    /// The position of a node: that of the head is 0.
    ///
    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn position(&self, node: NodePtr<K, V, X::OfNode>) -> u64 {
        if node == self.head {
            return 0;
        }
        // SAFETY: the caller's, and it is not the head.
        unsafe { node.key() }.position()
    }

    /// Waits until the update has ended that replaces a node.
    ///
    /// # Safety
    /// The caller has been pinned since before the search, which has found the node.
    pub(super) unsafe fn await_replacement(
        &self,
        path: &Path<K, V, X::OfNode>,
        node: NodePtr<K, V, X::OfNode>,
    ) {
        let change = Change {
            path,
            // SAFETY: the search has found the node, and the caller is pinned.
            height: unsafe { node.height() },
            victim: Some(node),
        };
        // SAFETY: the caller's.
        drop(unsafe { self.exclude(&change) });
    }

    /// Inserts a node where the search has found nothing that stays. Fails if the map has changed since.
    ///
    /// # Safety
    /// The caller has been pinned since before the search for the node's key.
    pub(super) unsafe fn enter(
        &self,
        path: &Path<K, V, X::OfNode>,
        fresh: Fresh<K, V, X::OfNode>,
    ) -> Linked<K, V, X::OfNode> {
        let node = fresh.0;
        let change = Change {
            path,
            // SAFETY: the node is alive.
            height: unsafe { node.height() },
            victim: None,
        };
        // SAFETY: the caller's.
        let held = unsafe { self.exclude(&change) };
        // SAFETY: the caller's.
        if !unsafe { change.is_valid() } {
            return Err(fresh);
        }
        for (level, next) in path.nexts[..change.height].iter().enumerate() {
            // SAFETY: the node is alive, and has this level.
            unsafe { node.link(level) }.prepare(next.map(NodePtr::raw));
        }
        for (level, pred) in path.preds[..change.height].iter().enumerate() {
            // SAFETY: the search has found the node, at this level, and the caller is pinned.
            unsafe { pred.link(level) }.lead_to(Some(node.raw()));
        }
        drop(held);
        Ok(fresh.give_up())
    }

    /// Removes a node. Fails if the map has changed since the search.
    ///
    /// # Safety
    /// The caller has been pinned, by `pin`, since before the search, which has found the node.
    pub(super) unsafe fn expel(
        &self,
        pin: &Pin,
        path: &Path<K, V, X::OfNode>,
        node: NodePtr<K, V, X::OfNode>,
    ) -> Result<(), ()> {
        let change = Change {
            path,
            // SAFETY: the search has found the node, and the caller is pinned.
            height: unsafe { node.height() },
            victim: Some(node),
        };
        // SAFETY: the caller's.
        let held = unsafe { self.exclude(&change) };
        // SAFETY: the caller's.
        if !unsafe { change.is_valid() } {
            return Err(());
        }
        // [set-mark]
        if prim::intact!("set-mark") {
            // SAFETY: as above.
            let last = unsafe { node.link(0) };
            last.leave(last.peek().node());
        }
        for (level, pred) in path.preds[..change.height].iter().enumerate().rev() {
            // SAFETY: as above, and it has as many levels.
            let next = unsafe { node.link(level) }.peek().node();
            // SAFETY: the search has found the node, at this level, and the caller is pinned.
            unsafe { pred.link(level) }.lead_to(next);
        }
        drop(held);
        // SAFETY: the node was unlinked at all levels, by this thread, and no other thread does it again.
        unsafe { self.bags.get(pin.number()).retire(node) };
        Ok(())
    }

    /// Puts a node with the same key in the place of another. Fails if the map has changed since the search.
    ///
    /// # Safety
    /// The caller has been pinned, by `pin`, since before the search, which has found the node.
    pub(super) unsafe fn replace(
        &self,
        pin: &Pin,
        path: &Path<K, V, X::OfNode>,
        node: NodePtr<K, V, X::OfNode>,
        fresh: Fresh<K, V, X::OfNode>,
    ) -> Linked<K, V, X::OfNode> {
        // SAFETY: the search has found the node, and the caller is pinned.
        let height = unsafe { node.height() };
        // The same height, so that both are linked in the same links.
        let fresh = fresh.of_height(height);
        let heir = fresh.0;
        let change = Change {
            path,
            height,
            victim: Some(node),
        };
        // SAFETY: the caller's.
        let held = unsafe { self.exclude(&change) };
        // SAFETY: the caller's.
        if !unsafe { change.is_valid() } {
            return Err(fresh);
        }
        // SAFETY: as above: the caller is pinned, other updates are excluded, and the path is valid.
        unsafe { change.put(node, heir) };
        drop(held);
        // SAFETY: no link leads to the node any more, and no other thread does this again.
        unsafe { self.bags.get(pin.number()).retire(node) };
        Ok(fresh.give_up())
    }
}
