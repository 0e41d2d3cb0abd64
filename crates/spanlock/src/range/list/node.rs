//! The list's nodes, and the links between them.

use crate::range::inspect::Claim;
use crate::range::raw::Mode;
use crate::range::span::Span;
use crate::reclaim::Recycled;
use prim::atomic::{AtomicBool, AtomicPtr, Ordering};
use prim::cell::UnsafeCell;
use prim::track::Track;
use std::cell::Cell;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// A request's place in the list. From its publication on, `place` is only read; the mode is in the link.
#[repr(align(64))] // A cache line; also makes room for a link's flags.
pub(crate) struct Node {
    pub(super) link: AtomicLink,
    /// Whether the request, already published, may still withdraw.
    tentative: AtomicBool,
    /// Whether it is the base of a [`TallNode`](super::tower::TallNode). Never changes.
    is_tall: bool,
    place: UnsafeCell<Place>,
    pooled: Cell<*mut Node>,
    _track: Track,
}

/// What a request wants, and whose it is.
#[derive(Clone, Copy)]
struct Place {
    span: Span,
    thread: u32,
    /// Where it was asked for; kept in debug builds.
    at: &'static Location<'static>,
}

impl Recycled for Node {
    fn ready() -> usize {
        prim::stock(128, 2)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self::new(Stature::Plain))
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

/// Whether a node stands alone or is the base of a tower.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stature {
    Plain,
    Tall,
}

impl Node {
    pub(super) fn new(stature: Stature) -> Self {
        Self {
            link: AtomicLink::new(),
            tentative: AtomicBool::new(false),
            is_tall: stature == Stature::Tall,
            place: UnsafeCell::new(Place {
                span: Span::ALL,
                thread: 0,
                at: Location::caller(),
            }),
            pooled: Cell::new(ptr::null_mut()),
            _track: Track::new(),
        }
    }

    /// Whether it is the base of a tower.
    #[inline]
    pub(super) fn is_tall(&self) -> bool {
        self.is_tall
    }

    /// The link now. Acquire: what it leads to is there, and what it led to before was left.
    #[inline]
    pub(super) fn look(&self) -> Link {
        // [publish] and [unlink] Acquire.
        self.link
            .load(prim::order!("publish-acquire", Ordering::Acquire))
    }

    /// The range asked for.
    #[inline]
    pub(super) fn span(&self) -> Span {
        self.claim(Link::NULL).span
    }

    /// Says whose requests the node will carry.
    ///
    /// # Safety
    /// The node is alive and no other thread knows it.
    pub(crate) unsafe fn assign(node: NonNull<Self>, thread: u32) {
        // SAFETY: the caller's.
        unsafe { node.as_ref() }.place.with_mut(|place| {
            // SAFETY: nobody reads it now: the node is not in a list.
            unsafe { (*place).thread = thread };
        });
    }

    /// Writes a request of the thread that the node is assigned to.
    ///
    /// # Safety
    /// The node is alive and no other thread knows it.
    #[inline]
    pub(super) unsafe fn prepare(
        node: NonNull<Self>,
        span: Span,
        mode: Mode,
        at: &'static Location<'static>,
    ) {
        // SAFETY: the caller's.
        let node = unsafe { node.as_ref() };
        node.place.with_mut(|place| {
            // SAFETY: nobody reads it now: the node is not in a list.
            unsafe { (*place).span = span };
            if cfg!(debug_assertions) {
                // SAFETY: as above.
                unsafe { (*place).at = at };
            }
        });
        node.link.prepare(None, mode);
    }

    /// The request, given the node's link.
    #[inline]
    pub(super) fn claim(&self, link: Link) -> Claim {
        // SAFETY: nobody writes it between publication and the end of all walks that can reach the node.
        let Place { span, thread, .. } = self.place.with(|place| unsafe { *place });
        Claim::new(span, link.mode(), thread)
    }

    /// Where the request was made, in debug builds.
    pub(super) fn at(&self) -> &'static Location<'static> {
        // SAFETY: as in `claim`.
        self.place.with(|place| unsafe { (*place).at })
    }

