//! The segment locks of P3 (§IV), *SRL(array)* and *SRL(tree)*, mended and extended.
//!
//! The resource is cut into segments of one size, each with a reader-writer lock word of 32 bits. A request enters
//! the words of all segments that its range touches, in ascending order. If one refuses, it leaves those that it has
//! entered, waits with empty hands until that one admits it, and starts over. There is no lock inside but around the
//! queue of those who sleep, and requests of different segments share no word.
//!
//! | file | content |
//! |---|---|
//! | `word.rs` | a segment's word |
//! | `store.rs`, `array.rs`, `tree.rs` | where the words are |
//! | `acquire.rs` | entering and leaving: the protocol |
//! | `contend.rs` | looking at a word, and what an arrival inherits; the rest of waiting is `../waiting.rs` |
//!
//! `docs/segment-locks.md` tells the protocol in order, with the arguments; here are the names the code cites.
//!
//! # Granularity
//!
//! Ranges that touch the same segment conflict, if one of them is exclusive, *even if they are disjoint*. So a thread
//! that holds a range and asks for another in the same segment waits for itself: a try returns `None`, a timed request
//! times out, and one without a limit panics in debug builds and hangs in release builds. Positions beyond the last
//! segment belong to it. Several ranges asked for in one call (`write_many` and its kin) may share segments: they are
//! rounded and joined first.
//!
//! # Invariants
//!
//! 1. A word's writer bit is set, or its reader count is not zero, only by requests that hold the segment or are
//!    entering: never by one that sleeps.
//! 2. While a request sleeps behind a segment, the segment's word is marked, or a dispatch of the sleepers behind it
//!    is to come.
//! 3. A tree's node that was linked stays where it is until the lock is dropped.
//!
//! # Memory ordering
//!
//! - **leave-writer**, **leave-reader** / **admit-writer**, **admit-reader**: Release by leaving a word, Acquire by
//!   entering it: the holder's critical section. All changes to a word are read-modify-writes, so whoever enters it
//!   sees all who left before, not only the last.
//! - **share**: Release by the downgrade of a word: the writer's critical section, for readers.
//! - **roll-back**: a request that is refused leaves what it has entered, before it waits or gives up.
//! - **mark-sleeper** / **wake-sleeper**, **share-wake** (all are read-modify-writes of one word): a request that
//!   goes to sleep marks the word, and does not sleep if the word would admit it by then; who leaves a word, or
//!   shares it, looks whether it was marked, and dispatches those behind it.
//! - **mark-inherited**: a request that arrives marks a word of its own for those who slept behind the request.
//! - **gate**, **turn**, **holder-bypass**, **age**: `../waiting.rs` has them; **granules**: `../many.rs` has it.
//! - **node-publish** / **node-acquire**, **node-winner**: Release by linking a node, Acquire by following a link and
//!   by finding that another thread was faster: the node's content.
//! - **lost-race**: who finds that goes on with the other thread's node.

mod acquire;
mod array;
mod contend;
mod store;
mod tree;
mod word;

pub use super::waiting::Fairness;
pub use array::Array;
pub use store::Store;
pub use tree::Tree;

pub(crate) use acquire::Segments;

use super::inspect::{Claim, Snapshot};
use super::raw::{Mode, RawRangeLock, RawRangeMutex, Wait};
use super::span::Span;
use super::waiting::{Patience, WaitingRoom};
use crate::local;
use prim::atomic::{AtomicU64, Ordering};
use std::fmt;

/// The segment lock with all words made in advance, `srl-array`: for a resource of known length.
///
/// ```
/// use spanlock::range::RangeLock;
/// use spanlock::range::segment::SrlArray;
///
/// // A file of 1 MiB, locked in pages.
/// let file = RangeLock::from_raw(SrlArray::builder().segment(4096).length(1 << 20).build());
/// let head = file.write(0..100);
/// assert!(file.try_read(4095..4096).is_none(), "the same page");
/// assert!(file.try_write(4096..).is_some());
/// drop(head);
/// assert_eq!(file.raw().bytes(), 256 * 4);
/// ```
///
/// # When not to use it
/// - Ranges are wide against the segments: each segment costs an atomic operation to enter and one to leave.
/// - Threads hold several close ranges at a time: two in one segment exclude each other.
/// - The resource is large and used in few places: [`SrlTree`]; or its length is unknown: [`SrlTree`], or
///   [`RangeLock`](super::RangeLock)'s default, which is exact and needs no memory for what nobody holds.
///
/// # Cost
/// One compare-exchange to enter a segment and one atomic operation to leave it; no system call and no allocation when
/// nobody is in the way. Four bytes a segment, sixteen segments a cache line: neighbours share lines.
///
/// # Fairness
/// As [`RangeLock`](super::RangeLock)'s default. A try may fail because of another request that is about to be refused
/// itself.
pub type SrlArray = RawSegments<Array>;

