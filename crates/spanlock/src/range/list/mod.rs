//! The list locks: range locks whose requests are nodes of one linked list.
//!
//! They follow *Scalable Range Locks for Scalable Address Spaces and Beyond* (Kogan, Dice and Issa, EuroSys 2020; P1 in
//! this documentation), §4, corrected and extended.
//!
//! Every request has a node. The list is sorted by range start. A request holds its range once its node is in the list
//! and the request has seen no conflicting node there. A release marks the node as gone, and a later walk unlinks it.
//! There is no lock inside: disjoint requests touch the same memory only where their nodes are neighbours.
//!
//! ```text
//!   insert [20,29] between [0,9] and [40,49]: one compare-exchange on the link of [0,9]
//!
//!       head ---> [0,9] ----------------------> [40,49] ---> null
//!                      \                      ^
//!                       +----> [20,29] ------+
//!
//!   overlap: [25,44] wants to stand before [40,49]. That node conflicts, so the request is blocked. Its own node is
//!   not in the list while it waits, so it blocks no other request.
//!
//!   wait: the blocked request sets the sleeper's mark in the link of [40,49] and sleeps in the queue. The release of
//!   [40,49] sets the gone mark with one read-modify-write, which also loads the sleeper's mark; then it dispatches the
//!   sleepers.
//!
//!       [40,49].link:   - ---------> sleeper ---------> sleeper, gone ---> unlinked by the next walk ---> reused
//!                        request marks        release marks and wakes                      after a grace period
//! ```
//!
//! | file | content |
//! |---|---|
//! | `node.rs` | nodes, links and a link's flags |
//! | `walk.rs` | walking the list; the only place that inserts and unlinks |
//! | `acquire.rs`, `acquire/`, `attempt.rs` | insertion and validation; what may become of them |
//! | `fast.rs` | the fast path of an empty list |
//! | `naming.rs` | nodes that bear what their words name |
//! | `owned.rs` | what owners hold that are no threads |
//! | `release.rs` | release, downgrade and sweep |
//! | `policy.rs`, `builder.rs` | preference and fast path; how a lock is made |
//! | `skip/` | where walks begin: at the head, or at a node found in the index of a [skip list](skip) |
//!
//! The waiting loop and the queue are in `range/wait/`, shared with the other range locks. `docs/list-locks.md`
//! explains the protocol in order and argues why it is correct. Below are the invariants and edges that the code cites.
//!
//! # Invariants
//!
//! 1. In the list, range starts ascend.
//! 2. What follows an exclusive node starts after that node's last position. (A downgraded node counts as shared.)
//! 3. A node is inserted at most once between two visits to a pool. A request that withdrew takes a fresh node.
//! 4. A request that sleeps has no node in the list, so it blocks no other request.
//!
//! # Edges: memory ordering
//!
//! - **publish**, **fast-publish** / **publish-acquire**: Release by an insertion, Acquire by the loads of links: the
//!   content of the node.
//! - **release** / **release-acquire**: Release by marking a node as gone, Acquire by the loads of links: the holder's
//!   critical section.
//! - **unlink** / **unlink-acquire**: Release by unlinking a node, Acquire by insertions and by the loads of links:
//!   again the holder's critical section, for a request that comes too late to see the node, or that sees a link which
//!   has changed and changed back.
//! - **downgrade**: Release by marking a node as shared, Acquire by the loads of links: the writer's critical section.
//! - **reader-handshake**, **writer-handshake**: a reader and a writer may be inserted at different places, so that
//!   their compare-exchanges do not compete. Each inserts, fences, and then walks: the writer the list before its node,
//!   the reader the list after its node. If the reader's fence is first, the writer's walk meets the reader. If the
//!   writer's fence is first, the reader's walk meets the writer.
//! - **fast-acquire** / **fast-release**: Acquire and Release of the compare-exchanges on the head: the critical
//!   section.
//! - **demote-acquire**: Acquire by turning a fast node into a regular one: the node may have been released and
//!   inserted again since the head was loaded.
//! - **tower-publish**: Release by changing a tower link, Acquire by following it: the content of the node found, and
//!   its insertion in the list and the levels below.
//! - **tower-gone**: Release by marking a tower link as gone, the highest first; Acquire by the loads of tower links:
//!   the marks above it. A search that starts over at a marked link does not come to that node again, so searches end.
//! - **last-link**: Release and Acquire by counting off a removed link to a tall node. The thread that removes the last
//!   link retires the node, and it does so after all other removals.
//!
//! # Edges: steps that must not be left out
//!
//! - **reader-validation**, **writer-validation**: after the fence the walk checks each node it meets. A request that
//!   meets a conflicting node, which stays, withdraws.
//! - **upgrade-validates**: a writer that replaces a node validates, whatever the index knows of readers.
//! - **try-looks**: a reader that may not wait looks for what is in its way before it is inserted. So a try that
//!   somebody refuses for as long as it lasts was never in the list, and no other request was refused because of it. (A
//!   writer's walk to its place meets all that is in its way.)
//! - **withdraw**: it does not wait inside the list (invariant 4).
//! - **replaced**: the node that a request of an owner replaces, and no other, is not in its way.
//! - **fresh-node**: after a withdrawal it takes another node (invariant 3).
//! - **demote**: a walk that finds the fast path's mark in the head removes the mark before it reads the node. From
//!   then on the holder's fast release fails. While the mark stands no other thread has read the node, so a fast
//!   release may reuse the node at once.
//! - **demote-own**: nothing is inserted behind a thread's own fast node while the mark stands, because the fast
//!   release would take the inserted node out of the list as well. The walk begins at the head and removes the mark.
//! - **cut-off**: nothing is written through the link of a node that is gone, or through the head while the mark
//!   stands. The walk starts over.
//! - **sleeper**, **wake**: a request that goes to sleep marks its blocker's link, and does not sleep if the same
//!   operation shows that the blocker is gone. A release marks the link as gone, and wakes if the same operation shows
//!   the sleeper's mark. Both are read-modify-writes of one word, so one of them sees the other.
//! - **downgrade-wake**: a downgrade wakes the readers that sleep behind the writer.
//! - **inherit**: a request that is granted while others sleep behind it marks its own link for them.
//! - **no-fast-release**: it also gives up its fast release, which does not check for sleepers.
//! - **tower-cut-off**: nothing is followed from a tower link whose node is gone. The search starts over.
//! - **tower-prepare**: a node that could not enter a level determines its successor there again.
//! - **plain-node**: the node of the fast path is in no level of the index, and enters none, because the fast release
//!   uses it again at once.
//! - **panic-leaves**: a request whose comparison of [keys](crate::range::keys) panics, and whose node is in the list,
//!   withdraws.
//! - **max-shared-len**: the index knows the length of the longest shared range. A shared request raises that before
//!   its node is inserted or downgraded. A writer loads it after the fence of its handshake, and begins its walk before
//!   every shared node that could reach into its range.
//! - **shared-len-again**: a writer that has found a start hint loads it again, and searches again if it has changed.
//!   The hint may be inside a range that was exclusive, and was downgraded after the first load.
//!
//! The edges of waiting (**admission**, **turn-ends**, **holder-bypass**) are explained in `range/wait/`, those of
//! reclamation (**grace** and others) in `reclaim/`.