    /// Tells rivals that the request is published but may withdraw, or no longer may. It merely saves them from
    /// withdrawing in vain, so its order with other accesses is of no consequence.
    #[inline]
    pub(super) fn set_tentative(&self, tentative: bool) {
        self.tentative.store(tentative, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_tentative(&self) -> bool {
        self.tentative.load(Ordering::Relaxed)
    }
}

/// A pointer to the next node, with what there is to say about *the node that the link is in*:
///
/// | flag | in a node | in the list's head |
/// |---|---|---|
/// | `GONE` | released or withdrawn; whoever passes unlinks the node | the only node was inserted by the fast path |
/// | `SLEEPER` | somebody sleeps behind it | - |
/// | `SHARED` | held, or asked for, in shared mode | - |
///
/// All changes to a link in the list are read-modify-writes that keep the flags they do not mean to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(*mut Node);

impl Link {
    const GONE: usize = 1;
    const SLEEPER: usize = 2;
    const SHARED: usize = 4;
    const FLAGS: usize = Self::GONE | Self::SLEEPER | Self::SHARED;

    pub(super) const NULL: Self = Self(ptr::null_mut());

    #[inline]
    pub(super) fn to(node: NonNull<Node>) -> Self {
        Self(node.as_ptr())
    }

    /// A link that is not null, flags and all.
    ///
    /// # Panics
    /// When it is null.
    #[inline]
    pub(super) fn non_null(self) -> NonNull<Node> {
        NonNull::new(self.0).expect("a link to a node")
    }

    #[inline]
    pub(super) fn from_non_null(link: NonNull<Node>) -> Self {
        Self(link.as_ptr())
    }

    /// The same flags, another node.
    #[inline]
    pub(super) fn with_node(self, node: Option<NonNull<Node>>) -> Self {
        let node = node.map_or(ptr::null_mut(), NonNull::as_ptr);
        Self(node.map_addr(|address| address | (self.0.addr() & Self::FLAGS)))
    }

    /// The head's link to a node inserted by the fast path.
    #[inline]
    pub(super) fn fast(self) -> Self {
        Self(self.0.map_addr(|address| address | Self::GONE))
    }

    /// The head's link to the same node, which then is like any other.
    #[inline]
    pub(super) fn regular(self) -> Self {
        Self(self.0.map_addr(|address| address & !Self::GONE))
    }

    #[inline]
    pub(super) fn node(self) -> Option<NonNull<Node>> {
        NonNull::new(self.0.map_addr(|address| address & !Self::FLAGS))
    }

    /// In the head: whether the node is the fast path's.
    #[inline]
    pub(super) fn is_fast(self) -> bool {
        self.has(Self::GONE)
    }

    /// In a node: whether it is released or withdrawn.
    #[inline]
    pub(super) fn is_gone(self) -> bool {
        self.has(Self::GONE)
    }

    #[inline]
    pub(super) fn has_sleeper(self) -> bool {
        self.has(Self::SLEEPER)
    }

    #[inline]
    pub(super) fn mode(self) -> Mode {
        if self.has(Self::SHARED) {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    #[inline]
    fn has(self, flag: usize) -> bool {
        self.0.addr() & flag != 0
    }
}

/// A link that threads change together.
pub(super) struct AtomicLink(AtomicPtr<Node>);

impl AtomicLink {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    #[inline]
    pub(super) fn load(&self, order: Ordering) -> Link {
        Link(self.0.load(order))
    }

    /// Sets the link of a node that is not in the list.
    #[inline]
    pub(super) fn prepare(&self, next: Option<NonNull<Node>>, mode: Mode) {
        let flags = match mode {
            Mode::Shared => Link::SHARED,
            Mode::Exclusive => 0,
        };
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        // Relaxed: published by the insertion.
        self.0
            .store(next.map_addr(|address| address | flags), Ordering::Relaxed);
    }

    /// Replaces `then` by `now`, or tells what is there instead.
    #[inline]
    pub(super) fn replace(
        &self,
        then: Link,
        now: Link,
        success: Ordering,
        failure: Ordering,
    ) -> Result<(), Link> {
        match self.0.compare_exchange(then.0, now.0, success, failure) {
            Ok(_) => Ok(()),
            Err(found) => Err(Link(found)),
        }
    }

    /// Marks the node, which is not, as gone; returns the link before. An addition, because it is one wait-free
    /// instruction on more processors than setting a bit is.
    #[inline]
    pub(super) fn set_gone(&self, order: Ordering) -> Link {
        Link(self.0.fetch_byte_add(Link::GONE, order))
    }

    /// Marks the node as having somebody asleep behind it; returns the link before.
    pub(super) fn set_sleeper(&self, order: Ordering) -> Link {
        Link(self.0.fetch_or(Link::SLEEPER, order))
    }

    /// Marks the node as shared; returns the link before.
    pub(super) fn set_shared(&self, order: Ordering) -> Link {
        Link(self.0.fetch_or(Link::SHARED, order))
    }
}