/// The segment lock with its words in a radix tree that grows on demand, `srl-tree`.
///
/// ```
/// use spanlock::range::RangeLock;
/// use spanlock::range::segment::SrlTree;
///
/// // The paper's: 4 KiB pages; 2^30 of them.
/// let file = RangeLock::from_raw(SrlTree::builder().segment(4096).fan_out(64).depth(5).build());
/// assert_eq!(file.raw().bytes(), 0);
/// drop(file.write(0..64 * 4096));
/// assert_eq!(file.raw().bytes(), 4 * (64 * size_of::<usize>()) + 64 * 4);
/// ```
///
/// # When not to use it
/// As [`SrlArray`]. And never lock all of a large tree: that makes the words of all its segments.
///
/// # Cost
/// As [`SrlArray`], and one load a level for each leaf that the range touches. The first request of a segment may
/// allocate its leaf and the nodes above it, which stay until the lock is dropped.
///
/// # Fairness
/// As [`SrlArray`].
pub type SrlTree = RawSegments<Tree>;

/// A segment lock, in raw form: [`SrlArray`] or [`SrlTree`].
pub struct RawSegments<S: Store> {
    store: S,
    /// A segment is `2^shift` positions.
    shift: u32,
    /// Tells this lock from others in a thread's notes of what it holds.
    id: u64,
    room: WaitingRoom,
}

/// Proof of an acquisition: the segments, and the mode.
#[derive(Debug)]
pub struct Token(Segments);

prim::global! {
    static LOCKS: AtomicU64 = AtomicU64::new(0);
}

impl<S: Store> RawSegments<S> {
    fn new(store: S, shift: u32, fairness: Fairness) -> Self {
        Self {
            store,
            shift,
            // Relaxed: that no two are alike is all.
            id: LOCKS.fetch_add(1, Ordering::Relaxed),
            room: WaitingRoom::new(Patience::of(fairness)),
        }
    }

    /// The bytes that the segments' words take, and the nodes above them. What sleeping needs is not in it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }
}

impl SrlArray {
    /// Begins a lock of one segment of one position.
    pub fn builder() -> ArrayBuilder {
        ArrayBuilder {
            shift: 0,
            extent: Extent::Segments(1),
            fairness: Fairness::DEFAULT,
        }
    }
}

