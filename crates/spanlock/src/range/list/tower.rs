//! Nodes with a tower: links of their own in the levels of an index above the list.

use super::node::{Node, Stature};
use crate::reclaim::Recycled;
use prim::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The levels that an index can have.
pub(super) const MAX_LEVELS: usize = prim::sized(14, 2);

/// A node of the list that can also be linked in the levels of an index, from the lowest up to some height.
#[repr(C, align(64))] // The base comes first, so that a pointer to it leads to the whole.
pub(crate) struct TallNode {
    base: Node,
    /// How many links lead to the node: the list's, and those of the levels. Whoever removes the last retires it.
    links: AtomicU32,
    /// In how many levels it may be linked, as drawn by lot.
    drawn: Cell<u32>,
    /// In how many it is, or is about to be. Both are for the thread whose request the node carries.
    levels: Cell<u32>,
    pooled: Cell<*mut TallNode>,
    rungs: [AtomicRung; MAX_LEVELS],
}

impl Recycled for TallNode {
    fn ready() -> usize {
        prim::stock(32, 1)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self {
            base: Node::new(Stature::Tall),
            links: AtomicU32::new(1),
            drawn: Cell::new(0),
            levels: Cell::new(0),
            pooled: Cell::new(ptr::null_mut()),
            rungs: std::array::from_fn(|_| AtomicRung::new()),
        })
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

impl TallNode {
    /// The tower of a node, if it has one.
    ///
    /// # Safety
    /// The node is alive.
    #[inline]
    pub(crate) unsafe fn of(node: NonNull<Node>) -> Option<NonNull<Self>> {
        // SAFETY: the caller's.
        unsafe { node.as_ref() }.is_tall().then(|| node.cast())
    }

    #[inline]
    pub(super) fn base(&self) -> &Node {
        &self.base
    }

    /// Its link in that level.
    #[inline]
    pub(super) fn rung(&self, level: usize) -> &AtomicRung {
        &self.rungs[level]
    }

    /// Notes the lot drawn for a request that is in no level yet.
    ///
    /// # Safety
    /// No other thread knows the node.
    pub(crate) unsafe fn draw(&self, levels: u32) {
        self.drawn.set(levels);
        self.levels.set(0);
        // Relaxed: published by the insertion.
        self.links.store(1, Ordering::Relaxed);
    }

    /// Says that the node will be linked in the levels drawn, before it is in the first: how many.
    ///
    /// # Safety
    /// The caller is the thread whose request the node carries, and holds its range.
    pub(super) unsafe fn plan_links(&self) -> u32 {
        let levels = self.drawn.get();
        self.levels.set(levels);
        // Relaxed: links are removed, and so counted, only after the node is gone, which the same thread says later.
        self.links.store(1 + levels, Ordering::Relaxed);
        levels
    }

    /// Sets what is to follow in the levels from `first` on.
    pub(super) fn prepare_rungs(&self, first: usize, next: &[Rung]) {
        for (rung, next) in self.rungs[first..].iter().zip(next) {
            rung.prepare(*next);
        }
    }

    /// Marks the node as gone in all levels, the highest first [rung-gone].
    ///
    /// # Safety
    /// The caller is the thread whose request the node carries, and has not marked it as gone in the list: until
    /// then one link stays, and the node is not retired.
    pub(super) unsafe fn leave_levels(&self) {
        for level in (0..self.levels.get() as usize).rev() {
            self.rungs[level].set_gone();
        }
    }

    /// Notes that one link to the node was removed; whether that was the last.
    #[inline]
    pub(crate) fn lost_link(&self) -> bool {
        // [last-link] Release: the link's removal; Acquire: all others'. So no walk that begins after the grace
        // period still finds a way to the node, though other threads removed some of the links.
        self.links
            .fetch_sub(1, prim::order!("last-link", Ordering::AcqRel))
            == 1
    }
}

/// A pointer to the next node in a level, and whether *the node that the pointer is in* is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rung(*mut TallNode);

impl Rung {
    const GONE: usize = 1;

    pub(super) const NULL: Self = Self(ptr::null_mut());

    #[inline]
    pub(super) fn to(node: NonNull<TallNode>) -> Self {
        Self(node.as_ptr())
    }

    #[inline]
    pub(super) fn node(self) -> Option<NonNull<TallNode>> {
        NonNull::new(self.unmarked().0)
    }

    #[inline]
    pub(super) fn is_gone(self) -> bool {
        self.0.addr() & Self::GONE != 0
    }

    /// The same pointer, in a node that is not gone.
    #[inline]
    pub(super) fn unmarked(self) -> Self {
        Self(self.0.map_addr(|address| address & !Self::GONE))
    }
}

/// A rung that threads change together. Once it is marked as gone it does not change any more.
pub(super) struct AtomicRung(AtomicPtr<TallNode>);

impl AtomicRung {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    #[inline]
    pub(super) fn load(&self) -> Rung {
        // [rung-publish] Acquire: what the rung leads to. [rung-gone] Acquire: the marks above, if the rung is marked.
        Rung(self.0.load(prim::order!("rung-publish", Ordering::Acquire)))
    }

    /// Sets the rung of a node that is not in the level.
    #[inline]
    pub(super) fn prepare(&self, next: Rung) {
        // Relaxed: published by the insertion.
        self.0.store(next.0, Ordering::Relaxed);
    }

    /// Replaces `then` by `now`, or tells what is there instead.
    #[inline]
    pub(super) fn replace(&self, then: Rung, now: Rung) -> Result<(), Rung> {
        // [rung-publish] Release: whoever follows the rung comes after the insertion of what it leads to, into the list
        // and the levels below.
        let success = prim::order!("rung-publish", Ordering::Release);
        match self
            .0
            .compare_exchange(then.0, now.0, success, Ordering::Acquire)
        {
            Ok(_) => Ok(()),
            Err(found) => Err(Rung(found)),
        }
    }

    fn set_gone(&self) {
        // [rung-gone] Release: who finds this rung marked, and starts over, finds those above it marked as well.
        self.0
            .fetch_or(Rung::GONE, prim::order!("rung-gone", Ordering::Release));
    }
}
