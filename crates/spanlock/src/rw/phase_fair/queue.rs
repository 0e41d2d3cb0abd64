//! PF-Q, the phase-fair queue lock of Brandenburg and Anderson, with sleep.
//!
//! The header of `mod.rs` explains how readers and writers take turns. Here each thread that waits has a *node* on its
//! own stack, and sleeps by itself. Readers push their nodes on one of two stacks, by the parity of the writer they
//! found. Writers push theirs on a third.
//!
//! ```text
//!   readers[parity]:  closed  -- the writer opens it before it announces itself -->  open
//!                       ^                                                              | readers push
//!                       |                                                              v
//!                       +--- the writer leaves: takes all nodes, wakes all ----  n3 -> n2 -> n1
//!
//!   writers:          null    -- a writer enters -->  SIGN  -- writers push -->  n3 -> n2 -> n1 -> SIGN
//!                       ^                               ^                              |
//!                       | the queue is empty            | the writer leaves: takes all, reverses them
//!                       +-------------------------------+  into the queue  next: n1 -> n2 -> n3,
//!                                                          and passes the lock to n1
//! ```
//!
//! A stack of readers is *closed* except during the phase of its parity. A reader that finds it closed need not wait.
//!
//! The queue of writers is known to the writer inside alone, and handed from one to the next. (In the published lock
//! each arriving writer links itself to the one before, and a writer that leaves may have to spin for a link.)
//!
//! A thread's signal says only that something may have changed: the thread may be signalled for another lock, too, as
//! it may wait here in foreign code that a range lock calls. So its node tells when its own wait has ended, and that is
//! the last that anybody does with the node.
//!
//! A single node cannot be taken off a stack. So a thread that may give up does not push itself, and waits as `mod.rs`
//! describes.
//!
//! # Memory ordering
//!
//! - **queue-push** / **queue-take**: Release by the thread that pushes its node, Acquire by the one that takes the
//!   stack.
//! - **queue-open**: Release by the announcement, Acquire by the reader that finds it: the stack is open.
//! - **queue-closed** / **queue-late**: Release by closing the stack, Acquire by a reader that finds it closed: the
//!   writer's critical section.
//! - **queue-end** / **queue-ended**: Release by the writer that ends a thread's wait, Acquire by that thread: the
//!   same.
//! - **queue-free** / **queue-enter**: Release by a writer that leaves while no other waits, Acquire by the next.

use super::{Parity, Phases};
use crate::range::thread as local;
use crate::rw::raw::{ThreadBound, raw_rwlock};
use crate::rw::watch;
use crate::wait::Parker;
use crate::wait::Wait;
use prim::atomic::{AtomicBool, AtomicPtr, Ordering};
use prim::cell::UnsafeCell;
use prim::spin::{self, Spin};
use std::fmt;
use std::ptr::{self, NonNull};

/// A thread that waits. It lives on that thread's stack until its wait has ended.
struct Node {
    /// The node below it on the stack; later, in the queue, the next.
    next: UnsafeCell<*mut Node>,
    is_ended: AtomicBool,
    parker: &'static Parker,
}

/// Not a node. At the bottom of the stack of writers: the lock is held. As a stack of readers: it is closed.
const SIGN: *mut Node = NonNull::dangling().as_ptr();

fn is_node(pointer: *mut Node) -> bool {
    !pointer.is_null() && pointer != SIGN
}

/// The node after this one, on its stack or in the queue.
///
/// # Safety
/// The caller has taken the node, and its wait has not ended.
unsafe fn next_of(node: *mut Node) -> *mut Node {
    // SAFETY: the caller promises that the node's wait has not ended, and the node lives until then.
    let node = unsafe { &*node };
    // SAFETY: the node was complete before it was pushed, and the caller, which has taken it, alone accesses it now.
    node.next.with(|next| unsafe { *next })
}

