//! The cohort reader-writer lock with writer preference, C-RW-WP, of Calciu et al.
//!
//! Readers count themselves on their memory node, so that those of different nodes share no cache line. Writers
//! exclude each other by a cohort mutex: one mutex for each node and one for all; who has the node's may be handed
//! the one for all by the writer before it, so that the lock stays on a node for a while. The writer inside says that
//! it is present; readers turn back when they see that, and it waits until all counts are zero.
//!
//! A writer handed the lock by its neighbour is handed the readers' absence with it.
//!
//! # Invariants
//!
//! 1. `present` and the mutex for all change hands together: who has them is the writer inside or about to be, or a
//!    node whose `handed` is not zero, and then a thread that waits there for the node's mutex will have them. (One
//!    that may give up is not counted among those, though it may be the one that gets them.)
//! 2. While `present` stands no reader that came after its fence stays.
//!
//! # Memory ordering
//!
//! - **cohort-reader** / **cohort-writer** (store, fence, look on both sides): a reader counts itself and looks for a
//!   writer; a writer says that it is present and looks at the counts. (A lock of this kind in wide use lacked them
//!   for years.)
//! - **cohort-turn-back**: a reader that sees a writer takes its count back.
//! - **cohort-depart** / **cohort-drained**: Release by the reader that leaves, Acquire by the writer that waits for
//!   it.
//! - **cohort-gone** / **cohort-look**: Release by the writer that leaves, Acquire by the look: its critical section.
//! - **cohort-wake** (-writer, -readers): who changes a word and finds the mark takes it off and wakes.
//! - **cohort-handed**: a writer that hands nothing on says so. **cohort-queue**: a reader that queued with the
//!   writers, having been turned back too often, or that was a writer, hands nothing on: it stays. (Neither waits for
//!   the readers inside, who might wait for it.)
//! - **cohort-uncounted**: a writer that may give up does not count as one to hand the lock on to.
//! - Writers pass critical sections on by the mutexes.

use super::mutex::FutexMutex;
use super::park;
use super::raw::{Stays, raw_rwlock};
use super::watch;
use crate::range::raw::Wait;
use lock_api::RawMutex;
use prim::atomic::{AtomicU32, Ordering, fence_after_rmw};
use prim::futex;
use prim::thread;

/// Somebody sleeps on the word.
const SLEEPER: u32 = 1;
/// In `writer`: one is inside or waits for readers to leave.
const PRESENT: u32 = 2;
/// In `readers`: one reader.
const READER: u32 = 2;

/// How many writers of a node follow each other while other nodes' wait.
const IN_A_ROW: usize = 64;

/// How often a reader is turned back before it queues with the writers.
const PATIENCE: usize = 16;

/// What the threads of a memory node share.
#[derive(Debug)]
#[repr(align(128))] // Two cache lines, as processors fetch them.
struct Node {
    /// Those inside, and those about to turn back.
    readers: AtomicU32,
    writers: FutexMutex,
    /// Threads that wait for the mutex and will have it: those who do not give up.
    waiting: AtomicU32,
    /// How many writers in a row have been handed the lock; zero when it is with another node, or free.
    handed: AtomicU32,
}

/// What all share, and look at more often than they change it.
#[derive(Debug)]
#[repr(align(128))]
struct Writer {
    present: AtomicU32,
    mutex: FutexMutex,
}

/// A reader-writer lock for machines of several memory nodes, which prefers writers.
///
/// ```
/// use spanlock::rw::CohortRwLock;
///
/// static LOCK: lock_api::RwLock<CohortRwLock<4>, u32> = lock_api::RwLock::new(5);
/// assert_eq!(*LOCK.read(), 5);
/// ```
///
/// - **Size**: 128 bytes, and 128 for each of `NODES`. With fewer than the machine has, nodes share.
/// - **Cost**: a read is an atomic operation on the node's line to acquire and one to release; a write is six, and a
///   look at each node.
/// - **Fairness**: readers turn back while a writer is present. One that was turned back often queues with the
///   writers. Writers of one node follow each other up to 64 times before another node's turn; otherwise in no order.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting**: a try does not wait. One to read can fail with no writer inside, beside a write that is about to
///   give up. A timed write keeps readers out while it waits for them.
/// - **Downgrade**: any node's writer may be the next.
/// - **Limits**: aborts when 2^30 guards are held or were leaked.
/// - Not for machines of one node, nor where size matters.
/// - Not in a forked child, unless no other thread of the parent used the lock at the time: a thread that waited keeps
///   its place, and the child would wait for it.
/// - Guards stay on their threads, unless the feature `send_guard` is on: a reader's remembers its node.
///
/// Source: Calciu, Dice, Lev, Luchangco, Marathe and Shavit, *NUMA-Aware Reader-Writer Locks*, PPoPP 2013, C-RW-WP;
/// cohort mutex after Dice, Marathe and Shavit, *Lock Cohorting*, PPoPP 2012. Sleeping, and queueing with the
/// writers, are ours.
#[derive(Debug)]
pub struct CohortRwLock<const NODES: usize> {
    writer: Writer,
    nodes: [Node; NODES],
}

