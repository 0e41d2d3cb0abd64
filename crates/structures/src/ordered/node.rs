//! Nodes: a key, a value, and a tower of links, in one allocation.
//!
//! ```text
//!   +------+-----+-------+---------+---------+-- -- --+
//!   | lock | key | value | level 0 | level 1 |        |      one link for each level of the node
//!   +------+-----+-------+---------+---------+-- -- --+
//!
//!   lock: nothing, if one range lock excludes updates
//! ```
//!
//! The head of a list is a node of full height without a key.

use crate::ordered::link::AtomicLink;
use prim::cell::UnsafeCell;
use prim::track::Track;
use std::alloc::{self, Layout};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The most levels of a node. With half of the nodes of one level in the next, the top level has one of 2^23 nodes.
pub(crate) const MAX_HEIGHT: usize = prim::sized(24, 2);

/// The beginning of a node. The tower extends beyond this type, so no reference to a whole node exists.
#[repr(C)]
pub(crate) struct Node<K, V, N> {
    _track: Track,
    lock: N,
    key: UnsafeCell<MaybeUninit<K>>,
    value: UnsafeCell<MaybeUninit<V>>,
    tower: [AtomicLink<K, V, N>; 0],
}

/// A pointer to a node.
pub(crate) struct NodePtr<K, V, N>(NonNull<Node<K, V, N>>);

impl<K, V, N> Clone for NodePtr<K, V, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, N> Copy for NodePtr<K, V, N> {}

impl<K, V, N> PartialEq for NodePtr<K, V, N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// # Safety
/// The methods with a reference as their result, and `height`, need a node that is alive as long as the reference. The
/// list keeps it alive for whoever has found it since the beginning of a [`Pin`](crate::ordered::reclaim::Pin).
impl<K, V, N> NodePtr<K, V, N> {
    fn layout(height: usize) -> Layout {
        let tower = Layout::array::<AtomicLink<K, V, N>>(height);
        let base = Layout::new::<Node<K, V, N>>();
        let size = offset_of_tower::<K, V, N>() + tower.expect("a tower is small").size();
        let layout = Layout::from_size_align(size.max(base.size()), base.align());
        layout.expect("a node is not too large")
    }

    fn allocate(height: usize) -> NonNull<Node<K, V, N>>
    where
        N: Default,
    {
        let layout = Self::layout(height);
        // SAFETY: a node has at least one link, so its size is not zero.
        let raw = unsafe { alloc::alloc(layout) }.cast::<Node<K, V, N>>();
        let Some(node) = NonNull::new(raw) else {
            alloc::handle_alloc_error(layout)
        };
        let base = Node {
            _track: Track::new(),
            lock: N::default(),
            key: UnsafeCell::new(MaybeUninit::uninit()),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            tower: [],
        };
        // SAFETY: the memory is large enough, aligned, and this thread's own.
        unsafe { node.write(base) };
        for level in 0..height {
            let link = AtomicLink::new(level + 1 == height);
            // SAFETY: the layout has room for so many links.
            let at = unsafe { Self(node).at(level) };
            // SAFETY: likewise, and the memory is this thread's own.
            unsafe { at.write(link) };
        }
        node
    }

    /// A head: a node of full height without a key.
    pub(crate) fn head() -> Self
    where
        N: Default,
    {
        Self(Self::allocate(MAX_HEIGHT))
    }

    /// A node of so many levels, at least one, which no other thread knows.
    pub(crate) fn new(key: K, value: V, height: usize) -> Self
    where
        N: Default,
    {
        let node = Self(Self::allocate(height));
        // SAFETY: the node was just made, and no other thread has it.
        let base = unsafe { node.0.as_ref() };
        // SAFETY: likewise, and no reference to its key exists.
        base.key.with_mut(|at| unsafe { at.cast::<K>().write(key) });
        // SAFETY: likewise.
        base.value
            .with_mut(|at| unsafe { at.cast::<V>().write(value) });
        node
    }

    /// The node that a link leads to.
    #[inline]
    pub(crate) fn of(node: NonNull<Node<K, V, N>>) -> Self {
        Self(node)
    }

    /// As links have it.
    #[inline]
    pub(crate) fn raw(self) -> NonNull<Node<K, V, N>> {
        self.0
    }

    /// Where a link is.
    ///
    /// # Safety
    /// The node has that level.
    #[inline]
    unsafe fn at(self, level: usize) -> *mut AtomicLink<K, V, N> {
        // SAFETY: the tower is in the same allocation, behind the other fields.
        let tower = unsafe { self.0.as_ptr().byte_add(offset_of_tower::<K, V, N>()) };
        // SAFETY: the caller's.
        unsafe { tower.cast::<AtomicLink<K, V, N>>().add(level) }
    }

