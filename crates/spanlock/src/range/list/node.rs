//! The list's nodes, and the links between them.
//!
//! ```text
//!   one cache line:   link | tentative | height | request: range, owner, line | pool's link
//!
//!   link:   +--------------------------- pointer to the next node ------------+-- SHARED --+- SLEEPER -+- GONE -+
//! ```

use crate::range::id::OwnerId;
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::span::Span;
use crate::reclaim::Recycled;
use prim::atomic::{AtomicBool, AtomicPtr, Ordering};
use prim::cell::UnsafeCell;
use prim::debug;
use prim::track::Track;
use std::cell::Cell;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// A request in the list. After its publication `request` is only read. The mode is in the link.
#[repr(align(64))] // A cache line; also makes room for a link's flags.
pub(crate) struct Node {
    pub(in crate::range) link: AtomicLink,
    /// Whether the request, already published, may still withdraw.
    tentative: AtomicBool,
    /// Whether it is the base of a [`TallNode`](super::skip::TallNode), or more. Never changes.
    height: Height,
    request: UnsafeCell<NodeRequest>,
    pooled: Cell<*mut Node>,
    _track: Track,
}

/// The range of a request, and who made it where.
#[derive(Clone, Copy)]
struct NodeRequest {
    span: Span,
    owner: OwnerId,
    /// The line that asked for it. Kept in debug builds.
    at: &'static Location<'static>,
    /// The thread that asked for it, for whomever. Kept in debug builds.
    thread: u32,
}

impl Recycled for Node {
    fn ready() -> usize {
        prim::stock(128, 2)
    }

    fn allocate() -> Box<Self> {
        Box::new(Self::new(Height::Plain))
    }

    #[inline]
    fn pooled(&self) -> &Cell<*mut Self> {
        &self.pooled
    }
}

/// Whether a node stands alone, or is the base of a tower, which may bear keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Height {
    Plain,
    Tall,
    Naming,
}

impl Node {
    pub(super) fn new(height: Height) -> Self {
        Self {
            link: AtomicLink::new(),
            tentative: AtomicBool::new(false),
            height,
            request: UnsafeCell::new(NodeRequest {
                span: Span::ALL,
                owner: OwnerId::of_thread(0),
                at: Location::caller(),
                thread: 0,
            }),
            pooled: Cell::new(ptr::null_mut()),
            _track: Track::new(),
        }
    }

    /// Whether it is the base of a tower.
    #[inline]
    pub(super) fn is_tall(&self) -> bool {
        self.height != Height::Plain
    }

    /// What it is the base of.
    #[inline]
    pub(super) fn height(&self) -> Height {
        self.height
    }

    /// Identifies the node among the holders of its lock.
    pub(in crate::range) fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Loads the link. Acquire: the content of the next node, and the critical sections of the nodes unlinked.
    #[inline]
    pub(in crate::range) fn load(&self) -> Link {
        // [publish] and [unlink] Acquire.
        self.link
            .load(prim::order!("publish-acquire", Ordering::Acquire))
    }

    /// The range asked for.
    #[inline]
    pub(in crate::range) fn span(&self) -> Span {
        self.request(Link::NULL).span
    }

    /// Sets who makes the requests that the node will carry.
    ///
    /// # Safety
    /// The node is alive and no other thread knows it.
    #[inline]
    pub(crate) unsafe fn assign(node: NonNull<Self>, owner: OwnerId) {
        // SAFETY: the node is alive, as the caller promises.
        unsafe { node.as_ref() }.request.with_mut(|request| {
            // SAFETY: no other thread knows the node, as the caller promises, so no other access is under way.
            unsafe { (*request).owner = owner };
        });
    }