/// Ends the wait of a node's thread. The node is gone then.
///
/// # Safety
/// The caller has taken the node, and no other thread ends its wait.
unsafe fn end_wait(node: *mut Node) {
    // SAFETY: the node lives until its wait has ended.
    let node = unsafe { &*node };
    let parker = node.parker;
    // [queue-end] Release: pairs with [queue-ended].
    let release = prim::order!("queue-end", Ordering::Release);
    node.is_ended.store(true, release);
    parker.unpark();
}

/// A stack of nodes of waiting threads.
struct Stack {
    top: AtomicPtr<Node>,
}

/// How a wait ended.
enum Waited {
    Ended,
    /// The thread did not wait.
    Not,
}

impl Stack {
    prim::const_fn! {
        const fn new(top: *mut Node) -> Self {
            Self {
                top: AtomicPtr::new(top),
            }
        }
    }

    /// Pushes the running thread and waits until that is ended, unless the top of the stack is `not_on`.
    #[cold]
    fn wait(&self, not_on: *mut Node) -> Waited {
        local::with_record(|local| {
            let node = Node {
                next: UnsafeCell::new(ptr::null_mut()),
                is_ended: AtomicBool::new(false),
                parker: &local.parker,
            };
            // [queue-late] Acquire: pairs with [queue-closed].
            let acquire = prim::order!("queue-late", Ordering::Acquire);
            let mut top = self.top.load(acquire);
            loop {
                if top == not_on {
                    return Waited::Not;
                }
                // SAFETY: the node is not pushed yet, so this thread alone knows it.
                node.next.with_mut(|next| unsafe { *next = top });
                // [queue-push] Release: pairs with [queue-take].
                let release = prim::order!("queue-push", Ordering::Release);
                let mine = ptr::from_ref(&node).cast_mut();
                match self.top.compare_exchange(top, mine, release, acquire) {
                    Ok(_) => break,
                    Err(found) => top = found,
                }
            }
            let mut spin = Spin::new(spin::ON_HOLDER);
            loop {
                // Before it is looked whether the wait has ended: the signal comes after that.
                let ticket = local.parker.ticket();
                // [queue-ended] Acquire: pairs with [queue-end].
                let acquire = prim::order!("queue-ended", Ordering::Acquire);
                if node.is_ended.load(acquire) {
                    return Waited::Ended;
                }
                if !spin.round() {
                    watch::asleep(None, || local.parker.park(ticket, None));
                }
            }
        })
    }

    /// Takes all nodes and leaves [`SIGN`].
    fn take(&self) -> *mut Node {
        // [queue-take] Acquire: pairs with [queue-push]. [queue-closed] Release: pairs with [queue-late].
        let closed = prim::order!("queue-closed", Ordering::AcqRel, Ordering::Acquire);
        swap(
            &self.top,
            SIGN,
            prim::order!("queue-take", closed, Ordering::Release),
        )
    }
}

/// Swaps a pointer by compare-exchange, which is all that the model checker's pointers have.
fn swap(place: &AtomicPtr<Node>, new: *mut Node, order: Ordering) -> *mut Node {
    let mut seen = place.load(Ordering::Relaxed);
    loop {
        match place.compare_exchange(seen, new, order, Ordering::Relaxed) {
            Ok(_) => return seen,
            Err(found) => seen = found,
        }
    }
}

