//! C-RW-WP, the cohort reader-writer lock with writer preference of Calciu et al., for machines of several memory
//! nodes.
//!
//! Readers count themselves on their memory node, so that readers of different nodes share no cache line. Writers
//! exclude each other by a *cohort mutex*, made of one mutex for each node and one for all. The writer inside sets
//! `PRESENT`. Readers that observe that turn back, and the writer waits until the counts of all nodes are zero.
//!
//! ```text
//!              writer: PRESENT, mutex for all
//!                             |
//!            +----------------+----------------+
//!         node 0           node 1           node 2
//!         readers: 3       readers: 0       readers: 1
//!         mutex            mutex            mutex
//! ```
//!
//! ```text
//!   reader                                  writer
//!   ------                                  ------
//!   node.readers += 1                       lock the node's mutex
//!   fence          (cohort-reader)          handed over by a writer of this node?
//!   PRESENT?                                  yes: inside
//!     no:  inside                             no:  lock the mutex for all
//!     yes: node.readers -= 1                       set PRESENT
//!          wait, try again                         fence          (cohort-writer)
//!          (cohort-turn-back)                      wait until all counts are 0; inside
//! ```
//!
//! A writer that leaves while another waits on the same node *hands over*: it keeps `PRESENT` set and the mutex for all
//! locked, and releases its node's mutex alone. So the lock stays on a node for a while, up to 64 writers. The next
//! writer need not wait for readers, since none got in.
//!
//! # Invariants
//!
//! 1. `PRESENT` and the mutex for all change hands together. They belong to the writer inside, or to one about to be.
//!    Or they belong to a node whose `handed` is not zero; then a thread waits there for the node's mutex and will have
//!    them. (A thread that may give up is not counted as waiting there, though it may be the one that gets them.)
//! 2. While `PRESENT` is set, no reader stays that came after the writer's fence.
//!
//! # Memory ordering
//!
//! - **cohort-reader** / **cohort-writer**: the two fences above. One is first in the order of all fences: either the
//!   reader observes `PRESENT`, or the writer observes the count. (A lock of this kind in wide use lacked them for
//!   years.)
//! - **cohort-turn-back**: a reader that observes a writer takes its count back.
//! - **cohort-depart** / **cohort-drained**: Release by a reader that leaves, Acquire by the writer that waits for it.
//! - **cohort-gone** / **cohort-seen**: Release by the writer that clears `PRESENT`, Acquire by the reader's load of
//!   it: the writer's critical section.
//! - **cohort-wake-writer**, **cohort-wake-readers**: a thread that changes a word and finds the mark of sleepers
//!   clears the mark and wakes them.
//! - **cohort-handed**: a writer that hands nothing over sets `handed` to zero.
//! - **cohort-queue**: a reader that queued with the writers, because it was turned back too often, hands nothing over.
//!   Nor does a writer that becomes a reader. Each stays inside as a reader, and so do the readers beside it.
//! - **cohort-uncounted**: a writer that may give up is not counted as one to hand over to.
//! - The mutexes order the critical sections of writers.

use super::mutex::FutexMutex;
use super::traits::raw_rwlock;
use prim::atomic::{AtomicU32, Ordering, fence_after_rmw};
use prim::futex::{self, Woken};
use prim::spin::{self, Spin};
use prim::thread;
use spanlock::range::raw::Wait;
use spanlock::rw::ForeignRelease;

/// A thread sleeps on the word.
const SLEEPER: u32 = 1;
/// In `present`: a writer is inside or waits for readers to leave.
const PRESENT: u32 = 2;
/// In `readers`: one reader.
const READER: u32 = 2;

/// The most writers of a node in a row while writers of other nodes wait.
const IN_A_ROW: usize = 64;

/// How often a reader is turned back before it queues with the writers.
const PATIENCE: usize = 16;

/// What the threads of a memory node share.
#[derive(Debug)]
#[repr(align(128))] // Two cache lines, which processors fetch together.
struct Node {
    /// Readers inside, and readers that are about to turn back.
    readers: AtomicU32,
    writers: FutexMutex,
    /// Threads that wait for the mutex and cannot give up.
    waiting: AtomicU32,
    /// How many writers in a row have handed the lock over; zero when it is with another node, or free.
    handed: AtomicU32,
}

