//! The phase-fair queue lock PF-Q of Brandenburg and Anderson, with sleep.
//!
//! `phases.rs` tells how readers and writers take turns. Here every thread that waits does so by itself, in a node on
//! its own stack: readers in one of two stacks, by the parity of the writer they met, and writers in a queue.
//!
//! A stack of readers is *closed* but for the phase of its parity: the writer opens it before it announces itself,
//! and closes it when it leaves, waking all who are in it. A reader that finds it closed came too late to wait.
//!
//! Writers push themselves on a stack as well, whose bottom says that the lock is held. The one that leaves takes the
//! whole stack and turns it round: that is the queue, known to the writer inside alone, and handed from one to the
//! next. (The paper's queue is linked by arriving writers, and a writer that leaves may have to spin for a link.)
//!
//! A node on a stack cannot be taken off but with all others, so who may give up does not push itself: it waits as
//! `phases.rs` has it.
//!
//! # Memory ordering
//!
//! - **queue-push** / **queue-take**: Release by the thread that pushes its node, Acquire by the one that takes the
//!   stack.
//! - **queue-open**: Release by the announcement, Acquire by the reader that meets it: the stack is open.
//! - **queue-closed** / **queue-late**: Release by closing, Acquire by the reader that comes too late: the writer's
//!   critical section. Who waited has it from the signal.
//! - **queue-free** / **queue-enter**: Release by the writer that leaves a lock for which no other waits, Acquire by
//!   the next.

use super::phases::{Parity, Phases};
use super::raw::{Stays, raw_rwlock};
use super::watch;
use crate::local;
use crate::range::raw::Wait;
use crate::wait::Parker;
use prim::atomic::{AtomicPtr, Ordering};
use prim::cell::UnsafeCell;
use prim::spin::{self, Spin};
use std::fmt;
use std::ptr::{self, NonNull};

/// A thread that waits. It lives until its thread was signalled.
struct Node {
    /// What was on the stack before; then, in the queue, the next.
    next: UnsafeCell<*mut Node>,
    parker: &'static Parker,
}

/// No node: the lock is held and nobody waits on top of it; or a stack of readers is closed.
const SIGN: *mut Node = NonNull::dangling().as_ptr();

fn is_node(pointer: *mut Node) -> bool {
    !pointer.is_null() && pointer != SIGN
}

/// Takes a node off its stack or queue: the next, and whom to wake. After that the node may be gone.
///
/// # Safety
/// The node's thread waits, has published it, and is signalled by nobody else.
unsafe fn unlink(node: *mut Node) -> (*mut Node, &'static Parker) {
    // SAFETY: it lives while its thread waits.
    let node = unsafe { &*node };
    // SAFETY: published whole, and nobody writes to it now.
    (node.next.with(|next| unsafe { *next }), node.parker)
}

/// Where threads push themselves to wait.
struct Stack {
    top: AtomicPtr<Node>,
}

/// What became of a wait.
enum Waited {
    Signalled,
    /// The top was what the thread does not wait on.
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

