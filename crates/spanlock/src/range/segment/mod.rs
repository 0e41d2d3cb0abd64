//! The segment locks: range locks with a lock word for each segment of the resource.
//!
//! They follow *SRL(array)* and *SRL(tree)* of *Parallelizing Shared File I/O Operations of NVM File System for
//! Manycore Servers* (Kim, Kim, Jamil, Lee and Park; P3 in this documentation, §IV), corrected and extended.
//!
//! The resource is cut into segments of equal size. Each segment has a reader-writer lock word of 32 bits. A request
//! enters the words of all segments that its range touches, in ascending order. If one word refuses, the request
//! leaves the words that it has entered, waits for the refusing word while it holds nothing, and starts over.
//!
//! ```text
//!   positions   0         4096       8192       12288      16384
//!               |-- seg 0 --|-- seg 1 --|-- seg 2 --|-- seg 3 --|
//!   words       [ 0 readers ][ writer   ][ writer   ][ 2 readers ]
//!                             \________  ________/
//!                                      \/
//!                    one exclusive request for 5000..9000
//!
//!   a word:     31       30                                  0
//!              +--------+---------+--------------------------+
//!              | WRITER | SLEEPER |  number of readers       |
//!              +--------+---------+--------------------------+
//!
//!   enter exclusive: 0 -> WRITER            leave exclusive: - WRITER
//!   enter shared:    n -> n + 1             leave shared:    - 1
//!   downgrade:       - WRITER + 1           before sleeping: | SLEEPER
//! ```
//!
//! Requests of different segments share no word. The only lock inside guards the queue of sleeping requests.
//!
//! | file | content |
//! |---|---|
//! | `word.rs` | a segment's word |
//! | `store.rs`, `array.rs`, `tree.rs` | where the words are |
//! | `held.rs` | which segments a thread holds: its part of the thread's record |
//! | `acquire.rs` | entering and leaving words, and what a blocked request does |
//! | `builder.rs` | how a lock is made |
//!
//! The waiting loop and the queue are in `range/wait/`, shared with the other range locks. `docs/segment-locks.md`
//! explains the protocol in order and argues why it is correct. Below are the invariants and edges that the code cites.
//!
//! # Granularity
//!
//! Ranges that touch the same segment conflict if one of them is exclusive, *even if they are disjoint*. So a thread
//! that holds a range and asks for another range in the same segment waits for itself: a try returns `None`, a timed
//! request times out, and a request without a limit panics in debug builds and hangs in release builds. Positions
//! beyond the last segment belong to the last segment. Several ranges in one call (`write_many` and the like) may
//! share segments: the call first rounds and joins them.
//!
//! # Invariants
//!
//! 1. A word has its writer bit set, or a reader counted, only for requests that hold the segment or are entering. A
//!    request that sleeps has entered no word.
//! 2. While a request sleeps behind a segment, the segment's word is marked, or a dispatch of the sleepers behind it
//!    is to come.
//! 3. A tree's node that was linked stays where it is until the lock is dropped.
//!
//! # Edges: memory ordering
//!
//! - **leave-writer**, **leave-reader** / **admit-writer**, **admit-reader**: Release by leaving a word, Acquire by
//!   entering it: the holder's critical section. All changes to a word are read-modify-writes, so a request that
//!   enters it comes after all requests that left before, not only after the last one.
//! - **share**: Release by the downgrade of a word: the writer's critical section, for readers.
//! - **node-publish** / **node-acquire**, **node-winner**: Release by linking a node of the tree, Acquire by following
//!   a link, and by finding that another thread linked its node first: the node's content.
//!
//! # Edges: steps that must not be left out
//!
//! - **roll-back**: a request that is refused leaves what it has entered, before it waits or gives up.
//! - **segment-try-looks**: a request that may not wait and asks for several segments looks at all of them before it
//!   enters the first. So a try that somebody refuses for as long as it lasts refuses nobody itself.
//! - **mark-sleeper**, **wake-sleeper**, **share-wake**: a request that goes to sleep marks the word, and does not
//!   sleep if the same operation shows that the word admits it. A request that leaves a word or shares it dispatches
//!   the sleepers, if the same operation shows the mark. All are read-modify-writes of one word, so one side sees the
//!   other.
//! - **mark-inherited**: a request that is granted while others sleep behind it marks a word of its own for them.
//! - **lost-race**: a thread that was too late to link its node goes on with the other thread's node.
//!
//! The edges of waiting (**admission**, **turn-ends**, **holder-bypass**, **reserve-asleep**) are explained in
//! `range/wait/`, and **granules** in `range/many.rs`.

mod acquire;
mod array;
mod builder;
pub(in crate::range) mod held;
mod store;
mod tree;
mod word;

pub use super::wait::Fairness;
pub use array::Array;
pub use builder::{ArrayBuilder, TreeBuilder};
pub use store::Store;
pub use tree::Tree;