/// A phase-fair reader-writer lock in which each thread sleeps by itself: a writer that leaves wakes one writer.
///
/// ```
/// static LOCK: lock_api::RwLock<spanlock::rw::PhaseFairQueue, u32> = lock_api::RwLock::new(5);
/// assert_eq!(*LOCK.read(), 5);
/// ```
///
/// - **Size**: 40 bytes.
/// - **Cost**: one atomic operation to read and one to leave; a write is two and three.
/// - **Fairness**: as [`PhaseFairTicket`](super::ticket::PhaseFairTicket): a reader waits for one writer at most, and
///   writers are served in order.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting** and **downgrade**: as [`PhaseFairTicket`](super::ticket::PhaseFairTicket); timed forms are not fair
///   either.
/// - **Panics** when 2^27 guards are held or were leaked.
/// - **Not for** a lock where space matters and few writers wait: [`PhaseFairTicket`](super::ticket::PhaseFairTicket).
///   Nor for many processors that read often: put [`Bravo`](crate::rw::Bravo) around it.
/// - **Not in a forked child**, unless no other thread of the parent used the lock at the time. A thread that waited
///   keeps its place, and the child would wait for it.
/// - **Threads**: guards stay on their threads, but for those of [`SendGuards`](crate::rw::SendGuards).
///
/// Source: Brandenburg and Anderson (as there), PF-Q; sleeping and the queue of writers are ours.
pub struct PhaseFairQueue {
    phases: Phases,
    /// Readers that wait for a writer of that parity.
    readers: [Stack; 2],
    /// Null if there is no writer. Otherwise [`SIGN`], and on top of it the writers that wait and are not in the queue.
    writers: Stack,
    /// The first writer of the queue. Only the writer inside accesses it.
    next: UnsafeCell<*mut Node>,
}

// SAFETY: the pointers are to nodes that live until their waits have ended, and are passed from thread to thread
// by [queue-push] and [queue-take]. Only the writer inside accesses `next`, and passes it on with the lock.
unsafe impl Send for PhaseFairQueue {}
// SAFETY: shared access is by atomic operations, except to `next`, which only the writer inside accesses.
unsafe impl Sync for PhaseFairQueue {}