/// What the threads of all nodes share. They load it more often than they change it.
#[derive(Debug)]
#[repr(align(128))]
struct Writer {
    present: AtomicU32,
    mutex: FutexMutex,
}

/// A reader-writer lock for machines of several memory nodes, which prefers writers.
///
/// - **Size**: 128 bytes, and 128 for each of `NODES`. If the machine has more nodes, some share.
/// - **Cost**: a read is one atomic operation on the node's line to acquire and one to release. A write is six, and a
///   load of each node's count.
/// - **Fairness**: readers turn back while a writer is present. A reader that was turned back often queues with the
///   writers. Up to 64 writers of one node follow each other before another node's turn. There is no order otherwise.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting**: a try does not wait. A try to read may fail with no writer inside, beside a write that is about to
///   give up. A timed write keeps readers out while it waits for them.
/// - **Downgrade**: the next writer may be on any node.
/// - **Limits**: aborts when 2^30 guards are held or were leaked.
/// - **Not for** machines of one node, nor where size matters.
/// - **Not in a forked child**, unless no other thread of the parent used the lock at the time. A thread that waited
///   keeps its place, and the child would wait for it.
///
/// Source: Calciu, Dice, Lev, Luchangco, Marathe and Shavit, *NUMA-Aware Reader-Writer Locks*, PPoPP 2013, C-RW-WP;
/// cohort mutex after Dice, Marathe and Shavit, *Lock Cohorting*, PPoPP 2012. Sleeping, and queueing with the
/// writers, are ours.
#[derive(Debug)]
pub struct CohortRwLock<const NODES: usize> {
    writer: Writer,
    nodes: [Node; NODES],
}

/// How a writer got ahead of the others.
enum Turn {
    /// The lock was free.
    Fresh,
    /// A writer of this node handed it over: no reader is inside.
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