/// The node that a reader counted itself on, or that a writer belongs to.
#[derive(Debug)]
pub struct NodeToken(usize, Stays);

impl NodeToken {
    const fn new(node: usize) -> Self {
        Self(node, Stays::new())
    }
}

/// How a writer got ahead of the others.
enum Turn {
    /// The one before left nothing.
    Fresh,
    /// With the readers' absence.
    Handed,
}

impl<const NODES: usize> CohortRwLock<NODES> {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            const { assert!(NODES > 0, "a lock of no nodes") };
            Self {
                writer: Writer {
                    present: AtomicU32::new(0),
                    mutex: FutexMutex::new(),
                },
                nodes: prim::array!(Node {
                    readers: AtomicU32::new(0),
                    writers: FutexMutex::new(),
                    waiting: AtomicU32::new(0),
                    handed: AtomicU32::new(0),
                }; NODES),
            }
        }
    }

    fn is_locked(&self) -> bool {
        let read = |node: &Node| node.readers.load(Ordering::Relaxed) >= READER;
        self.is_locked_exclusive() || self.nodes.iter().any(read)
    }

    /// Also while a writer waits for readers to leave: from there on nobody else gets in.
    fn is_locked_exclusive(&self) -> bool {
        self.writer.present.load(Ordering::Relaxed) & PRESENT != 0
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<NodeToken> {
        let at = thread::node() % NODES;
        let node = &self.nodes[at];
        for _ in 0..prim::stock(PATIENCE, 1) {
            if self.come(node) {
                return Some(NodeToken::new(at));
            }
            let present = &self.writer.present;
            let gone = |present: u32| present & PRESENT == 0;
            if !park::until(present, SLEEPER, Ordering::Relaxed, wait, gone) {
                return None;
            }
        }
        self.queue(at, wait)
    }

    /// Counts this reader in, unless a writer is present.
    #[inline]
    fn come(&self, node: &Node) -> bool {
        let before = node.readers.fetch_add(READER, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            // The count must not start over, and panicking does not take it back.
            std::process::abort();
        }
        // [cohort-reader]
        if prim::intact!("cohort-reader") {
            fence_after_rmw();
        }
        // [cohort-look] Acquire: pairs with [cohort-gone].
        let look = prim::order!("cohort-look", Ordering::Acquire);
        if self.writer.present.load(look) & PRESENT == 0 {
            return true;
        }
        // [cohort-turn-back]
        if prim::intact!("cohort-turn-back") {
            Self::depart(node);
        }
        !prim::intact!("cohort-turn-back")
    }

    #[cold] // While this has the writers' turn none is present, and it need not be: it waits for no readers.
    fn queue(&self, at: usize, wait: Wait) -> Option<NodeToken> {
        self.take_turn(at, wait)?;
        Some(self.share(NodeToken::new(at)))
    }

    /// Whoever has the writers' turn stays as a reader.
    fn share(&self, NodeToken(at, _): NodeToken) -> NodeToken {
        self.nodes[at].readers.fetch_add(READER, Ordering::Relaxed);
        // [cohort-queue]
        if prim::intact!("cohort-queue") {
            self.give_up(at);
        } else {
            self.leave_exclusive(NodeToken::new(at));
        }
        NodeToken::new(at)
    }

    #[inline]
    fn leave_shared(&self, NodeToken(at, _): NodeToken) {
        Self::depart(&self.nodes[at]);
    }

    #[inline]
    fn depart(node: &Node) {
        // [cohort-depart] Release: pairs with [cohort-drained].
        let release = prim::order!("cohort-depart", Ordering::Release);
        let before = node.readers.fetch_sub(READER, release);
        debug_assert!(before >= READER, "a read lock was released twice");
        if before == READER | SLEEPER {
            Self::wake_writer(node);
        }
    }

    #[cold] // A writer sleeps until the node's readers have left.
    fn wake_writer(node: &Node) {
        node.readers.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [cohort-wake]
        if prim::intact!("cohort-wake-writer") {
            futex::wake_all(&node.readers);
        }
    }

    fn write(&self, wait: Wait) -> Option<NodeToken> {
        let at = thread::node() % NODES;
        // A try that would fail turns no readers back.
        if wait == Wait::Never && self.is_locked() {
            return None;
        }
        self.enter(at, wait)?;
        Some(NodeToken::new(at))
    }

    /// Becomes the writer inside.
    fn enter(&self, at: usize, wait: Wait) -> Option<()> {
        if let Turn::Handed = self.take_turn(at, wait)? {
            return Some(());
        }
        self.writer.present.fetch_or(PRESENT, Ordering::Relaxed);
        // [cohort-writer]
        if prim::intact!("cohort-writer") {
            fence_after_rmw();
        }
        if !self.drain(wait) {
            self.give_up(at);
            return None;
        }
        Some(())
    }

    /// Gets ahead of all other writers.
    fn take_turn(&self, at: usize, wait: Wait) -> Option<Turn> {
        let node = &self.nodes[at];
        // [cohort-uncounted]
        let is_counted = wait == Wait::Forever || !prim::intact!("cohort-uncounted");
        if is_counted {
            node.waiting.fetch_add(1, Ordering::Relaxed);
        }
        let mine = node.writers.enter(wait);
        if is_counted {
            node.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        mine?;
        // Relaxed, here and below: the node's mutex guards it.
        if node.handed.load(Ordering::Relaxed) > 0 {
            return Some(Turn::Handed); // Invariant 1.
        }
        if self.writer.mutex.enter(wait).is_none() {
            // SAFETY: held.
            unsafe { node.writers.unlock(Stays::new()) };
            return None;
        }
        Some(Turn::Fresh)
    }

    /// Waits until readers have left.
    fn drain(&self, wait: Wait) -> bool {
        // [cohort-drained] Acquire: pairs with [cohort-depart].
        let acquire = prim::order!("cohort-drained", Ordering::Acquire);
        let none = |readers: u32| readers < READER;
        self.nodes
            .iter()
            .all(|node| park::until(&node.readers, SLEEPER, acquire, wait, none))
    }

    fn leave_exclusive(&self, NodeToken(at, _): NodeToken) {
        let node = &self.nodes[at];
        let handed = node.handed.load(Ordering::Relaxed);
        if node.waiting.load(Ordering::Relaxed) == 0 || handed == prim::stock(IN_A_ROW, 1) as u32 {
            return self.give_up(at);
        }
        node.handed.store(handed + 1, Ordering::Relaxed);
        // SAFETY: held. The mutex for all stays locked: invariant 1.
        unsafe { node.writers.unlock(Stays::new()) };
    }

    /// Whoever has the writers' turn leaves, and hands nothing on.
    fn give_up(&self, at: usize) {
        let node = &self.nodes[at];
        if prim::intact!("cohort-handed") {
            node.handed.store(0, Ordering::Relaxed);
        }
        // [cohort-gone] Release: pairs with [cohort-look].
        let release = prim::order!("cohort-gone", Ordering::Release);
        let present = &self.writer.present;
        let before = present.fetch_and(!(PRESENT | SLEEPER), release);
        // [cohort-wake]
        if before & SLEEPER != 0 && prim::intact!("cohort-wake-readers") {
            futex::wake_all(present);
        }
        // SAFETY: held.
        unsafe { self.writer.mutex.unlock(Stays::new()) };
        // SAFETY: held.
        unsafe { node.writers.unlock(Stays::new()) };
    }
}

impl<const NODES: usize> Default for CohortRwLock<NODES> {
    fn default() -> Self {
        Self::new()
    }
}

// Writers exclude each other by the mutex for all, or by their node's while that has it. A reader that stays was
// counted before the writer looked, or looked before the writer came.
raw_rwlock!(timed [const NODES: usize] CohortRwLock<NODES>, NodeToken, NodeToken);

// SAFETY: the new reader is counted before it is said that no writer is present.
unsafe impl<const NODES: usize> lock_api::RawRwLockDowngrade for CohortRwLock<NODES> {
    unsafe fn downgrade(&self, token: NodeToken) -> NodeToken {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.share(token)
    }
}