impl SrlTree {
    /// Begins a lock with segments of one position, in nodes of 64, two levels deep.
    pub fn builder() -> TreeBuilder {
        TreeBuilder {
            shift: 0,
            bits: 6,
            depth: 2,
            fairness: Fairness::DEFAULT,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Extent {
    Segments(usize),
    Length(u64),
}

/// An [`SrlArray`] to be built.
#[derive(Debug)]
#[must_use]
pub struct ArrayBuilder {
    shift: u32,
    extent: Extent,
    fairness: Fairness,
}

impl ArrayBuilder {
    /// How many positions a segment has; one unless told.
    ///
    /// # Panics
    /// When that is not a power of two.
    pub fn segment(mut self, positions: u64) -> Self {
        self.shift = log2(positions, "positions a segment");
        self
    }

    /// How many segments there are. Positions beyond belong to the last.
    pub fn segments(mut self, count: usize) -> Self {
        self.extent = Extent::Segments(count);
        self
    }

    /// As many segments as a resource of that length needs.
    pub fn length(mut self, positions: u64) -> Self {
        self.extent = Extent::Length(positions);
        self
    }

    /// Who goes first when requests overtake one another; [`Fairness::DEFAULT`] unless told.
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// The lock.
    ///
    /// # Panics
    /// When it would have no segment, more than `2^64` positions, or more segments than memory has room for.
    #[must_use]
    pub fn build(self) -> SrlArray {
        let segments = match self.extent {
            Extent::Segments(count) => count,
            Extent::Length(positions) => {
                usize::try_from(positions.div_ceil(1 << self.shift).max(1)).expect("few enough")
            }
        };
        let beyond = (segments.saturating_sub(1) as u64) > u64::MAX >> self.shift;
        assert!(
            !beyond,
            "{segments} segments of 2^{} positions: expected no more than 2^64 positions",
            self.shift
        );
        RawSegments::new(Array::new(segments), self.shift, self.fairness)
    }
}

/// An [`SrlTree`] to be built.
#[derive(Debug)]
#[must_use]
pub struct TreeBuilder {
    shift: u32,
    bits: u32,
    depth: u32,
    fairness: Fairness,
}

impl TreeBuilder {
    /// How many positions a segment has; one unless told.
    ///
    /// # Panics
    /// When that is not a power of two.
    pub fn segment(mut self, positions: u64) -> Self {
        self.shift = log2(positions, "positions a segment");
        self
    }

    /// How many children a node has, or words a leaf; 64 unless told.
    ///
    /// # Panics
    /// When that is not a power of two, or one.
    pub fn fan_out(mut self, children: u32) -> Self {
        self.bits = log2(children.into(), "children a node");
        assert!(self.bits > 0, "1 child a node: expected 2 or more");
        self
    }

    /// How many levels of nodes there are, leaves included: `fan_out` to the power of `levels` segments. Positions
    /// beyond belong to the last.
    pub fn depth(mut self, levels: u32) -> Self {
        self.depth = levels;
        self
    }

    /// Who goes first when requests overtake one another; [`Fairness::DEFAULT`] unless told.
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// The lock.
    ///
    /// # Panics
    /// When it would have no level, or more than `2^64` positions.
    #[must_use]
    pub fn build(self) -> SrlTree {
        let Self {
            shift, bits, depth, ..
        } = self;
        assert!(depth > 0, "0 levels: expected 1 or more");
        let digits = u64::from(bits) * u64::from(depth) + u64::from(shift);
        assert!(
            digits <= u64::from(u64::BITS),
            "2^{digits} positions: expected no more than 2^64"
        );
        RawSegments::new(Tree::new(bits, depth), shift, self.fairness)
    }
}

fn log2(number: u64, what: &str) -> u32 {
    assert!(
        number.is_power_of_two(),
        "{number} {what}: expected a power of two"
    );
    number.ilog2()
}

// SAFETY: the protocol above; `docs/segment-locks.md` carries the argument and the models in `spanlock-loom` check it.
unsafe impl<S: Store> RawRangeMutex for RawSegments<S> {
    type Token = Token;

    #[inline]
    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Exclusive, wait)
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        self.release(&token);
    }

    fn granule(&self, span: Span) -> Span {
        // The mode is of no consequence.
        self.span(self.segments(span, Mode::Shared))
    }

    /// In whole segments. Neighbouring segments held alike are listed as one, and who holds them is not known:
    /// thread 0. Requests that are entering are listed too.
    fn snapshot(&self) -> Option<Snapshot> {
        let mut held: Vec<Segments> = Vec::new();
        self.store.visit(&mut |first, words| {
            for (segment, word) in (first..=u64::MAX).zip(words) {
                let Some(mode) = word.state().held() else {
                    continue;
                };
                match held.last_mut() {
                    Some(run) if run.mode == mode && run.last + 1 == segment => run.last = segment,
                    _ => held.push(Segments {
                        first: segment,
                        last: segment,
                        mode,
                    }),
                }
            }
        });
        let holders = held
            .into_iter()
            .map(|run| Claim::new(self.span(run), run.mode, 0))
            .collect();
        Some(Snapshot::new(holders, self.room.queue().waiters()))
    }
}

// SAFETY: as above.
unsafe impl<S: Store> RawRangeLock for RawSegments<S> {
    #[inline]
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Token> {
        self.acquire(span, Mode::Shared, wait)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        self.make_shared(token)
    }
}

impl<S: Store> Drop for RawSegments<S> {
    fn drop(&mut self) {
        local::with(|local| local.forget_lock(self.id));
    }
}

impl<S: Store> fmt::Debug for RawSegments<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self.snapshot().unwrap_or_default();
        f.debug_struct("RawSegments")
            .field("segment", &(1_u64 << self.shift))
            .field("last_segment", &self.store.last())
            .field("patience", &self.room.patience())
            .field("holders", &snapshot.holders)
            .field("waiters", &snapshot.waiters)
            .finish()
    }
}

#[cfg(test)]
mod tests;
