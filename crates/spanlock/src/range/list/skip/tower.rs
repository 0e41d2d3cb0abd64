//! Tall nodes: nodes with a *tower*, which is one link for each level of the index above the list.
//!
//! ```text
//!   links that lead to a tall node:          links in it:
//!
//!     level 1's ------> +------------+ -----> level 1's, with a gone mark of its own
//!     level 0's ------> | tall node  | -----> level 0's, with a gone mark of its own
//!     the list's -----> +------------+ -----> the list's: its gone mark is the release
//!
//!   A release marks from the top down. Walks and searches remove the links that lead to the node, each at its level,
//!   and count them. The thread that removes the last one retires the node.
//! ```

use crate::range::list::node::{Height, Node};
use crate::reclaim::Recycled;
use prim::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// How many levels an index can have.
pub(in crate::range::list) const MAX_LEVELS: usize = prim::sized(14, 2);

/// A node of the list that can also be linked in the levels of an index, from the lowest level up to its height.
#[repr(C, align(64))] // The base comes first, so that a pointer to it leads to the whole.
pub(crate) struct TallNode {
    base: Node,
    /// How many links lead to the node: the list's, and those of the levels. The thread that removes the last one
    /// retires the node.
    links: AtomicU32,
    /// The height drawn by lot: in how many levels the node may be linked. Only the thread that has the
    /// request, or its token later, uses this and `levels`.
    drawn: Cell<u32>,
    /// In how many levels the node is linked, or about to be.
    levels: Cell<u32>,
    pooled: Cell<*mut TallNode>,
    tower: [AtomicTowerLink; MAX_LEVELS],
}

impl Recycled for TallNode {
    fn ready() -> usize {
        prim::stock(32, 1)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self::new(Height::Tall))
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

impl TallNode {
    pub(in crate::range::list) fn new(height: Height) -> Self {
        Self {
            base: Node::new(height),
            links: AtomicU32::new(1),
            drawn: Cell::new(0),
            levels: Cell::new(0),
            pooled: Cell::new(ptr::null_mut()),
            tower: std::array::from_fn(|_| AtomicTowerLink::new()),
        }
    }

    /// The tower of a node, if it has one.
    ///
    /// # Safety
    /// The node is alive.
    #[inline]
    pub(crate) unsafe fn of(node: NonNull<Node>) -> Option<NonNull<Self>> {
        // SAFETY: the node is alive, as the caller promises.
        unsafe { node.as_ref() }.is_tall().then(|| node.cast())
    }

    #[inline]
    pub(in crate::range::list) fn base(&self) -> &Node {
        &self.base
    }

    /// Its link in that level.
    #[inline]
    pub(in crate::range::list) fn link(&self, level: usize) -> &AtomicTowerLink {
        &self.tower[level]
    }

    /// Notes the height drawn for a request, which is in no level yet.
    ///
    /// # Safety
    /// No other thread knows the node.
    pub(crate) unsafe fn draw(&self, levels: u32) {
        self.drawn.set(levels);
        self.levels.set(0);
        // Relaxed: published by the insertion.
        self.links.store(1, Ordering::Relaxed);
    }

    /// Counts the links of all the levels drawn, before the node is in the first of them. Returns their number.
    ///
    /// # Safety
    /// The caller has the request that the node carries, which holds its range.
    pub(in crate::range::list) unsafe fn plan_links(&self) -> u32 {
        let levels = self.drawn.get();
        self.levels.set(levels);
        // Relaxed: links are removed, and counted off, only after the node was marked as gone, by whoever has its token
        // then.
        self.links.store(1 + levels, Ordering::Relaxed);
        levels
    }

    /// Sets the successors in the levels from `first` on.
    pub(in crate::range::list) fn prepare_links(&self, first: usize, next: &[TowerLink]) {
        for (link, next) in self.tower[first..].iter().zip(next) {
            link.prepare(*next);
        }
    }

    /// Marks the node as gone in all levels, the highest first [tower-gone].
    ///
    /// # Safety
    /// The caller has the token of the request that the node carries, and has not marked it as gone in the list: until
    /// then one link stays, and the node is not retired.
    pub(in crate::range::list) unsafe fn leave_levels(&self) {
        for level in (0..self.levels.get() as usize).rev() {
            self.tower[level].set_gone();
        }
    }

    /// Counts off one removed link to the node. Returns whether it was the last.
    #[inline]
    pub(crate) fn lost_link(&self) -> bool {
        // [last-link] Release: this removal. Acquire: all other removals. So a walk that begins after the grace period
        // finds no way to the node, although different threads removed the links.
        self.links
            .fetch_sub(1, prim::order!("last-link", Ordering::AcqRel))
            == 1
    }
}

/// A pointer to the next node in a level, and whether *the node that the pointer is in* is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range::list) struct TowerLink(*mut TallNode);

// The mark is in the node's address.
const _: () = assert!(align_of::<TallNode>() > TowerLink::GONE);

impl TowerLink {
    const GONE: usize = 1;

    pub(in crate::range::list) const NULL: Self = Self(ptr::null_mut());

    #[inline]
    pub(in crate::range::list) fn to(node: NonNull<TallNode>) -> Self {
        Self(node.as_ptr())
    }

    #[inline]
    pub(in crate::range::list) fn node(self) -> Option<NonNull<TallNode>> {
        NonNull::new(self.unmarked().0)
    }

    #[inline]
    pub(in crate::range::list) fn is_gone(self) -> bool {
        self.0.addr() & Self::GONE != 0
    }

    /// The pointer, as it is in a node that is not gone.
    #[inline]
    pub(in crate::range::list) fn unmarked(self) -> Self {
        Self(self.0.map_addr(|address| address & !Self::GONE))
    }
}

/// A tower link in memory. It does not change any more once it is marked as gone.
pub(in crate::range::list) struct AtomicTowerLink(AtomicPtr<TallNode>);

impl AtomicTowerLink {
    prim::const_fn! {
        pub(in crate::range::list) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    #[inline]
    pub(in crate::range::list) fn load(&self) -> TowerLink {
        // [tower-publish] Acquire: the content of the node found. [tower-gone] Acquire: the marks above, if this link
        // is marked.
        TowerLink(
            self.0
                .load(prim::order!("tower-publish", Ordering::Acquire)),
        )
    }

    /// Sets the link of a node that is not in the level.
    #[inline]
    pub(in crate::range::list) fn prepare(&self, next: TowerLink) {
        // Relaxed: published by the insertion.
        self.0.store(next.0, Ordering::Relaxed);
    }

    /// Replaces `then` by `now`, or returns what is there instead.
    #[inline]
    pub(in crate::range::list) fn replace(
        &self,
        then: TowerLink,
        now: TowerLink,
    ) -> Result<(), TowerLink> {
        // [tower-publish] Release: a thread that follows the link comes after the insertion of the node into the list
        // and into the levels below.
        let success = prim::order!("tower-publish", Ordering::Release);
        match self
            .0
            .compare_exchange(then.0, now.0, success, Ordering::Acquire)
        {
            Ok(_) => Ok(()),
            Err(found) => Err(TowerLink(found)),
        }
    }

    fn set_gone(&self) {
        // [tower-gone] Release: a search that finds this link marked, and starts over, finds the links above it marked.
        self.0.fetch_or(
            TowerLink::GONE,
            prim::order!("tower-gone", Ordering::Release),
        );
    }
}