mod acquire;
mod attempt;
mod builder;
mod fast;
pub(in crate::range) mod naming;
pub(in crate::range) mod node;
mod nodes;
mod owned;
mod policy;
mod release;
pub mod skip;
pub(in crate::range) mod stock;
mod walk;

pub use super::wait::Fairness;
pub use builder::Builder;
pub use policy::{FastPath, Preference};
pub use skip::{Index, NoIndex, SkipIndex};

pub(in crate::range) use acquire::{ListAcquisition, MANY};
pub(in crate::range) use attempt::{Blocker, Outside, Tried, await_decision};
pub(crate) use node::Node;
pub(in crate::range) use node::{AtomicLink, Link};
pub(in crate::range) use owned::{Behalf, InPlace};
pub(in crate::range) use policy::Policy;
pub(in crate::range) use skip::StartHints;
pub(in crate::range) use walk::Walk;

use super::id::OwnerId;
use super::inspect::{Request, Snapshot};
use super::order::{Order, QueueOrder};
use super::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, by_mode};
use super::span::Span;
use super::wait::{HolderId, Patience, WaitQueue, WaitsFor};
use crate::deadlock::Deadlocks;
use crate::range::thread::{self, Pin, ThreadRecord};
use prim::atomic::AtomicBool;
use prim::debug;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;