    /// The link of a level.
    ///
    /// # Safety
    /// The node is alive for `'a` and has that level.
    #[inline]
    pub(crate) unsafe fn link<'a>(self, level: usize) -> &'a AtomicLink<K, V, N> {
        // SAFETY: the caller's.
        let link = unsafe { self.at(level) };
        // SAFETY: the node is alive, and links are accessed by shared references only.
        unsafe { &*link }
    }

    /// The number of levels.
    ///
    /// # Safety
    /// The node is alive.
    pub(crate) unsafe fn height(self) -> usize {
        // SAFETY: the node is alive, and has every level up to its top.
        let is_top = |level: &usize| unsafe { self.link(*level) }.peek().is_top();
        1 + (0..MAX_HEIGHT).find(is_top).expect("each tower ends")
    }

    /// The key.
    ///
    /// # Safety
    /// The node is alive for `'a`, and not a head.
    #[inline]
    pub(crate) unsafe fn key<'a>(self) -> &'a K {
        // SAFETY: alive, as the caller promises.
        let key = unsafe { &(*self.0.as_ptr()).key };
        // SAFETY: a node that is not a head has a key, which does not change.
        key.with(|key| unsafe { &*key.cast::<K>() })
    }

    /// The value.
    ///
    /// # Safety
    /// The node is alive for `'a`, and not a head.
    #[inline]
    pub(crate) unsafe fn value<'a>(self) -> &'a V {
        // SAFETY: alive, as the caller promises.
        let value = unsafe { &(*self.0.as_ptr()).value };
        // SAFETY: a node that is not a head has a value, which does not change.
        value.with(|value| unsafe { &*value.cast::<V>() })
    }

    /// The lock in the node.
    ///
    /// # Safety
    /// The node is alive for `'a`.
    #[inline]
    pub(crate) unsafe fn lock<'a>(self) -> &'a N {
        // SAFETY: the caller's.
        unsafe { &(*self.0.as_ptr()).lock }
    }

    /// Takes key and value out, and frees the node.
    ///
    /// # Safety
    /// No other thread knows the node, or will access it. It is not a head.
    pub(crate) unsafe fn into_parts(self) -> (K, V) {
        // SAFETY: the node is this thread's alone.
        let base = unsafe { self.0.as_ref() };
        // SAFETY: the node has a key, and `free` does not drop it.
        let key = base.key.with_mut(|at| unsafe { at.cast::<K>().read() });
        // SAFETY: the same of the value.
        let value = base.value.with_mut(|at| unsafe { at.cast::<V>().read() });
        // SAFETY: the caller's.
        unsafe { self.free() };
        (key, value)
    }

    /// Frees the memory, but drops neither key nor value.
    ///
    /// # Safety
    /// No other thread knows the node, or will access it.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the node is alive until the end of this function.
        let height = unsafe { self.height() };
        for level in 0..height {
            // SAFETY: it has this level.
            let link = unsafe { self.at(level) };
            // SAFETY: nobody accesses it any more.
            unsafe { ptr::drop_in_place(link) };
        }
        // SAFETY: likewise. A `MaybeUninit` drops nothing.
        unsafe { ptr::drop_in_place(self.0.as_ptr()) };
        // SAFETY: `allocate` has allocated it with the layout of this height.
        unsafe { alloc::dealloc(self.0.as_ptr().cast(), Self::layout(height)) };
    }
}

const fn offset_of_tower<K, V, N>() -> usize {
    std::mem::offset_of!(Node<K, V, N>, tower)
}

#[cfg(test)]
mod tests {
    use super::NodePtr;
    use crate::ordered::exclusion::NodeLock;

    #[test]
    fn a_node_of_a_set_has_its_key_and_its_links_alone() {
        type Locked = NodePtr<u64, (), NodeLock>;
        for height in [1, 2, 16] {
            assert_eq!(
                NodePtr::<u64, (), ()>::layout(height).size(),
                8 + 8 * height
            );
            assert_eq!(Locked::layout(height).size(), 16 + 8 * height);
        }
    }

    #[test]
    fn a_node_gives_back_what_was_put_in() {
        let node = NodePtr::<String, u128, ()>::new("key".to_owned(), 7, 3);
        // SAFETY: the node is alive.
        assert_eq!(unsafe { node.height() }, 3);
        // SAFETY: likewise.
        assert_eq!(unsafe { node.key() }, "key");
        // SAFETY: likewise.
        assert_eq!(unsafe { *node.value() }, 7);
        // SAFETY: no other thread knows the node.
        assert_eq!(unsafe { node.into_parts() }, ("key".to_owned(), 7));
    }
}