    /// Waits on the stack until signalled, unless `not_on` is on its top.
    #[cold]
    fn wait(&self, not_on: *mut Node) -> Waited {
        local::with(|local| {
            let ticket = local.parker.ticket();
            let node = Node {
                next: UnsafeCell::new(ptr::null_mut()),
                parker: &local.parker,
            };
            // [queue-late] Acquire: pairs with [queue-closed].
            let acquire = prim::order!("queue-late", Ordering::Acquire);
            let mut top = self.top.load(acquire);
            loop {
                if top == not_on {
                    return Waited::Not;
                }
                // SAFETY: not published yet.
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
            while !local.parker.is_signalled(ticket) {
                if !spin.round() {
                    local.parker.park(ticket, None);
                }
            }
            Waited::Signalled
        })
    }

    /// Takes all and leaves a sign.
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

/// A swap, of which the model checker's pointers know only the compare-exchange.
fn swap(place: &AtomicPtr<Node>, new: *mut Node, order: Ordering) -> *mut Node {
    let mut seen = place.load(Ordering::Relaxed);
    loop {
        match place.compare_exchange(seen, new, order, Ordering::Relaxed) {
            Ok(_) => return seen,
            Err(found) => seen = found,
        }
    }
}

/// A phase-fair reader-writer lock in which every thread waits by itself: a writer that leaves wakes one writer.
///
/// ```
/// static LOCK: lock_api::RwLock<spanlock::rw::PhaseFairQueue, u32> = lock_api::RwLock::new(5);
/// assert_eq!(*LOCK.read(), 5);
/// ```
///
/// - **Size**: 40 bytes.
/// - **Cost**: one atomic operation to read and one to leave; a write is two and three.
/// - **Fairness**: as [`PhaseFairTicket`](super::PhaseFairTicket): a reader waits for one writer at most, writers are
///   served in order.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting** and **downgrade**: as [`PhaseFairTicket`](super::PhaseFairTicket), timed forms unfair too.
/// - **Panics** when 2^27 guards are held or were leaked.
/// - Not where the space matters and few writers wait: [`PhaseFairTicket`](super::PhaseFairTicket). Nor when many
///   processors read often: put [`Bravo`](super::Bravo) around it.
/// - Not in a forked child, unless no other thread of the parent used the lock at the time: a thread that waited keeps
///   its place, and the child would wait for it.
/// - Guards stay on their threads, unless the feature `send_guard` is on.
///
/// Source: Brandenburg and Anderson (as there), PF-Q; sleeping and the queue of writers are ours.
pub struct PhaseFairQueue {
    phases: Phases,
    /// Readers who wait for a writer of that parity.
    readers: [Stack; 2],
    /// Null: no writer. Else a sign, and on top of it writers who wait, but for those in the queue.
    writers: Stack,
    /// The queue: the next writer. For the writer inside.
    next: UnsafeCell<*mut Node>,
}

// SAFETY: nodes are published and taken in order; `next` is touched by the writer inside alone.
unsafe impl Send for PhaseFairQueue {}
// SAFETY: as above.
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
    fn read(&self, wait: Wait) -> Option<Stays> {
        let came = self.phases.come(wait)?;
        if let Some(met) = came.met() {
            self.readers_of(met).wait(SIGN);
        }
        self.phases.stay(came);
        Some(Stays::new())
    }

    #[inline]
    fn leave_shared(&self, _: Stays) {
        self.phases.leave();
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<Stays> {
        if wait != Wait::Forever {
            return self.phases.poll(wait, || self.try_write());
        }
        while !self.enter_free() {
            if let Waited::Signalled = self.writers.wait(ptr::null_mut()) {
                break;
            }
        }
        let before = self.phases.announce(self.open());
        self.phases.drain(before);
        Some(Stays::new())
    }

    fn try_write(&self) -> Option<Stays> {
        if self.is_locked() || !self.enter_free() {
            return None;
        }
        if !self.phases.announce_if_free(self.open()) {
            self.wake_readers(self.phases.parity());
            self.pass_on();
            return None;
        }
        Some(Stays::new())
    }

    /// Lets readers wait for this phase. In what order to announce it.
    fn open(&self) -> Ordering {
        // Relaxed: [queue-open] releases it. Those who found it closed have left: the writer before waited for them.
        let readers = self.readers_of(self.phases.parity());
        readers.top.store(ptr::null_mut(), Ordering::Relaxed);
        prim::order!("queue-open", Ordering::Release)
    }

    /// Becomes the writer, if there is none.
    fn enter_free(&self) -> bool {
        // [queue-enter] Acquire: pairs with [queue-free].
        let acquire = prim::order!("queue-enter", Ordering::Acquire);
        let top = &self.writers.top;
        top.compare_exchange(ptr::null_mut(), SIGN, acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn leave_exclusive(&self, _: Stays) {
        let parity = self.phases.parity();
        self.phases.take_back();
        self.wake_readers(parity);
        self.pass_on();
    }

    /// Those who waited for the phase of that parity.
    fn wake_readers(&self, parity: Parity) {
        let mut reader = self.readers_of(parity).take();
        while is_node(reader) {
            // SAFETY: taken by this thread, which alone signals it.
            let (next, parker) = unsafe { unlink(reader) };
            parker.rouse();
            reader = next;
        }
    }

    /// The next writer's turn, or nobody's.
    fn pass_on(&self) {
        // SAFETY: alone among writers.
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
        // SAFETY: taken by this thread or one before it, and signalled by this one alone.
        let (next, parker) = unsafe { unlink(first) };
        // SAFETY: alone among writers until the signal.
        self.next.with_mut(|place| unsafe { *place = next });
        parker.rouse();
    }
}

/// Turns a stack of nodes that were taken round. The last one's next is no node.
fn in_order(mut top: *mut Node) -> *mut Node {
    let mut first = ptr::null_mut();
    while is_node(top) {
        // SAFETY: taken, and its thread waits.
        let node = unsafe { &*top };
        // SAFETY: taken: nobody else looks at it.
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

// A writer is alone among writers while the stack of writers has its sign; else as the ticket lock.
raw_rwlock!(timed [] PhaseFairQueue, Stays, Stays);

// SAFETY: as for the ticket lock.
unsafe impl lock_api::RawRwLockDowngrade for PhaseFairQueue {
    unsafe fn downgrade(&self, guard: Stays) -> Stays {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.phases.share();
        self.leave_exclusive(guard);
        Stays::new()
    }
}