/// Which modes a list lock grants. Sealed: [`ExclusiveOnly`] or [`SharedExclusive`].
pub trait Protocol: sealed::Sealed {
    #[doc(hidden)]
    const NEEDS_VALIDATION: bool;
}

mod sealed {
    pub trait Sealed {}
}

/// Exclusive ranges only: insertion alone decides (P1 §4.1).
#[derive(Debug)]
pub struct ExclusiveOnly;

/// Shared and exclusive ranges: insertion is followed by validation (P1 §4.2).
#[derive(Debug)]
pub struct SharedExclusive;

impl sealed::Sealed for ExclusiveOnly {}
impl sealed::Sealed for SharedExclusive {}

impl Protocol for ExclusiveOnly {
    const NEEDS_VALIDATION: bool = false;
}

impl Protocol for SharedExclusive {
    const NEEDS_VALIDATION: bool = true;
}

/// The exclusive list lock, `list-ex` (P1 Listing 1).
pub type ListEx = RawList<ExclusiveOnly>;

/// The reader-writer list lock, `list-rw` (P1 Listings 2 and 3, corrected).
pub type ListRw = RawList<SharedExclusive>;

/// A list-based range lock, in raw form: see [`RangeLock`](super::RangeLock) for the typed lock. With an index above
/// the list it is a skip list: see [`skip`].
#[repr(align(64))] // It fills a cache line, and should not lie across two.
pub struct RawList<P, I: Index = NoIndex> {
    list: List<P, I>,
    wait_queue: WaitQueue,
}

/// The nodes of one list, and where walks begin. Requests that are blocked wait in a queue of the owner's: a lock may
/// have several lists, and has one queue.
pub(in crate::range) struct List<P, I: Index> {
    pub(in crate::range) head: AtomicLink,
    /// Whether the last insertion that walked the list found other nodes in it, or there is no fast path. A hint: it
    /// saves a compare-exchange that is likely to fail.
    pub(in crate::range) is_crowded: AtomicBool,
    policy: Policy,
    protocol: PhantomData<fn() -> P>,
    pub(in crate::range) index: I,
}

/// Proof of an acquisition: a link to its node, with the fast path's mark if the fast path granted it.
#[derive(Debug)]
pub struct Token(NonNull<Node>);

impl Token {
    /// The range that was asked for.
    ///
    /// # Safety
    /// It is held.
    pub(in crate::range) unsafe fn span(&self) -> Span {
        // SAFETY: the node is not reused while it is held.
        let node = unsafe { self.node().as_ref() };
        node.request(self.link()).span
    }

    #[inline]
    pub(super) fn new(link: Link) -> Self {
        Self(link.non_null())
    }

    #[inline]
    pub(super) fn link(&self) -> Link {
        Link::from_non_null(self.0)
    }

    #[inline]
    pub(in crate::range) fn node(&self) -> NonNull<Node> {
        self.link().node().expect("a token has a node")
    }
}

impl<P: Protocol, I: Index> RawList<P, I> {
    prim::const_fn! {
        const fn assemble(policy: Policy, patience: Patience, deadlocks: Deadlocks, index: I) -> Self {
            Self {
                list: List::new(policy, index),
                wait_queue: WaitQueue::new(patience, deadlocks),
            }
        }
    }
}

