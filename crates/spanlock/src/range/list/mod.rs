//! The list-based range locks of Kogan, Dice and Issa (P1, EuroSys 2020, §4), mended and extended.
//!
//! Every request is a node in one linked list sorted by range start. A request that gets its node in, and sees no
//! conflicting one, holds its range. A release marks its node as gone; whoever walks past unlinks it. There is no
//! lock inside: disjoint ranges meet only where their nodes are neighbours.
//!
//! | file | content |
//! |---|---|
//! | `node.rs` | nodes, links and a link's flags |
//! | `walk.rs` | walking the list and unlinking; the only place that inserts or unlinks |
//! | `acquire.rs` | insertion, validation, release: the protocol |
//! | `contend.rs` | looking at a blocker, and what an arrival inherits; the rest of waiting is `../waiting.rs` |
//! | `policy.rs` | fairness, preference, fast path |
//! | `index.rs` | where walks begin: at the head, or |
//! | `levels.rs`, `tower.rs` | at a node found in the index of a [skip list](super::skip) |
//!
//! `docs/list-locks.md` tells the protocol in order, with the arguments; here are the names the code cites.
//!
//! # Invariants
//!
//! 1. In the list, range starts ascend.
//! 2. What follows an exclusive node starts after that node's last position. (A downgraded node is shared.)
//! 3. A node is inserted at most once between two visits to a pool. A request that withdrew takes a fresh one.
//! 4. A request that sleeps is in the list nowhere: it blocks nobody.
//!
//! # Memory ordering
//!
//! - **publish**: Release by the insertion, Acquire by the loads of links: a node's content.
//! - **release**: Release by marking a node gone, Acquire by the loads of links: the holder's critical section.
//! - **unlink**: Release by unlinking a node, on the way or by inserting another in its place; Acquire by the loads of
//!   links and by insertions: the same, for those who come too late to see the node, or whose link looks as it did
//!   before the node came.
//! - **downgrade**: Release by marking a node shared, Acquire by the loads of links: the writer's critical section.
//! - **handshake** (insert, fence, look on both sides): a reader and a writer may be inserted at different places
//!   and so not compete. Each fences after its insertion and then walks: the writer the list before it, the reader
//!   the list after it. If the reader's fence is first, the writer's walk meets the reader. If the writer's fence
//!   is first, the reader's walk meets the writer. Whoever meets a rival that stays, withdraws.
//! - **demote**: a walk that finds the head marked as the fast path's removes the mark before it looks at the node.
//!   From then on the holder's fast release fails. While the mark stands nobody else has looked, so a fast release
//!   may re-use the node at once.
//! - **fast-behind**: nothing is inserted behind a node of one's own while the head has the fast path's mark: the fast
//!   release would take it out of the list as well. The walk begins at the head, and removes the mark.
//! - **fast-acquire** / **fast-release**: Acquire and Release of the compare-exchanges on the head.
//! - **sleeper** (both sides are read-modify-writes of one word): a request that goes to sleep marks the holder's
//!   link, and does not sleep if that was marked gone; a release marks it gone, and wakes if it was marked so.
//! - **rung-publish**: Release by whoever changes what a rung leads to, Acquire by following it: the content of the node
//!   found, and its insertion below.
//! - **rung-cut-off**: nothing is followed from a rung whose node is gone: the search starts over.
//! - **rung-gone**: Release by marking a rung as gone, the highest first; Acquire by the loads of rungs: the marks
//!   above. So who starts over, because a rung is marked, does not come to that node again, and searches end.
//! - **rung-prepare**: a node that could not enter a level asks anew what is to follow it.
//! - **last-link**: Release and Acquire by counting off a removed link to a tall node: who removes the last one, and
//!   retires the node, comes after the removal of the others.
//! - **reach**: a request to share a range makes known how long it is before it is inserted, or downgraded. A writer
//!   looks at that after its handshake's fence, and begins its walk before all that can reach it.
//! - **cut-off**: nothing is written through the link of a node that is gone, or through the head while its mark
//!   stands: the walk starts over.