    /// Writes a request of the owner that the node is assigned to. In debug builds, that thread makes it there.
    ///
    /// # Safety
    /// The node is alive and no other thread knows it.
    #[inline]
    pub(super) unsafe fn prepare(
        node: NonNull<Self>,
        span: Span,
        mode: Mode,
        at: &'static Location<'static>,
        thread: u32,
    ) {
        // SAFETY: the node is alive, as the caller promises.
        let node = unsafe { node.as_ref() };
        node.request.with_mut(|request| {
            // SAFETY: no other thread knows the node, as the caller promises, so no other access is under way.
            unsafe { (*request).span = span };
            if debug::CHECKS {
                // SAFETY: as for the span.
                unsafe { (*request).at = at };
                // SAFETY: the same.
                unsafe { (*request).thread = thread };
            }
        });
        node.link.prepare(None, mode);
    }

    /// The request, given the node's link.
    #[inline]
    pub(in crate::range) fn request(&self, link: Link) -> Request {
        // SAFETY: no thread writes it between the node's publication and the end of all walks that can reach the node.
        let NodeRequest { span, owner, .. } = self.request.with(|request| unsafe { *request });
        Request::new(span, link.mode(), owner)
    }

    /// Where the request was made, in debug builds.
    pub(in crate::range) fn at(&self) -> &'static Location<'static> {
        // SAFETY: as in `request`: it is not written while a walk can reach the node.
        self.request.with(|request| unsafe { (*request).at })
    }

    /// The thread that made the request, in debug builds.
    pub(in crate::range) fn thread(&self) -> u32 {
        // SAFETY: as in `request`: it is not written while a walk can reach the node.
        self.request.with(|request| unsafe { (*request).thread })
    }

    /// Sets whether the request, although published, may still withdraw. A hint: it saves rivals from withdrawing
    /// needlessly, so its order with other accesses does not matter.
    #[inline]
    pub(in crate::range) fn set_tentative(&self, tentative: bool) {
        self.tentative.store(tentative, Ordering::Relaxed);
    }

    #[inline]
    pub(in crate::range) fn is_tentative(&self) -> bool {
        self.tentative.load(Ordering::Relaxed)
    }
}

/// A pointer to the next node, and flags about *the node that the link is in*:
///
/// | flag | in a node | in the list's head |
/// |---|---|---|
/// | `GONE` | released or withdrawn; a later walk unlinks it | the only node was inserted by the fast path |
/// | `SLEEPER` | a request sleeps behind it | - |
/// | `SHARED` | held, or asked for, in shared mode | - |
/// | `MOVED` | - | the lock has moved to slots: the pointer is not to a node, but to the list's new head |
///
/// All changes to a link in the list are read-modify-writes that keep the flags they do not mean to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) struct Link(*mut Node);

// The flags are in the node's address.
const _: () = assert!(align_of::<Node>() > Link::FLAGS | Link::MOVED);

impl Link {
    const GONE: usize = 1;
    const SLEEPER: usize = 2;
    const SHARED: usize = 4;
    const MOVED: usize = 8;
    const FLAGS: usize = Self::GONE | Self::SLEEPER | Self::SHARED;

    pub(in crate::range) const NULL: Self = Self(ptr::null_mut());
    #[inline]
    pub(in crate::range) fn to(node: NonNull<Node>) -> Self {
        Self(node.as_ptr())
    }

    /// A link that is not null, flags and all.
    ///
    /// # Panics
    /// When it is null.
    #[inline]
    pub(in crate::range) fn non_null(self) -> NonNull<Node> {
        NonNull::new(self.0).expect("a link to a node")
    }

    #[inline]
    pub(in crate::range) fn from_non_null(link: NonNull<Node>) -> Self {
        Self(link.as_ptr())
    }

    /// A link to another node, with these flags.
    #[inline]
    pub(in crate::range) fn with_node(self, node: Option<NonNull<Node>>) -> Self {
        let node = node.map_or(ptr::null_mut(), NonNull::as_ptr);
        Self(node.map_addr(|address| address | (self.0.addr() & Self::FLAGS)))
    }

    /// The head's link to a node inserted by the fast path.
    #[inline]
    pub(in crate::range) fn fast(self) -> Self {
        Self(self.0.map_addr(|address| address | Self::GONE))
    }

    /// The head's link to the same node, which then is like any other.
    #[inline]
    pub(in crate::range) fn regular(self) -> Self {
        Self(self.0.map_addr(|address| address & !Self::GONE))
    }