use super::inspect::{Request, Snapshot};
use super::raw::{Ask, Mode, RawRangeLock, RawRangeMutex};
use super::span::Span;
use super::thread;
use super::wait::{Patience, WaitQueue};
use crate::deadlock::Deadlocks;
use held::Segments;
use prim::atomic::{AtomicU64, Ordering};
use std::fmt;

/// The segment lock whose words are all made in advance, `srl-array`: for a resource of known length.
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
/// - Ranges span many segments: each segment costs an atomic operation to enter and one to leave.
/// - Threads hold several close ranges at a time: two in one segment exclude each other.
/// - Owners are to hold ranges, or guards to go to other threads: the words do not know whose they are.
///   ```compile_fail,E0599
///   use spanlock::range::{Owner, RangeLock, segment::SrlArray};
///
///   let file = RangeLock::from_raw(SrlArray::builder().segments(64).build());
///   let held = file.by(&Owner::new()).write(0..10);
///   ```
/// - The resource is large and used in few places: [`SrlTree`]; or its length is unknown: [`SrlTree`], or
///   [`RangeLock`](super::RangeLock)'s default, which is exact, and whose memory does not grow with the resource.
///
/// # Cost
/// One compare-exchange to enter a segment and one atomic operation to leave it; no system call and no allocation
/// unless another request is in the way. Four bytes a segment, sixteen segments a cache line: neighbours share lines.
///
/// # Fairness
/// As [`RangeLock`](super::RangeLock)'s default. A try may fail because of another request that is itself about to be
/// refused, unless that is a try that a holder refuses for as long as it lasts.
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
    /// Identifies this lock in a thread's notes of what it holds.
    id: u64,
    wait_queue: WaitQueue,
}

/// Proof of an acquisition: the segments, and the mode.
#[derive(Debug)]
pub struct Token(Segments);

prim::global! {
    static LOCKS: AtomicU64 = AtomicU64::new(0);
}

impl<S: Store> RawSegments<S> {
    fn new(store: S, shift: u32, fairness: Fairness, deadlocks: Deadlocks) -> Self {
        Self {
            store,
            shift,
            // Relaxed: each number is handed out once, and nothing else matters.
            id: LOCKS.fetch_add(1, Ordering::Relaxed),
            wait_queue: WaitQueue::new(Patience::of(fairness), deadlocks),
        }
    }

    /// The bytes of the segments' words and of the nodes above them, without the queue of sleeping requests.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }
}

// SAFETY: overlapping ranges touch a common segment, whose word admits one writer or any readers, and the edges above
// order the critical sections. `docs/segment-locks.md` has the argument; the models in `spanlock-loom` check it.
unsafe impl<S: Store> RawRangeMutex for RawSegments<S> {
    type Token = Token;

    #[inline]
    fn lock_exclusive(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.acquire(Mode::Exclusive, ask)
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        self.release(&token);
    }

    fn granule(&self, span: Span) -> Span {
        // The mode does not matter.
        self.span(self.segments(span, Mode::Shared))
    }

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        self.look(self.segments(span, mode)).is_err()
    }

    unsafe fn span_of(&self, token: &Token) -> Option<Span> {
        Some(self.span(token.0))
    }

    /// In whole segments. Neighbouring segments in the same mode are listed as one. The words do not know the holding
    /// thread, so it is listed as 0. Requests that are entering are listed, too.
    fn snapshot(&self) -> Option<Snapshot> {
        let mut held: Vec<Segments> = Vec::new();
        self.store.visit(&mut |first, words| {
            for (segment, word) in (first..=u64::MAX).zip(words) {
                let Some(mode) = word.state().held() else {
                    continue;
                };
                match held.last_mut() {
                    Some(run) if run.mode == mode && run.last + 1 == segment => run.last = segment,
                    _ => held.push(Segments::one(segment, mode)),
                }
            }
        });
        let holders = held
            .into_iter()
            .map(|run| Request::new(self.span(run), run.mode, 0))
            .collect();
        Some(Snapshot::new(holders, self.wait_queue.waiters()))
    }
}

// SAFETY: as for `RawRangeMutex`: a word that has a reader refuses writers, and the other way round.
unsafe impl<S: Store> RawRangeLock for RawSegments<S> {
    #[inline]
    fn lock_shared(&self, ask: Ask<'_, Token>) -> Option<Token> {
        self.acquire(Mode::Shared, ask)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        self.make_shared(token)
    }
}

impl<S: Store> Drop for RawSegments<S> {
    fn drop(&mut self) {
        thread::with_record(|record| record.parts.segments.forget_lock(self.id));
    }
}

impl<S: Store> fmt::Debug for RawSegments<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut described = f.debug_struct("RawSegments");
        described
            .field("segment", &(1_u64 << self.shift))
            .field("last_segment", &self.store.last())
            .field("patience", &self.wait_queue.patience());
        self.snapshot().unwrap_or_default().finish(&mut described)
    }
}

#[cfg(test)]
mod tests;