impl<P: Protocol, I: Index> RawList<P, I> {
    /// A lock with an order of its own, which its queue gets as well.
    pub(in crate::range) fn ordered(
        policy: Policy,
        patience: Patience,
        deadlocks: Deadlocks,
        index: I,
        order: QueueOrder,
    ) -> Self {
        Self {
            list: List::new(policy, index),
            wait_queue: WaitQueue::ordered(patience, deadlocks, order),
        }
    }

    /// Calls `visit` with the requests that hold their ranges, in order of range start.
    pub(in crate::range) fn each_holder(&self, mut visit: impl FnMut(HolderId, &Request)) {
        let visit = |node: NonNull<Node>, request: Request| visit(node.as_ptr().addr(), &request);
        thread::with_record(|record| self.list.each_holder(record, visit));
    }

    /// Calls `visit` with the requests that sleep, first come first, and with what is in the way of each.
    pub(in crate::range) fn each_waiter(&self, mut visit: impl FnMut(&Request, Option<&Request>)) {
        self.wait_queue.each_waiter(|request, behind| match behind {
            WaitsFor::Request(other) => visit(request, Some(other)),
            WaitsFor::Holder(holder) => {
                let mut is_met = false;
                self.each_holder(|id, other| {
                    if id == holder && !is_met {
                        is_met = true;
                        visit(request, Some(other));
                    }
                });
                if !is_met {
                    visit(request, None);
                }
            }
        });
    }

    /// How ranges compare in the lock.
    pub(in crate::range) fn order(&self) -> &I::Order {
        self.list.index.order()
    }
}

impl<P: Protocol, I: Index> List<P, I> {
    prim::const_fn! {
        pub(in crate::range) const fn new(policy: Policy, index: I) -> Self {
            Self {
                head: AtomicLink::new(),
                is_crowded: AtomicBool::new(matches!(policy.fast_path, FastPath::Off)),
                policy,
                protocol: PhantomData,
                index,
            }
        }
    }

    /// A walk that meets all nodes which conflict with a request and may be granted.
    #[inline]
    pub(in crate::range) fn walk_to<'p>(
        &'p self,
        pin: &'p Pin,
        request: &Request,
        otherwise: impl FnOnce() -> Option<&'p Node>,
    ) -> Walk<'p> {
        match self.index.start_hint(pin, request).or_else(otherwise) {
            Some(hint) => Walk::behind(pin, &self.head, hint),
            None => Walk::from_head(pin, &self.head),
        }
    }

    /// A node for a request, known to this thread only.
    fn fresh_node(
        &self,
        record: &ThreadRecord,
        request: &Request,
        at: &'static Location<'static>,
    ) -> NonNull<Node> {
        let node = self.index.take_node(record);
        if request.owner != OwnerId::of_thread(record.thread()) {
            // SAFETY: `take_node` returns a live node that no other thread knows.
            unsafe { Node::assign(node, request.owner) };
        }
        // SAFETY: the same.
        unsafe { self.prepare(node, request.span, request.mode, at) };
        node
    }

    /// Writes a request into a node that is about to be inserted here. A shared one is made known first.
    ///
    /// # Safety
    /// The node is alive and no other thread knows it.
    #[inline]
    unsafe fn prepare(
        &self,
        node: NonNull<Node>,
        span: Span,
        mode: Mode,
        at: &'static Location<'static>,
    ) {
        // First, as it may run foreign code, which may panic: what is made known is to be taken back.
        self.index.bear(node, span);
        if mode == Mode::Shared {
            self.index.announce_shared(node, span);
        }
        let thread = if debug::CHECKS { thread::id() } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { Node::prepare(node, span, mode, at, thread) };
    }

    /// Whether one that holds its range is in the way of a request.
    pub(in crate::range) fn is_taken(
        &self,
        record: &'static ThreadRecord,
        request: &Request,
    ) -> bool {
        let pin = record.pin();
        let order = self.index.order();
        let mut walk = self.walk_to(&pin, request, || None);
        while let Some((other, link)) = walk.next() {
            let theirs = other.request(link);
            if order.is_behind(theirs.span, request.span) {
                break;
            }
            if order.conflict(&theirs, request) && !other.is_tentative() {
                return true;
            }
            walk.pass(other, link);
        }
        false
    }

    /// The requests that hold their ranges, in order of range start.
    pub(in crate::range) fn holders(&self, record: &'static ThreadRecord) -> Vec<Request> {
        let mut holders = Vec::new();
        self.each_holder(record, |_, request| holders.push(request));
        holders
    }

    /// Calls `visit` with them and their nodes.
    pub(in crate::range) fn each_holder(
        &self,
        record: &'static ThreadRecord,
        mut visit: impl FnMut(NonNull<Node>, Request),
    ) {
        let pin = record.pin();
        let mut walk = Walk::from_head(&pin, &self.head);
        while let Some((node, link)) = walk.next() {
            if !node.is_tentative() {
                visit(walk.found(), node.request(link));
            }
            walk.pass(node, link);
        }
    }
}