mod acquire;
mod contend;
mod index;
mod levels;
mod node;
mod policy;
mod tower;
mod walk;

pub use super::waiting::Fairness;
pub use index::{Index, NoIndex};
pub use levels::Levels;
pub use policy::{FastPath, Preference};

pub(crate) use node::Node;
pub(crate) use tower::TallNode;

use super::inspect::{Claim, Snapshot};
use super::raw::{Behind, Mode, RawRangeLock, RawRangeMutex, Wait};
use super::span::Span;
use super::waiting::{Patience, WaitingRoom};
use crate::local::{self, Local};
use node::AtomicLink;
use policy::Policy;
use prim::atomic::AtomicBool;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use walk::Walk;

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

/// The reader-writer list lock, `list-rw` (P1 Listings 2 and 3, mended).
pub type ListRw = RawList<SharedExclusive>;

/// A list-based range lock, in raw form: see [`RangeLock`](super::RangeLock) for the typed one. With an index above the
/// list it is a skip list: see [`skip`](super::skip).
#[repr(align(64))] // It fills a cache line, and should not lie across two.
pub struct RawList<P, I: Index = NoIndex> {
    head: AtomicLink,
    /// Whether the last insertion that walked the list found others in it, or there is no fast path. A hint: it
    /// saves a compare-exchange that is likely to fail.
    is_crowded: AtomicBool,
    policy: Policy,
    room: WaitingRoom,
    protocol: PhantomData<fn() -> P>,
    index: I,
}

/// Proof of an acquisition: what the head's link became by it (fast path), or would look like (otherwise).
#[derive(Debug)]
pub struct Token(NonNull<Node>);

impl<P: Protocol, I: Index> RawList<P, I> {
    prim::const_fn! {
        const fn assemble(policy: Policy, patience: Patience, index: I) -> Self {
            Self {
                head: AtomicLink::new(),
                is_crowded: AtomicBool::new(matches!(policy.fast_path, FastPath::Off)),
                policy,
                room: WaitingRoom::new(patience),
                protocol: PhantomData,
                index,
            }
        }
    }

    /// Who holds, in order of range start.
    fn holders(&self, local: &'static Local) -> Vec<Claim> {
        let pin = local.pin();
        let mut walk = Walk::from_head(&pin, &self.head);
        let mut holders = Vec::new();
        while let Some((node, link)) = walk.next() {
            if !node.is_tentative() {
                holders.push(node.claim(link));
            }
            walk.pass(node, link);
        }
        holders
    }
}

impl<P: Protocol> RawList<P> {
    prim::const_fn! {
        /// A fair lock with a fast path, that prefers readers.
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().build()
        }
    }

    /// Begins a lock with another policy.
    pub const fn builder() -> Builder<P> {
        Builder::DEFAULT
    }
}

impl<P: Protocol> RawList<P, Levels> {
    prim::const_fn! {
        /// A fair lock with a fast path, that prefers readers, of [`Builder::HEIGHT`].
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().build()
        }
    }

    /// Begins a lock with another policy, or of another height.
    pub const fn builder() -> Builder<P, Levels> {
        Builder::DEFAULT
    }
}

impl<P: Protocol> Default for RawList<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol> Default for RawList<P, Levels> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list lock's policy, before the lock.
#[derive(Debug)]
#[must_use]
pub struct Builder<P, I = NoIndex> {
    policy: Policy,
    patience: Patience,
    /// Levels above the list, if there is an index.
    levels: u32,
    kind: PhantomData<fn() -> (P, I)>,
}

impl<P: Protocol, I> Builder<P, I> {
    const DEFAULT: Self = Self {
        policy: Policy::DEFAULT,
        patience: Patience::of(Fairness::DEFAULT),
        levels: Levels::DEFAULT,
        kind: PhantomData,
    };

    /// Who goes first when requests overtake one another; [`Fairness::DEFAULT`] unless told.
    pub const fn fairness(mut self, fairness: Fairness) -> Self {
        self.patience = Patience::of(fairness);
        self
    }

