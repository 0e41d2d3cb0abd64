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
//! - **fast-acquire** / **fast-release**: Acquire and Release of the compare-exchanges on the head.
//! - **sleeper** (both sides are read-modify-writes of one word): a request that goes to sleep marks the holder's
//!   link, and does not sleep if that was marked gone; a release marks it gone, and wakes if it was marked so.
//! - **cut-off**: nothing is written through the link of a node that is gone, or through the head while its mark
//!   stands: the walk starts over.

mod acquire;
mod contend;
mod node;
mod policy;
mod walk;

pub use super::waiting::Fairness;
pub use policy::{FastPath, Preference};

pub(crate) use node::Node;

use super::inspect::Snapshot;
use super::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use super::span::Span;
use super::waiting::{Patience, WaitingRoom};
use crate::local;
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

/// A list-based range lock, in raw form: see [`RangeLock`](super::RangeLock) for the typed one.
#[repr(align(64))] // It fills a cache line, and should not lie across two.
pub struct RawList<P> {
    head: AtomicLink,
    /// Whether the last insertion that walked the list found others in it, or there is no fast path. A hint: it
    /// saves a compare-exchange that is likely to fail.
    is_crowded: AtomicBool,
    policy: Policy,
    room: WaitingRoom,
    protocol: PhantomData<fn() -> P>,
}

/// Proof of an acquisition: what the head's link became by it (fast path), or would look like (otherwise).
#[derive(Debug)]
pub struct Token(NonNull<Node>);

impl<P: Protocol> RawList<P> {
    prim::const_fn! {
        /// A fair lock with a fast path, that prefers readers.
        #[must_use]
        pub const fn new() -> Self {
            Self::with_policy(Policy::DEFAULT, Patience::of(Fairness::DEFAULT))
        }
    }

    prim::const_fn! {
        const fn with_policy(policy: Policy, patience: Patience) -> Self {
            Self {
                head: AtomicLink::new(),
                is_crowded: AtomicBool::new(matches!(policy.fast_path, FastPath::Off)),
                policy,
                room: WaitingRoom::new(patience),
                protocol: PhantomData,
            }
        }
    }

    /// Begins a lock with another policy.
    pub const fn builder() -> Builder<P> {
        Builder {
            policy: Policy::DEFAULT,
            patience: Patience::of(Fairness::DEFAULT),
            protocol: PhantomData,
        }
    }
}

impl<P: Protocol> Default for RawList<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list lock's policy, before the lock.
#[derive(Debug)]
#[must_use]
pub struct Builder<P> {
    policy: Policy,
    patience: Patience,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Builder<P> {
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

    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawList<P> {
            RawList::with_policy(self.policy, self.patience)
        }
    }
}

// SAFETY: the protocol above; `docs/list-locks.md` carries the argument and the models in `spanlock-loom` check it.
unsafe impl<P: Protocol> RawRangeMutex for RawList<P> {
    type Token = Token;

    #[inline]
    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Exclusive, wait)
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        // SAFETY: the caller's.
        unsafe { self.release(token) };
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let holders = local::with(|local| {
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
        });
        Some(Snapshot::new(holders, self.room.queue().waiters()))
    }
}

// SAFETY: as above.
unsafe impl RawRangeLock for ListRw {
    #[inline]
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Shared, wait)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: the caller's.
        unsafe { self.make_shared(&token) };
        token
    }
}

// SAFETY: links are changed atomically, nodes are published and reclaimed by the protocol, and the queue is in a
// mutex.
unsafe impl<P> Send for RawList<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for RawList<P> {}

impl<P> Drop for RawList<P> {
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
                pin.retire(node);
            }
        });
    }
}

impl<P: Protocol> fmt::Debug for RawList<P> {
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
}