// SAFETY: conflicting nodes are not both granted, by insertion (invariants 1 and 2) and validation (the handshake), and
// the edges above order the critical sections. `docs/list-locks.md` has the argument; the models in `spanlock-loom`
// check it.
unsafe impl<P: Protocol, I: Index> RawRangeMutex for RawList<P, I> {
    by_mode!(exclusive: Token);

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        thread::with_record(|record| {
            let request = Request::new(span, mode, record.thread());
            self.list.is_taken(record, &request)
        })
    }

    unsafe fn span_of(&self, token: &Token) -> Option<Span> {
        if I::NAMING {
            return None;
        }
        // SAFETY: it is held, as the caller promises.
        Some(unsafe { token.span() })
    }

    fn snapshot(&self) -> Option<Snapshot> {
        if I::NAMING {
            return None;
        }
        let holders = thread::with_record(|record| self.list.holders(record));
        Some(Snapshot::new(holders, self.wait_queue.waiters()))
    }
}

// SAFETY: as for `RawRangeMutex`; in this protocol, validation makes sure that no shared range overlaps an exclusive
// one.
unsafe impl<I: Index> RawRangeLock for RawList<SharedExclusive, I> {
    by_mode!(shared: Token);
}

// SAFETY: the list owns its nodes' links, which are atomic. The nodes themselves are published by [publish] and freed
// by the epochs, on whichever thread.
unsafe impl<P, I: Index> Send for List<P, I> {}
// SAFETY: all shared state is atomic.
unsafe impl<P, I: Index> Sync for List<P, I> {}

impl<P, I: Index> Drop for List<P, I> {
    fn drop(&mut self) {
        // What is left are released nodes that no walk has passed, and the nodes of leaked guards.
        let mut next = self.head.load(prim::atomic::Ordering::Relaxed).node();
        thread::with_record(|record| {
            let pin = record.pin();
            while let Some(node) = next {
                // SAFETY: linked in the list, so not reused; no other thread can walk a list that is being dropped.
                next = unsafe { node.as_ref() }
                    .link
                    .load(prim::atomic::Ordering::Relaxed)
                    .node();
                pin.unlinked(node);
            }
            self.index.clear(&pin);
        });
    }
}

impl<P: Protocol, I: Index> fmt::Debug for RawList<P, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut described = f.debug_struct("RawList");
        described
            .field("policy", &self.list.policy)
            .field("patience", &self.wait_queue.patience());
        self.snapshot().unwrap_or_default().finish(&mut described)
    }
}

#[cfg(test)]
mod tests {
    use super::skip::{SkipEx, SkipRw};
    use super::{ListEx, ListRw};

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn an_idle_lock_is_one_cache_line_or_three_with_an_index() {
        assert_eq!((size_of::<ListRw>(), size_of::<ListEx>()), (64, 64));
        assert_eq!((size_of::<SkipRw>(), size_of::<SkipEx>()), (192, 192));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn a_range_held_is_one_cache_line() {
        assert_eq!(size_of::<super::Node>(), 64);
    }
}
