//! What one range lock can do and locks in nodes cannot: operations on all keys of a range, or on several keys, in one
//! step.
//!
//! They hold the positions of all links that they change or read, so other updates come before or after them as a
//! whole. Searches take no lock, and may see a part of such an operation. A snapshot sees none in part.

use super::RangeSkipMap;
use super::iter::{before_or_after_start, is_beyond};
use super::update::{Change, Fresh};
use super::view::{View, entry};
use crate::ordered::exclusion::{ByRange, Pieces, add_each};
use crate::ordered::key::Key;
use crate::ordered::node::NodePtr;
use crate::ordered::search::{Path, locate};
use spanlock::range::raw::RawRangeMutex;
use std::ops::{Bound, RangeBounds};

/// The bounds of a range. The caller's code tells them, and could tell others the next time: a node that is outside by
/// one answer and inside by another would stay linked when it is freed.
fn bounds<K>(range: &impl RangeBounds<K>) -> (Bound<&K>, Bound<&K>) {
    (range.start_bound(), range.end_bound())
}

/// A node of a map under one range lock.
type Node<K, V> = NodePtr<K, V, ()>;

/// The nodes of a range, and how many levels the highest has.
struct Run<K, V> {
    nodes: Vec<Node<K, V>>,
    height: usize,
}

/// The nodes from one on whose keys are not behind a range, and that have not left the map.
///
/// # Safety
/// The caller has been pinned since before it found the node.
unsafe fn run<K: Ord, V>(mut ahead: Option<Node<K, V>>, range: &impl RangeBounds<K>) -> Run<K, V> {
    let (mut nodes, mut height) = (Vec::new(), 0);
    while let Some(node) = ahead {
        // SAFETY: found under the pin, and no link leads to a head.
        if is_beyond(range, unsafe { node.key() }) {
            break;
        }
        // SAFETY: found under the pin.
        let link = unsafe { node.link(0) }.load();
        ahead = link.node().map(NodePtr::of);
        if !link.has_left() {
            nodes.push(node);
            // SAFETY: found under the pin.
            height = height.max(unsafe { node.height() });
        }
    }
    Run { nodes, height }
}

impl<K: Key, V, L: RawRangeMutex> RangeSkipMap<K, V, ByRange<L>> {
    /// The positions of the links that an operation on a range changes, in nodes of so many levels: of everything from
    /// the predecessor to the end of the range, and of the predecessors at the levels above.
    ///
    /// # Safety
    /// The caller has been pinned since before the search for the range's start.
    unsafe fn pieces_of(
        &self,
        path: &Path<K, V, ()>,
        range: &impl RangeBounds<K>,
        height: usize,
    ) -> Pieces {
        let end = match range.end_bound() {
            Bound::Included(last) => last.position(),
            Bound::Excluded(end) => end.position(),
            Bound::Unbounded => u64::MAX,
        };
        // SAFETY: the search has found the node, and the caller is pinned.
        let position = |node| unsafe { self.position(node) };
        let first = position(path.preds[0]);
        let start = match range.start_bound() {
            // [set-range]
            Bound::Included(start) if !prim::intact!("set-range") => start.position(),
            _ => first,
        };
        let mut pieces = Pieces::new();
        pieces.push((start, end.max(start)));
        let above = path.preds[..height].iter().skip(1);
        add_each(&mut pieces, above.map(|&node| position(node)));
        pieces
    }
}