    /// Which mode has its way when two meet; [`Preference::Readers`] unless told.
    pub const fn preference(mut self, preference: Preference) -> Self {
        self.policy.preference = preference;
        self
    }

    /// Whether there is a fast path; [`FastPath::On`] unless told.
    pub const fn fast_path(mut self, fast_path: FastPath) -> Self {
        self.policy.fast_path = fast_path;
        self
    }
}

impl<P: Protocol> Builder<P> {
    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawList<P> {
            RawList::assemble(self.policy, self.patience, NoIndex)
        }
    }
}

impl<P: Protocol> Builder<P, Levels> {
    /// The height unless told.
    pub const HEIGHT: u32 = Levels::DEFAULT + 1;

    /// The largest height.
    pub const MAX_HEIGHT: u32 = Levels::MAX + 1;

    /// How many lists there are, the one of all ranges included: one is a list lock; each more makes it fit for four
    /// times as many ranges held at a time. [`HEIGHT`](Self::HEIGHT) unless told.
    ///
    /// # Panics
    /// When that is zero, or more than [`MAX_HEIGHT`](Self::MAX_HEIGHT).
    pub const fn height(mut self, lists: u32) -> Self {
        assert!(
            lists >= 1 && lists <= Self::MAX_HEIGHT,
            "the height of a skip list is out of bounds: expected 1 to 15"
        );
        self.levels = lists - 1;
        self
    }

    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawList<P, Levels> {
            RawList::assemble(self.policy, self.patience, Levels::new(self.levels))
        }
    }
}

// SAFETY: the protocol above; `docs/list-locks.md` carries the argument and the models in `spanlock-loom` check it.
unsafe impl<P: Protocol, I: Index> RawRangeMutex for RawList<P, I> {
    type Token = Token;

    #[inline]
    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Exclusive, wait)
    }

    unsafe fn lock_exclusive_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, Token>,
    ) -> Option<Token> {
        // SAFETY: the caller's.
        unsafe { self.acquire_behind(span, Mode::Exclusive, wait, behind) }
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        // SAFETY: the caller's.
        unsafe { self.release(token) };
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let holders = local::with(|local| self.holders(local));
        Some(Snapshot::new(holders, self.room.queue().waiters()))
    }
}

// SAFETY: as above.
unsafe impl<I: Index> RawRangeLock for RawList<SharedExclusive, I> {
    #[inline]
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Shared, wait)
    }

    unsafe fn lock_shared_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, Token>,
    ) -> Option<Token> {
        // SAFETY: the caller's.
        unsafe { self.acquire_behind(span, Mode::Shared, wait, behind) }
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: the caller's.
        unsafe { self.make_shared(&token) };
        token
    }
}

// SAFETY: links are changed atomically, nodes are published and reclaimed by the protocol, and the queue is in a
// mutex.
unsafe impl<P, I: Index> Send for RawList<P, I> {}
// SAFETY: as above.
unsafe impl<P, I: Index> Sync for RawList<P, I> {}

impl<P, I: Index> Drop for RawList<P, I> {
    fn drop(&mut self) {
        // What is left are nodes that nobody walked past after their release, and those of leaked guards.
        let mut next = self.head.load(prim::atomic::Ordering::Relaxed).node();
        local::with(|local| {
            let pin = local.pin();
            while let Some(node) = next {
                // SAFETY: in the list, so live; nobody else can walk a list that is being dropped.
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
        let snapshot = self.snapshot().unwrap_or_default();
        f.debug_struct("RawList")
            .field("policy", &self.policy)
            .field("patience", &self.room.patience())
            .field("holders", &snapshot.holders)
            .field("waiters", &snapshot.waiters)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{ListEx, ListRw};

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn an_idle_lock_is_one_cache_line() {
        assert_eq!(size_of::<ListRw>(), 64);
        assert_eq!(size_of::<ListEx>(), 64);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn a_range_held_is_one_cache_line() {
        assert_eq!(size_of::<super::Node>(), 64);
    }
}