    #[inline]
    pub(in crate::range) fn node(self) -> Option<NonNull<Node>> {
        NonNull::new(self.0.map_addr(|address| address & !Self::FLAGS))
    }

    /// What a lock's head is when the lock has moved to slots: a link to what begins with the new head of its list. It
    /// has the mark of the fast path, so that walks which stand on the old head are cut off.
    pub(in crate::range) fn moved<T>(to: NonNull<T>) -> Self {
        const { assert!(align_of::<T>() > Self::MOVED, "the mark is in its address") };
        let to = to.as_ptr().cast::<Node>();
        Self(to.map_addr(|address| address | Self::MOVED | Self::GONE))
    }

    /// In the head of a lock: whether it has moved to slots.
    #[inline]
    pub(in crate::range) fn is_moved(self) -> bool {
        self.has(Self::MOVED)
    }

    /// In the head of a lock that has moved to slots: what begins with the new head of its list.
    #[inline]
    pub(in crate::range) fn new_head(self) -> Option<NonNull<AtomicLink>> {
        let is_moved = self.is_moved();
        let to = self
            .0
            .map_addr(|address| address & !(Self::MOVED | Self::GONE));
        NonNull::new(to.cast()).filter(|_| is_moved)
    }

    /// In the head: whether the node is the fast path's.
    #[inline]
    pub(in crate::range) fn is_fast(self) -> bool {
        self.has(Self::GONE)
    }

    /// In a node: whether it is released or withdrawn.
    #[inline]
    pub(in crate::range) fn is_gone(self) -> bool {
        self.has(Self::GONE)
    }

    #[inline]
    pub(in crate::range) fn has_sleeper(self) -> bool {
        self.has(Self::SLEEPER)
    }

    #[inline]
    pub(in crate::range) fn mode(self) -> Mode {
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

/// A link in memory.
pub(in crate::range) struct AtomicLink(AtomicPtr<Node>);

impl AtomicLink {
    prim::const_fn! {
        pub(in crate::range) const fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// A link in memory with that content.
    pub(in crate::range) fn holding(link: Link) -> Self {
        Self(AtomicPtr::new(link.0))
    }

    /// Sets the link, which no other thread changes at the same time.
    pub(in crate::range) fn set(&self, link: Link, order: Ordering) {
        self.0.store(link.0, order);
    }

    #[inline]
    pub(in crate::range) fn load(&self, order: Ordering) -> Link {
        Link(self.0.load(order))
    }

    /// Sets the link of a node that is not in the list.
    #[inline]
    pub(in crate::range) fn prepare(&self, next: Option<NonNull<Node>>, mode: Mode) {
        let flags = match mode {
            Mode::Shared => Link::SHARED,
            Mode::Exclusive => 0,
        };
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        // Relaxed: published by the insertion.
        self.0
            .store(next.map_addr(|address| address | flags), Ordering::Relaxed);
    }

    /// Replaces `then` by `now`, or returns what is there instead.
    #[inline]
    pub(in crate::range) fn replace(
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

    /// Marks the node as gone, once; returns the link before. An addition, because on more processors an addition is
    /// one wait-free instruction than setting a bit is.
    #[inline]
    pub(in crate::range) fn set_gone(&self, order: Ordering) -> Link {
        Link(self.0.fetch_byte_add(Link::GONE, order))
    }

    /// Marks that a request sleeps behind the node; returns the link before.
    pub(in crate::range) fn set_sleeper(&self, order: Ordering) -> Link {
        Link(self.0.fetch_or(Link::SLEEPER, order))
    }

    /// Marks the node as shared; returns the link before.
    pub(in crate::range) fn set_shared(&self, order: Ordering) -> Link {
        Link(self.0.fetch_or(Link::SHARED, order))
    }
}

/// What an index was told of a node that is shared: its number there, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) struct Announced(pub(in crate::range) u32);

impl Announced {
    pub(in crate::range) const NOTHING: Self = Self(0);
}