impl<K: Key, V, L: RawRangeMutex> View<'_, K, V, ByRange<L>> {
    /// The entries whose keys are in a range, all as they were at one moment.
    ///
    /// Unlike [`range`](Self::range) it locks the range: updates of these keys wait meanwhile, and other snapshots of
    /// them. Searches do not.
    ///
    /// ```
    /// # use spanlock_structures::ordered::RangeSkipMap;
    /// let stock: RangeSkipMap<u64, u64> = [(1, 5), (2, 7), (3, 1)].into_iter().collect();
    /// let view = stock.pin();
    /// let both = view.snapshot(1..=2);
    /// assert_eq!(both, [(&1, &5), (&2, &7)]);
    /// ```
    #[must_use]
    pub fn snapshot<R: RangeBounds<K>>(&self, range: R) -> Vec<(&K, &V)> {
        let range = bounds(&range);
        loop {
            // SAFETY: pinned.
            let path = unsafe { locate(self.map.head, |key| before_or_after_start(&range, key)) };
            // SAFETY: pinned since before the search.
            let pieces = unsafe { self.map.pieces_of(&path, &range, 1) };
            // [set-several] As an update of all these keys.
            let held = prim::intact!("set-several").then(|| self.map.exclusion.hold(&pieces));
            let change = Change {
                path: &path,
                height: 1,
                victim: None,
            };
            // SAFETY: pinned since before the search, and other updates are excluded.
            if unsafe { change.is_valid() } {
                // SAFETY: likewise.
                let nodes = unsafe { run(path.nexts[0], &range) }.nodes;
                drop(held);
                // SAFETY: pinned for as long as the references live.
                return nodes
                    .into_iter()
                    .map(|node| unsafe { entry(node) })
                    .collect();
            }
            prim::edge::starts_over();
        }
    }

    /// Removes all keys in a range in one step, and returns their entries in order.
    ///
    /// Other updates, and [snapshots](Self::snapshot), come before or after the whole of it. A search or an iteration
    /// may find some of the keys and no longer find others.
    ///
    /// ```
    /// # use spanlock_structures::ordered::RangeSkipMap;
    /// let events: RangeSkipMap<u64, &str> = [(10, "a"), (20, "b"), (30, "c")].into_iter().collect();
    /// let view = events.pin();
    /// assert_eq!(view.remove_range(..25), [(&10, &"a"), (&20, &"b")]);
    /// assert_eq!(view.iter().count(), 1);
    /// ```
    pub fn remove_range<R: RangeBounds<K>>(&self, range: R) -> Vec<(&K, &V)> {
        let range = bounds(&range);
        loop {
            // SAFETY: pinned.
            let path = unsafe { locate(self.map.head, |key| before_or_after_start(&range, key)) };
            // That nothing is there is only certain once updates are excluded.
            // SAFETY: pinned since before the search.
            let height = unsafe { run(path.nexts[0], &range) }.height.max(1);
            // SAFETY: pinned since before the search.
            let pieces = unsafe { self.map.pieces_of(&path, &range, height) };
            let held = self.map.exclusion.hold(&pieces);
            let change = Change {
                path: &path,
                height,
                victim: None,
            };
            // SAFETY: pinned since before the search, and other updates are excluded.
            let all = unsafe { change.is_valid() }.then(|| unsafe { run(path.nexts[0], &range) });
            if let Some(all) = all.filter(|all| all.height <= height) {
                // SAFETY: likewise: these are all nodes of the range, and none is higher.
                unsafe { change.unlink(&all.nodes) };
                drop(held);
                let bag = self.map.bags.get(self.pin.number());
                for &node in &all.nodes {
                    // SAFETY: unlinked at all levels by this thread, and no other thread does it again.
                    unsafe { bag.retire(node) };
                }
                // SAFETY: pinned for as long as the references live.
                return all
                    .nodes
                    .into_iter()
                    .map(|node| unsafe { entry(node) })
                    .collect();
            }
            drop(held);
            prim::edge::starts_over();
        }
    }

    /// Replaces the values of several keys in one step by what `change` makes of them, and returns the new values.
    /// `None`, and nothing changes, if one of the keys is not in the map.
    ///
    /// The change is atomic: the values that `change` was given are those that are replaced, and other updates and
    /// [snapshots](Self::snapshot) see all of it or nothing. A search may see a part. `change` is called outside the
    /// lock, and again if another thread has changed a value meanwhile.
    ///
    /// ```
    /// # use spanlock_structures::ordered::RangeSkipMap;
    /// let accounts: RangeSkipMap<&str, u64> = [("ann", 10), ("bob", 0)].into_iter().collect();
    /// let view = accounts.pin();
    /// let moved = view.update_many([&"ann", &"bob"], |[from, to]| [from - 4, to + 4]);
    /// assert_eq!(moved, Some([&6, &4]));
    /// ```
    ///
    /// # Panics
    /// When two of the keys are equal, or a key's clone is another key.
    pub fn update_many<const N: usize>(
        &self,
        keys: [&K; N],
        mut change: impl FnMut([&V; N]) -> [V; N],
    ) -> Option<[&V; N]>
    where
        K: Clone,
    {
        let mut order: [usize; N] = std::array::from_fn(|at| at);
        order.sort_unstable_by(|one, other| keys[*other].cmp(keys[*one]));
        let twice = order.windows(2).any(|pair| keys[pair[0]] == keys[pair[1]]);
        assert!(!twice, "an update of several keys has the same key twice");
        loop {
            let found = keys.map(|key| self.locate(key));
            if found.iter().any(Option::is_none) {
                return None;
            }
            let found = found.map(|found| found.expect("just seen"));
            // SAFETY: found, and pinned since before.
            let values = found.each_ref().map(|(_, node)| unsafe { node.value() });
            let mut new = change(values).into_iter();
            let fresh: [_; N] = std::array::from_fn(|at| {
                let value = new.next().expect("as many as there are keys");
                // SAFETY: found, and pinned since before.
                let height = unsafe { found[at].1.height() };
                Fresh::instead(keys[at], value, height)
            });
            let changes = found.each_ref().map(|(path, node)| Change {
                path,
                // SAFETY: found, and pinned since before.
                height: unsafe { node.height() },
                victim: Some(*node),
            });
            let mut pieces = Pieces::new();
            // [set-several]
            let excluded = match prim::intact!("set-several") {
                true => &order[..],
                false => &order[..1],
            };
            for &at in excluded {
                let Change { path, height, .. } = &changes[at];
                let nodes = [found[at].1]
                    .into_iter()
                    .chain(path.preds[..*height].iter().copied());
                // SAFETY: found, and pinned since before.
                let positions = nodes.map(|node| unsafe { self.map.position(node) });
                add_each(&mut pieces, positions);
            }
            let held = self.map.exclusion.hold(&pieces);
            // SAFETY: pinned since before the searches, and other updates are excluded.
            if changes.iter().all(|change| unsafe { change.is_valid() }) {
                let heirs = fresh.map(Fresh::give_up);
                // The largest key first: its node may be a predecessor's successor, and then the heir takes over.
                for &at in &order {
                    // SAFETY: likewise, and no other thread knows the heir, which has the same height.
                    unsafe { changes[at].put(found[at].1, heirs[at]) };
                }
                drop(held);
                for (_, node) in &found {
                    // SAFETY: no link leads to the node any more, and no other thread does this again.
                    unsafe { self.map.bags.get(self.pin.number()).retire(*node) };
                }
                // SAFETY: pinned for as long as the references live.
                return Some(heirs.map(|heir| unsafe { heir.value() }));
            }
            drop(held);
            prim::edge::starts_over();
        }
    }
}

impl<K: Key, V> Change<'_, K, V, ()> {
    /// Takes these nodes, which are all of a range, out of the map.
    ///
    /// # Safety
    /// The caller has been pinned since before the search, and excludes other updates. The path is valid, up to the
    /// height of the highest node.
    unsafe fn unlink(&self, nodes: &[Node<K, V>]) {
        for node in nodes {
            // SAFETY: found, and the caller is pinned.
            let last = unsafe { node.link(0) };
            last.leave(last.peek().node());
        }
        for level in (0..self.height).rev() {
            let mut next = self.path.nexts[level];
            while let Some(node) = next {
                // No comparison, which is the caller's code and may panic: others that have left are not linked here.
                // SAFETY: found by a link, and the caller is pinned.
                if !unsafe { node.link(0) }.peek().has_left() {
                    break;
                }
                // SAFETY: found at this level.
                next = unsafe { node.link(level) }.peek().node().map(NodePtr::of);
            }
            // SAFETY: the search has found the node, at this level.
            unsafe { self.path.preds[level].link(level) }.lead_to(next.map(NodePtr::raw));
        }
    }
}
