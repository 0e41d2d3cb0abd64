//! The map, and views of it.
//!
//! # Protocol
//!
//! A key is in the map while a node with the key, without the flag LEFT, is linked at level 0. The levels above are
//! shortcuts. An update works in four steps:
//!
//! ```text
//!   1  search      the predecessors and successors at all levels, without a lock
//!   2  exclude     other updates of the same links: see `exclusion`
//!   3  validate    no predecessor has left, and each leads where the search found. Else start over
//!   4  change      insert    link the node, level 0 first                  takes effect with the link at level 0
//!                  remove    set LEFT, then unlink, the top level first    takes effect with LEFT
//!                  replace   set LEFT, and lead to the heir in the same    takes effect with that store
//!                            store; then link the heir at all levels
//! ```
//!
//! While a node is linked at a level it is linked at all levels below. So a search that comes down from a level finds
//! nothing missing that was there when it began. A search that ends at a node with LEFT follows its link once: to the
//! heir, if the key is the same. The heir was in the map at some time during the search: had it been replaced before
//! the search began, then no link would have led to the first node any more, because replacements of a key exclude each
//! other. So a search needs no second step, and does not wait.
//!
//! # Edges: memory ordering
//!
//! - **set-publish**: Release by the stores of links, Acquire by searches: a thread that finds a node finds its key,
//!   its value and its links.
//! - **set-leave**: the same of the last store to the link of a node that leaves the map. A thread that stands on the
//!   node follows the link to the heir, or to the next node.
//!
//! # Edges: steps that must not be left out
//!
//! - **set-validate**: between search and exclusion another update may have changed the links.
//! - **set-mark**: a removal sets LEFT before it unlinks. An update that has found the node as a predecessor, and waits
//!   for exclusion, would else change a link that no search comes to.
//! - **set-replacement**: LEFT and the link to the heir are one store. In between a search would miss the key.
//!
//! [`reclaim`](super::reclaim) explains when nodes are freed, [`exclusion`](super::exclusion) what an update locks.

mod iter;
mod several;
mod update;
mod view;

pub use iter::Iter;
pub use view::View;

use crate::ordered::exclusion::{ByRange, Exclusion};
use crate::ordered::key::Key;
use crate::ordered::node::NodePtr;
use crate::ordered::reclaim::{Bag, Pin};
use prim::thread::Table;
use std::fmt;

/// A concurrent ordered map: a skip list whose updates lock positions in one range lock.
///
/// Threads search, insert and remove at the same time through a shared reference. [`pin`](Self::pin) gives a [`View`],
/// which has the operations: what they lend, such as a reference to a value, lives as long as the view.
///
/// ```
/// use spanlock_structures::ordered::RangeSkipMap;
///
/// let map: RangeSkipMap<u64, String> = RangeSkipMap::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let map = &map;
///         scope.spawn(move || map.pin().insert(thread, format!("by thread {thread}")).is_none());
///     }
/// });
/// let view = map.pin();
/// assert_eq!(view.get(&3).map(String::as_str), Some("by thread 3"));
/// assert_eq!(view.iter().count(), 4);
/// ```
///
/// # When not to use it
/// - One thread uses the map, or threads mostly iterate over it: a B-tree takes less memory, and its neighbours are in
///   the same cache lines.
/// - The order does not matter: a concurrent hash table finds a key with one access to memory, not a dozen.
/// - There are thousands of small maps: each takes some 16 KiB when it is used.
/// - Keys have few positions: see [`Key`].
///
/// # Cost
/// A search visits one or two nodes for each doubling of the number of keys, and makes no atomic read-modify-write. An
/// update searches, allocates, and locks the positions of two nodes on average, or of three to remove one (with
/// [`ByNode`](crate::ordered::ByNode), the nodes). A node takes the size of key and value, and two words on average for
/// its links. Removed nodes are freed later, some hundred for each thread.
///
/// # Progress and blocking
/// [`get`](View::get), [`contains`](View::contains) and iteration are wait-free: they neither wait nor start over.
/// [`first`](View::first) and [`last`](View::last) start over if an update was faster, and do not wait. Updates wait
/// for updates of neighbours, and for operations on a range or on several keys that include theirs, and are as fair as
/// the range lock. Functions that the caller passes run outside the lock, and may use the same map.
///
/// # Consistency
/// Operations on single keys, `first`, `last` and [`pop_first`](View::pop_first) are linearisable. So are
/// [`snapshot`](View::snapshot), [`remove_range`](View::remove_range) and [`update_many`](View::update_many) among
/// themselves and with all updates; a search may see a part of one. An iteration yields
/// keys in ascending order, each once. It yields each key that is in the map all the time, and none that is not in the
/// map at any time; what is inserted or removed meanwhile it may yield or not.
///
/// # Memory
/// A view that lives keeps all nodes alive that leave the map meanwhile: of all threads and of all maps. Keep views for
/// as long as an operation, or for a few. A view that is leaked stops the freeing of nodes for good. A dropped map
/// drops all its keys and values, also those that have left it.
///
/// # Panics
/// If the comparison of keys panics, the map is as it was. If a key or a value panics when it is dropped, others may
/// leak.
///
/// # Source
/// See the [module](crate::ordered).
pub struct RangeSkipMap<K: Key, V, X: Exclusion = ByRange> {
    head: NodePtr<K, V, X::OfNode>,
    exclusion: X,
    /// Nodes that have left the map, by the number of the record of the thread that has unlinked them.
    bags: Table<Bag<K, V, X::OfNode>>,
}

