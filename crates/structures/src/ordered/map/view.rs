//! Views: the operations of a map.

use super::RangeSkipMap;
use super::iter::{Iter, before_or_after_start};
use super::update::{Found, Fresh};
use crate::ordered::exclusion::{ByRange, Exclusion};
use crate::ordered::key::Key;
use crate::ordered::node::NodePtr;
use crate::ordered::reclaim::Pin;
use crate::ordered::search::{Path, find, reach};
use std::cmp::Ordering;
use std::fmt;
use std::ops::RangeBounds;

/// The path to a key, and its node.
pub(super) type Located<K, V, N> = (Path<K, V, N>, NodePtr<K, V, N>);

/// A view of a [`RangeSkipMap`], from [`pin`](RangeSkipMap::pin).
///
/// References to keys and values live as long as the view, also those to entries that have left the map. While a view
/// lives, nothing is freed that leaves a map. A view stays on its thread:
/// ```compile_fail,E0277
/// # use spanlock_structures::ordered::RangeSkipMap;
/// let map: RangeSkipMap<u64, u64> = RangeSkipMap::new();
/// let view = map.pin();
/// std::thread::scope(|scope| {
///     scope.spawn(move || view.contains(&1));
/// });
/// ```
/// and what it lends does not outlive it:
/// ```compile_fail,E0597
/// # use spanlock_structures::ordered::RangeSkipMap;
/// let map: RangeSkipMap<u64, u64> = RangeSkipMap::new();
/// let value = {
///     let view = map.pin();
///     view.get(&1)
/// };
/// drop(value);
/// ```
pub struct View<'m, K: Key, V, X: Exclusion = ByRange> {
    pub(super) map: &'m RangeSkipMap<K, V, X>,
    pub(super) pin: Pin,
}

/// The key and the value of a node.
///
/// # Safety
/// The node is alive for `'a`, and not a head.
pub(super) unsafe fn entry<'a, K, V, N>(node: NodePtr<K, V, N>) -> (&'a K, &'a V) {
    // SAFETY: the caller's.
    let key = unsafe { node.key() };
    // SAFETY: the caller's.
    (key, unsafe { node.value() })
}

/// The heir of a node that has left the map: the node that has taken its place, if it was not removed.
///
/// # Safety
/// The node was found by a search, and the caller has been pinned since before.
unsafe fn heir<K: Key, V, N>(node: NodePtr<K, V, N>) -> Option<NodePtr<K, V, N>> {
    // SAFETY: the caller's.
    let next = NodePtr::of(unsafe { node.link(0) }.load().node()?);
    // SAFETY: found by a link, and pinned since before.
    let key = unsafe { next.key() };
    // SAFETY: the caller's, and the node has an heir or another next node, so it is not a head.
    (key == unsafe { node.key() }).then_some(next)
}

impl<'m, K: Key, V, X: Exclusion> View<'m, K, V, X> {
    #[inline]
    pub(super) fn new(map: &'m RangeSkipMap<K, V, X>, pin: Pin) -> Self {
        Self { map, pin }
    }

    /// The node with a key, if the key is in the map.
    #[inline]
    fn node(&self, key: &K) -> Option<NodePtr<K, V, X::OfNode>> {
        // SAFETY: pinned.
        let node = unsafe { find(self.map.head, |other| other.cmp(key)) }?;
        // SAFETY: found, and pinned since before.
        let link = unsafe { node.link(0) }.load();
        if !link.has_left() {
            return Some(node);
        }
        // SAFETY: found, and pinned since before.
        unsafe { heir(node) }
    }