impl PhaseFairQueue {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                phases: Phases::new(),
                readers: [Stack::new(SIGN), Stack::new(SIGN)],
                writers: Stack::new(ptr::null_mut()),
                next: UnsafeCell::new(ptr::null_mut()),
            }
        }
    }

    fn is_locked(&self) -> bool {
        self.phases.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.phases.is_announced()
    }

    fn readers_of(&self, parity: Parity) -> &Stack {
        match parity {
            Parity::Even => &self.readers[0],
            Parity::Odd => &self.readers[1],
        }
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<ThreadBound> {
        self.phases.read(wait, |met| {
            self.readers_of(met).wait(SIGN);
        })
    }

    #[inline]
    fn leave_shared(&self, _: ThreadBound) {
        self.phases.count_out();
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<ThreadBound> {
        if wait != Wait::Forever {
            return self.phases.poll(wait, || self.try_write());
        }
        while !self.enter_free() {
            if let Waited::Ended = self.writers.wait(ptr::null_mut()) {
                break;
            }
        }
        let entered = self.phases.announce(self.open());
        self.phases.drain(entered);
        Some(ThreadBound::new())
    }

    fn try_write(&self) -> Option<ThreadBound> {
        if self.is_locked() || !self.enter_free() {
            return None;
        }
        if !self.phases.announce_if_free(self.open()) {
            self.wake_readers(self.phases.parity());
            self.pass_on();
            return None;
        }
        Some(ThreadBound::new())
    }

    /// Opens the stack of readers of this phase. Returns the order in which to announce the phase.
    fn open(&self) -> Ordering {
        // Relaxed: [queue-open] Releases it. Readers that found the stack closed have exited, because the writer before
        // waited for them.
        let readers = self.readers_of(self.phases.parity());
        readers.top.store(ptr::null_mut(), Ordering::Relaxed);
        prim::order!("queue-open", Ordering::Release)
    }

    /// Becomes the writer if there is none.
    fn enter_free(&self) -> bool {
        // [queue-enter] Acquire: pairs with [queue-free].
        let acquire = prim::order!("queue-enter", Ordering::Acquire);
        let top = &self.writers.top;
        top.compare_exchange(ptr::null_mut(), SIGN, acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn leave_exclusive(&self, _: ThreadBound) {
        let parity = self.phases.parity();
        self.phases.end_phase();
        self.wake_readers(parity);
        self.pass_on();
    }

    /// Wakes the readers that wait for the phase of that parity, and closes their stack.
    fn wake_readers(&self, parity: Parity) {
        let mut reader = self.readers_of(parity).take();
        while is_node(reader) {
            // SAFETY: this thread has taken the whole stack, and it alone ends the waits of these nodes.
            let next = unsafe { next_of(reader) };
            // SAFETY: as above.
            unsafe { end_wait(reader) };
            reader = next;
        }
    }

    /// Passes the lock on to the next writer, or frees it.
    fn pass_on(&self) {
        // SAFETY: the caller is the writer inside, which alone accesses `next`.
        let mut first = self.next.with(|next| unsafe { *next });
        if !is_node(first) {
            // [queue-free] Release: pairs with [queue-enter].
            let release = prim::order!("queue-free", Ordering::Release);
            let top = &self.writers.top;
            let free = top.compare_exchange(SIGN, ptr::null_mut(), release, Ordering::Relaxed);
            if free.is_ok() {
                return;
            }
            first = in_order(self.writers.take());
        }
        // SAFETY: this thread, or a writer before it, has taken the node and not ended its wait.
        let next = unsafe { next_of(first) };
        // SAFETY: the caller is the writer inside until it ends the next one's wait.
        self.next.with_mut(|place| unsafe { *place = next });
        // SAFETY: as above, and this thread alone does so now.
        unsafe { end_wait(first) };
    }
}

/// Reverses nodes that were taken off the stack, so that the first pushed is first. The last one's next is not a node.
fn in_order(mut top: *mut Node) -> *mut Node {
    let mut first = ptr::null_mut();
    while is_node(top) {
        // SAFETY: the node was taken and its wait has not ended, so it lives.
        let node = unsafe { &*top };
        // SAFETY: the caller has taken the node, and no other thread accesses it.
        let below = node.next.with_mut(|next| unsafe { next.replace(first) });
        first = top;
        top = below;
    }
    first
}

impl Default for PhaseFairQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PhaseFairQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaseFairQueue")
            .field("phases", &self.phases)
            .finish_non_exhaustive()
    }
}

// SAFETY (of the traits): a writer is alone among writers while the stack of writers has a bottom. Readers are kept out
// as by the ticket lock.
raw_rwlock!(timed [] PhaseFairQueue, ThreadBound, ThreadBound);

// SAFETY: the new reader is counted in before `leave_exclusive` lets the next writer in, and that writer counts it.
unsafe impl lock_api::RawRwLockDowngrade for PhaseFairQueue {
    unsafe fn downgrade(&self, guard: ThreadBound) -> ThreadBound {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.phases.keep_as_reader();
        self.leave_exclusive(guard);
        ThreadBound::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{PhaseFairQueue, local};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// As by a range lock, of which the thread waits, too.
    #[test]
    fn a_signal_for_another_lock_ends_no_wait() {
        let lock = lock_api::RwLock::<PhaseFairQueue, u32>::new(0);
        let inside = AtomicU32::new(0);
        let (sender, parkers) = mpsc::channel();
        thread::scope(|scope| {
            let mut held = lock.write();
            for writes in [false, true] {
                let (lock, inside, sender) = (&lock, &inside, sender.clone());
                scope.spawn(move || {
                    local::with_record(|local| sender.send(&local.parker)).expect("it is received");
                    if writes {
                        *lock.write() += 1;
                    } else {
                        drop(lock.read());
                    }
                    inside.fetch_add(1, Ordering::Relaxed);
                });
            }
            let parkers: Vec<_> = parkers.iter().take(2).collect();
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(1));
                parkers.iter().for_each(|parker| parker.unpark());
            }
            *held += 1;
            assert_eq!(inside.load(Ordering::Relaxed), 0);
        });
        assert_eq!((*lock.read(), inside.into_inner()), (2, 2));
    }
}