    /// Whether a writer is inside, or waits for readers to leave: then nobody else gets in.
    fn is_locked_exclusive(&self) -> bool {
        self.writer.present.load(Ordering::Relaxed) & PRESENT != 0
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<usize> {
        let at = thread::node() % NODES;
        let node = &self.nodes[at];
        for _ in 0..prim::stock(PATIENCE, 1) {
            if self.count_in(node) {
                return Some(at);
            }
            // Relaxed: `count_in` Acquires.
            let is_gone = |present| present & PRESENT == 0;
            if !until(&self.writer.present, Ordering::Relaxed, wait, is_gone) {
                return None;
            }
        }
        self.queue(at, wait)
    }

    /// Counts this reader in, unless a writer is present.
    #[inline]
    fn count_in(&self, node: &Node) -> bool {
        let before = node.readers.fetch_add(READER, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            // The count must not overflow, and a panic would not take it back.
            std::process::abort();
        }
        // [cohort-reader]
        if prim::intact!("cohort-reader") {
            fence_after_rmw();
        }
        // [cohort-seen] Acquire: pairs with [cohort-gone].
        let acquire = prim::order!("cohort-seen", Ordering::Acquire);
        if self.writer.present.load(acquire) & PRESENT == 0 {
            return true;
        }
        // [cohort-turn-back]
        if prim::intact!("cohort-turn-back") {
            Self::depart(node);
        }
        !prim::intact!("cohort-turn-back")
    }

    /// Gets in as a reader by a writer's turn. Meanwhile no writer is present, and readers get in beside it.
    #[cold] // The reader was turned back often.
    fn queue(&self, at: usize, wait: Wait) -> Option<usize> {
        self.take_turn(at, wait)?;
        Some(self.stay_as_reader(at))
    }

    /// Stays inside as a reader. The caller has the writers' turn, and gives it up.
    fn stay_as_reader(&self, at: usize) -> usize {
        self.nodes[at].readers.fetch_add(READER, Ordering::Relaxed);
        // [cohort-queue]
        if prim::intact!("cohort-queue") {
            self.give_up(at);
        } else {
            self.leave_exclusive(at);
        }
        at
    }

    #[inline]
    fn leave_shared(&self, at: usize) {
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
        // [cohort-wake-writer]
        if prim::intact!("cohort-wake-writer") {
            futex::wake_all(&node.readers);
        }
    }

    fn write(&self, wait: Wait) -> Option<usize> {
        let at = thread::node() % NODES;
        // A try that would fail turns no readers back.
        if wait == Wait::Never && self.is_locked() {
            return None;
        }
        self.enter(at, wait)?;
        Some(at)
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
        // Relaxed, here and below: the node's mutex guards `handed`.
        if node.handed.load(Ordering::Relaxed) > 0 {
            return Some(Turn::Handed); // Invariant 1.
        }
        if self.writer.mutex.enter(wait).is_none() {
            node.writers.leave();
            return None;
        }
        Some(Turn::Fresh)
    }

    /// Waits until readers have left.
    fn drain(&self, wait: Wait) -> bool {
        // [cohort-drained] Acquire: pairs with [cohort-depart].
        let acquire = prim::order!("cohort-drained", Ordering::Acquire);
        let none = |readers: u32| readers < READER;
        let mut nodes = self.nodes.iter();
        nodes.all(|node| until(&node.readers, acquire, wait, none))
    }

    fn leave_exclusive(&self, at: usize) {
        let node = &self.nodes[at];
        let handed = node.handed.load(Ordering::Relaxed);
        if node.waiting.load(Ordering::Relaxed) == 0 || handed == prim::stock(IN_A_ROW, 1) as u32 {
            return self.give_up(at);
        }
        node.handed.store(handed + 1, Ordering::Relaxed);
        node.writers.leave(); // The mutex for all stays locked (invariant 1).
    }

    /// Gives up the writers' turn, and hands nothing over.
    fn give_up(&self, at: usize) {
        let node = &self.nodes[at];
        // [cohort-handed]
        if prim::intact!("cohort-handed") {
            node.handed.store(0, Ordering::Relaxed);
        }
        // [cohort-gone] Release: pairs with [cohort-seen].
        let release = prim::order!("cohort-gone", Ordering::Release);
        let present = &self.writer.present;
        let before = present.fetch_and(!(PRESENT | SLEEPER), release);
        // [cohort-wake-readers]
        if before & SLEEPER != 0 && prim::intact!("cohort-wake-readers") {
            futex::wake_all(present);
        }
        self.writer.mutex.leave();
        node.writers.leave();
    }
}

impl<const NODES: usize> Default for CohortRwLock<NODES> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY (of the traits): writers exclude each other by the mutex for all, or by their node's mutex while the node has
// the other. A reader that stays was counted before the writer loaded the counts, or loaded `PRESENT` before the writer
// set it.
raw_rwlock!([const NODES: usize] CohortRwLock<NODES>, usize);

// SAFETY: the guards are numbers of nodes, and belong to no thread.
unsafe impl<const NODES: usize> ForeignRelease for CohortRwLock<NODES> {}

// SAFETY: the new reader is counted before `PRESENT` is cleared, so the next writer waits for it.
unsafe impl<const NODES: usize> lock_api::RawRwLockDowngrade for CohortRwLock<NODES> {
    unsafe fn downgrade(&self, at: usize) -> usize {
        self.stay_as_reader(at)
    }
}

/// Waits until `done` is true of a word; `false` if that takes longer than `wait` allows. Spins briefly, then sets the
/// mark and sleeps.
///
/// `done` does not depend on the mark. A thread that makes it true changes the word by a read-modify-write, finds the
/// mark, clears it and wakes all. Read-modify-writes of a word have one order: either the mark comes first, and the
/// other thread observes it, or the change comes first, and this thread observes that.
fn until(word: &AtomicU32, acquire: Ordering, wait: Wait, done: impl Fn(u32) -> bool) -> bool {
    if done(word.load(acquire)) {
        return true;
    }
    if wait == Wait::Never {
        return false;
    }
    let mut spin = Spin::new(spin::ON_HOLDER);
    while spin.round() {
        if done(word.load(acquire)) {
            return true;
        }
    }
    loop {
        let seen = word.fetch_or(SLEEPER, acquire);
        if done(seen) {
            return true;
        }
        if futex::wait(word, seen | SLEEPER, wait.deadline()) == Woken::TimedOut {
            return done(word.load(acquire));
        }
    }
}