    /// Whether the key is in the map. Wait-free.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.node(key).is_some()
    }

    /// The value of a key. Wait-free.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        // SAFETY: pinned for as long as the reference lives.
        self.node(key).map(|node| unsafe { node.value() })
    }

    /// The first entry: the one with the smallest key.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        // SAFETY: the head is alive.
        let start = unsafe { self.map.head.link(0) };
        loop {
            let first = NodePtr::of(start.load().node()?);
            let mut node = first;
            let found = loop {
                // SAFETY: found by a link, and pinned since before.
                let link = unsafe { node.link(0) }.load();
                if !link.has_left() {
                    break Some(node);
                }
                let Some(next) = link.node() else {
                    break None;
                };
                node = NodePtr::of(next);
            };
            // Nodes before the one found have left. While they are linked an update is between its marks and its last
            // link, and excludes others from the head to what comes behind them. So this is the first entry, if that
            // update has not ended before.
            if found == Some(first) || start.load().node() == Some(first.raw()) {
                // SAFETY: pinned for as long as the references live.
                return found.map(|node| unsafe { entry(node) });
            }
        }
    }

    /// The last entry: the one with the largest key.
    #[must_use]
    pub fn last(&self) -> Option<(&K, &V)> {
        let head = self.map.head;
        'over: loop {
            // SAFETY: pinned.
            let mut node = unsafe { reach(head, |_| Ordering::Less) }.pred;
            if node == head {
                return None;
            }
            // SAFETY: found, and pinned since before.
            let link = unsafe { node.link(0) }.load();
            if link.node().is_some() {
                continue; // An update was faster: a larger key, or an heir.
            }
            let mut has_left = link.has_left();
            while has_left {
                // As for the first: what comes before the nodes that have left is the last, if it still leads there.
                // SAFETY: found, and not the head.
                let key = unsafe { node.key() };
                // SAFETY: pinned.
                let pred = unsafe { reach(head, |other| other.cmp(key)) }.pred;
                // SAFETY: found, and pinned since before.
                let before = unsafe { pred.link(0) }.load();
                if before.node() != Some(node.raw()) {
                    continue 'over;
                }
                if pred == head {
                    return None;
                }
                (node, has_left) = (pred, before.has_left());
            }
            // SAFETY: pinned for as long as the references live, and not the head.
            return Some(unsafe { entry(node) });
        }
    }

    /// Whether there is no key in the map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Inserts a value, and returns the value that the key had before. If the key is in the map its new value replaces
    /// the old one in one step: no search misses the key.
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        let mut fresh = Fresh::of_random_height(&self.pin, key, value);
        loop {
            // SAFETY: pinned.
            let path = unsafe { self.map.locate(fresh.key()) };
            // SAFETY: pinned since before the search.
            let refused = match unsafe { path.found() } {
                Found::Here(node) => {
                    // SAFETY: pinned since before the search, which has found the node.
                    match unsafe { self.map.replace(&self.pin, &path, node, fresh) } {
                        // SAFETY: pinned for as long as the reference lives.
                        Ok(_) => return Some(unsafe { node.value() }),
                        Err(fresh) => fresh,
                    }
                }
                // Waits for the update that unlinks the node, if there is one.
                // SAFETY: pinned since before the search.
                Found::Leaving(_) | Found::Nothing => match unsafe { self.map.enter(&path, fresh) }
                {
                    Ok(_) => return None,
                    Err(fresh) => fresh,
                },
            };
            fresh = refused;
            prim::edge::starts_over();
        }
    }

    /// The value of a key, which is inserted if the key is not in the map, and whether it was inserted.
    pub(crate) fn get_or_insert(&self, key: K, make: impl FnOnce() -> V) -> (&V, bool) {
        if let Some(node) = self.node(&key) {
            // SAFETY: pinned for as long as the reference lives.
            return (unsafe { node.value() }, false);
        }
        let mut fresh = Fresh::of_random_height(&self.pin, key, make());
        loop {
            // SAFETY: pinned.
            let path = unsafe { self.map.locate(fresh.key()) };
            // SAFETY: pinned since before the search.
            if let Found::Here(node) = unsafe { path.found() } {
                // SAFETY: pinned for as long as the reference lives.
                return (unsafe { node.value() }, false);
            }
            // SAFETY: pinned since before the search.
            match unsafe { self.map.enter(&path, fresh) } {
                // SAFETY: pinned for as long as the reference lives.
                Ok(node) => return (unsafe { node.value() }, true),
                Err(refused) => fresh = refused,
            }
            prim::edge::starts_over();
        }
    }

    /// The value of a key. If the key is not in the map, inserts what `make` returns.
    ///
    /// `make` is called once at most, outside the lock. If another thread inserts the key meanwhile, the result of
    /// `make` is dropped and the other thread's value is returned.
    ///
    /// ```
    /// # use spanlock_structures::ordered::RangeSkipMap;
    /// let map: RangeSkipMap<u64, String> = RangeSkipMap::new();
    /// let view = map.pin();
    /// assert_eq!(view.get_or_insert_with(1, || "one".to_owned()), "one");
    /// assert_eq!(view.get_or_insert_with(1, || "another".to_owned()), "one");
    /// ```
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        self.get_or_insert(key, make).0
    }

    /// Replaces the value of a key by what `change` makes of it, and returns the new value. `None` if the key is not in
    /// the map.
    ///
    /// The change is atomic: the value that `change` was given is the one that is replaced. `change` is called outside
    /// the lock, and again if another thread has changed the value meanwhile.
    ///
    /// ```
    /// # use spanlock_structures::ordered::RangeSkipMap;
    /// let counts: RangeSkipMap<&str, u64> = RangeSkipMap::new();
    /// let view = counts.pin();
    /// view.insert("seen", 0);
    /// assert_eq!(view.update(&"seen", |count| count + 1), Some(&1));
    /// assert_eq!(view.update(&"unseen", |count| count + 1), None);
    /// ```
    ///
    /// # Panics
    /// When the key's clone is another key.
    pub fn update(&self, key: &K, mut change: impl FnMut(&V) -> V) -> Option<&V>
    where
        K: Clone,
    {
        loop {
            let (path, node) = self.locate(key)?;
            // SAFETY: found, and pinned since before.
            let value = change(unsafe { node.value() });
            // SAFETY: found, and pinned since before.
            let fresh = Fresh::instead(key, value, unsafe { node.height() });
            // SAFETY: pinned since before the search, which has found the node.
            if let Ok(heir) = unsafe { self.map.replace(&self.pin, &path, node, fresh) } {
                // SAFETY: pinned for as long as the reference lives.
                return Some(unsafe { heir.value() });
            }
            prim::edge::starts_over();
        }
    }

    /// Removes a key, and returns its entry.
    pub fn remove(&self, key: &K) -> Option<(&K, &V)> {
        self.remove_if(key, |_| true)
    }

    /// Removes a key if `condition` holds for its value, and returns the entry.
    ///
    /// The removal is atomic: the value that `condition` was given last is the one that is removed. `condition` is
    /// called outside the lock, and again if another thread has changed the value meanwhile.
    pub fn remove_if(&self, key: &K, mut condition: impl FnMut(&V) -> bool) -> Option<(&K, &V)> {
        loop {
            let (path, node) = self.locate(key)?;
            // SAFETY: found, and pinned since before.
            if !condition(unsafe { node.value() }) {
                return None;
            }
            // SAFETY: pinned since before the search, which has found the node.
            if unsafe { self.map.expel(&self.pin, &path, node) }.is_ok() {
                // SAFETY: pinned for as long as the references live.
                return Some(unsafe { entry(node) });
            }
            prim::edge::starts_over();
        }
    }

    /// Removes the first entry, the one with the smallest key, and returns it. `None` if the map is empty.
    pub fn pop_first(&self) -> Option<(&K, &V)> {
        loop {
            // SAFETY: pinned.
            let path = unsafe { self.map.locate_first() };
            let node = path.nexts[0]?;
            // If the node is about to leave, this waits, and starts over.
            // SAFETY: pinned since before the search, which has found the node.
            if unsafe { self.map.expel(&self.pin, &path, node) }.is_ok() {
                // SAFETY: pinned for as long as the references live.
                return Some(unsafe { entry(node) });
            }
            prim::edge::starts_over();
        }
    }

    /// The entries, in the order of their keys. Wait-free. See [`RangeSkipMap`] for their consistency.
    pub fn iter(&self) -> Iter<'_, K, V, X> {
        // SAFETY: the head is alive.
        let first = unsafe { self.map.head.link(0) }.load().node();
        // SAFETY: found under the pin.
        unsafe { Iter::new(first.map(NodePtr::of), ..) }
    }

    /// The entries whose keys are in a range, in the order of their keys. Wait-free. A range that ends before it starts
    /// has no entries.
    pub fn range<R: RangeBounds<K>>(&self, range: R) -> Iter<'_, K, V, X, R> {
        let order = |key: &K| before_or_after_start(&range, key);
        // SAFETY: pinned.
        let first = unsafe { reach(self.map.head, order) }.next;
        // SAFETY: found under the pin.
        unsafe { Iter::new(first, range) }
    }

    /// Searches for a key. `None` if the key is not in the map. If the node was replaced and is about
    /// to be unlinked, waits until its heir is linked.
    #[inline]
    pub(super) fn locate(&self, key: &K) -> Option<Located<K, V, X::OfNode>> {
        loop {
            // SAFETY: pinned.
            let path = unsafe { self.map.locate(key) };
            // SAFETY: pinned since before the search.
            match unsafe { path.found() } {
                Found::Nothing => return None,
                Found::Here(node) => return Some((path, node)),
                Found::Leaving(node) => {
                    // SAFETY: the search has found the node, and the pin is older.
                    unsafe { heir(node) }?;
                    // SAFETY: likewise.
                    unsafe { self.map.await_replacement(&path, node) };
                }
            }
            prim::edge::starts_over();
        }
    }
}

impl<K: Key + fmt::Debug, V: fmt::Debug, X: Exclusion> fmt::Debug for View<'_, K, V, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