// SAFETY: the map owns its keys and values, and drops them wherever it is dropped.
unsafe impl<K: Key + Send, V: Send, X: Exclusion + Send> Send for RangeSkipMap<K, V, X> {}
// SAFETY: threads get shared references to keys and values, and any thread may drop what another has inserted.
// Updates exclude each other as the module says.
unsafe impl<K: Key + Send + Sync, V: Send + Sync, X: Exclusion + Sync> Sync
    for RangeSkipMap<K, V, X>
{
}

impl<K: Key, V, X: Exclusion + Default> RangeSkipMap<K, V, X> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::with_exclusion(X::default())
    }
}

impl<K: Key, V, X: Exclusion> RangeSkipMap<K, V, X> {
    /// An empty map whose updates exclude each other by `exclusion`: for example, by another range lock.
    ///
    /// ```
    /// use spanlock_structures::ordered::{ByRange, RangeSkipMap};
    /// use spanlock::range::skip::SkipEx;
    ///
    /// let map = RangeSkipMap::with_exclusion(ByRange::new(SkipEx::builder().build()));
    /// map.pin().insert(1, "one");
    /// ```
    #[must_use]
    pub fn with_exclusion(exclusion: X) -> Self {
        Self {
            head: NodePtr::head(),
            exclusion,
            bags: Table::new(),
        }
    }

    /// A view of the map, for one or a few operations. A thread may have several.
    ///
    /// A thread's first view of any map takes longer: on Linux, tens of milliseconds for the first of the process.
    #[inline]
    #[must_use = "a view has the operations"]
    pub fn pin(&self) -> View<'_, K, V, X> {
        View::new(self, Pin::new())
    }
}

impl<K: Key, V, X: Exclusion + Default> Default for RangeSkipMap<K, V, X> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V, X: Exclusion + Default> FromIterator<(K, V)> for RangeSkipMap<K, V, X> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Key, V, X: Exclusion> Extend<(K, V)> for RangeSkipMap<K, V, X> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.pin().insert(key, value);
        }
    }
}

impl<K: Key + fmt::Debug, V: fmt::Debug, X: Exclusion> fmt::Debug for RangeSkipMap<K, V, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

impl<K: Key, V, X: Exclusion> Drop for RangeSkipMap<K, V, X> {
    fn drop(&mut self) {
        let mut next = {
            // SAFETY: the head is alive.
            unsafe { self.head.link(0) }.load().node()
        };
        // SAFETY: no thread has a view of the map.
        unsafe { self.head.free() };
        while let Some(node) = next.map(NodePtr::of) {
            // SAFETY: the node is linked, so it is alive, and not a head.
            next = unsafe { node.link(0) }.load().node();
            // SAFETY: no thread has a view of the map, and the walk has left the node behind.
            drop(unsafe { node.into_parts() });
        }
    }
}
