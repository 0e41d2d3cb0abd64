//! What the library keeps for each thread: its epoch, its nodes, where it sleeps, and how much it holds.
//!
//! A record belongs to a thread index (`prim::thread`): it is made on a thread's first acquisition, handed to a
//! later thread when this one exits, and never moves. Only `epoch` and `parker` are looked at by other threads.

use crate::range::list::Node;
use crate::range::segment::Segments;
use crate::reclaim::{Epoch, Pool};
use crate::wait::Parker;
use prim::thread::{self, Table, Tenure};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};

/// A thread's record.
#[repr(align(128))] // Two cache lines, as processors fetch them: a neighbour's epoch must not move ours.
pub(crate) struct Local {
    nodes: Pool<Node>,
    /// Ranges held, in all locks, less the one that the spare node is lent to.
    holds: Cell<usize>,
    /// The segments among them, and the lock of each. Kept in debug builds, to find a thread that waits for itself.
    segments: RefCell<Vec<(u64, Segments)>>,
    thread: Cell<u32>,
    pub(crate) epoch: Epoch,
    pub(crate) parker: Parker,
}

// SAFETY: other threads touch `epoch` and `parker` only, which are atomic; the rest is the owning thread's, and
// passes from one owner to the next with the index, in happens-before order.
unsafe impl Sync for Local {}

impl Default for Local {
    fn default() -> Self {
        Self {
            nodes: Pool::new(),
            holds: Cell::new(0),
            segments: RefCell::new(Vec::new()),
            thread: Cell::new(0),
            epoch: Epoch::default(),
            parker: Parker::default(),
        }
    }
}

prim::global! {
    static TABLE: Table<Local> = Table::new();
}

prim::local! {
    static HERE: Cell<*const Local> = Cell::new(ptr::null());
}

prim::local! {
    /// A node ready for the fast path, assigned to this thread; null while a range is held by it, and before the
    /// thread's first acquisition; [`EXITED`] after its last.
    static SPARE: Cell<*mut Node> = Cell::new(ptr::null_mut());
}

/// No node: the thread has given up what it had, and keeps nothing any more.
const EXITED: *mut Node = NonNull::dangling().as_ptr();

/// Takes the spare node, for a range that will be held by it. `None`: it is in use, or the thread is new or exiting.
#[inline]
pub(crate) fn take_spare() -> Option<NonNull<Node>> {
    SPARE.with(|spare| {
        let node = spare.get();
        if node <= EXITED {
            return None;
        }
        // Here, before the acquisition's atomic operation, the store costs nothing; after it it would.
        spare.set(ptr::null_mut());
        NonNull::new(node)
    })
}

/// Returns the spare node, or makes a spare one of a node that no other thread knows: a range held is one less.
#[inline]
pub(crate) fn return_spare(node: NonNull<Node>) {
    SPARE.with(|spare| {
        if spare.get().is_null() {
            spare.set(node.as_ptr());
        } else {
            released_beside_spare(node);
        }
    });
}

#[cold] // Only a thread that holds several ranges gets here, or one that is exiting.
fn released_beside_spare(node: NonNull<Node>) {
    with(|local| {
        local.put_back(node);
        local.holds.set(local.holds.get().saturating_sub(1));
    });
}

/// Calls `f` with the running thread's record.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&'static Local) -> R) -> R {
    // SAFETY: not null, it points into the global table, whose entries never move.
    match unsafe { HERE.with(Cell::get).as_ref() } {
        Some(local) => f(local),
        None => with_new(f),
    }
}

#[cold] // A thread's first acquisition, and any in a destructor that runs after its last.
fn with_new<R>(f: impl FnOnce(&'static Local) -> R) -> R {
    thread::with_index(on_exit, |index, tenure| {
        let local = TABLE.get(index);
        local.thread.set(thread::id());
        if tenure == Tenure::Thread {
            HERE.with(|here| here.set(local));
            SPARE.with(|spare| spare.set(local.take_node().as_ptr()));
        }
        static FORK: std::sync::Once = std::sync::Once::new();
        FORK.call_once(|| thread::after_fork_in_child(after_fork));
        f(local)
    })
}

fn on_exit(index: usize) {
    HERE.with(|here| here.set(ptr::null()));
    let local = TABLE.get(index);
    if let Some(spare) = take_spare() {
        local.put_back(spare);
    }
    SPARE.with(|spare| spare.set(EXITED));
    local.nodes.flush(epochs);
    local.holds.set(0);
    local.segments.take();
}

/// In a forked child the other threads are gone: none of them walks, and this one has a new id.
extern "C" fn after_fork() {
    let here = HERE.with(Cell::get);
    for local in TABLE.iter() {
        if ptr::eq(local, here) {
            local.thread.set(thread::id());
            if let Some(spare) = take_spare() {
                // SAFETY: a spare node is known to its thread only.
                unsafe { Node::assign(spare, local.thread()) };
                return_spare(spare);
            }
        } else {
            local.epoch.abandon();
        }
    }
}

fn epochs() -> impl Iterator<Item = &'static Epoch> {
    TABLE.iter().map(|local| &local.epoch)
}

impl Local {
    /// The thread's id, as tools show it.
    #[inline]
    pub(crate) fn thread(&self) -> u32 {
        self.thread.get()
    }

    /// A node that no other thread knows, assigned to this one.
    pub(crate) fn take_node(&self) -> NonNull<Node> {
        let node = self.nodes.take(epochs);
        // SAFETY: so says `take`.
        unsafe { Node::assign(node, self.thread()) };
        node
    }

    /// Returns a node that no other thread has known since it was taken.
    pub(crate) fn put_back(&self, node: NonNull<Node>) {
        self.nodes.put_back(node);
    }

    /// Whether the thread holds a range of any lock. In a thread that is exiting that is not known any more.
    pub(crate) fn holds_any(&self) -> bool {
        self.holds.get() > 0 || SPARE.with(|spare| spare.get().is_null())
    }

    /// Counts an acquisition that did not take the spare node.
    pub(crate) fn acquired(&self) {
        self.holds.set(self.holds.get() + 1);
    }

    /// Counts a release whose node stays in the list: the spare one or another.
    pub(crate) fn released(&self) {
        if self.holds.get() > 0 {
            self.holds.set(self.holds.get() - 1);
        } else if ptr::eq(self, HERE.with(Cell::get)) && SPARE.with(|spare| spare.get().is_null()) {
            return_spare(self.take_node());
        }
    }

    /// Notes segments acquired in the lock with that id.
    pub(crate) fn note_segments(&self, lock: u64, segments: Segments) {
        self.segments.borrow_mut().push((lock, segments));
    }

    /// Forgets them. In a thread that is exiting they may be forgotten already.
    pub(crate) fn forget_segments(&self, lock: u64, segments: Segments) {
        let mut noted = self.segments.borrow_mut();
        if let Some(at) = noted.iter().rposition(|held| *held == (lock, segments)) {
            noted.swap_remove(at);
        }
    }

    /// Forgets what this thread still holds in a lock that is dropped: guards were leaked.
    pub(crate) fn forget_lock(&self, lock: u64) {
        self.segments.borrow_mut().retain(|(of, _)| *of != lock);
    }

    /// Whether this thread itself keeps a request from entering that segment.
    pub(crate) fn holds_segment(&self, lock: u64, wanted: Segments, segment: u64) -> bool {
        let noted = self.segments.borrow();
        noted
            .iter()
            .any(|(of, held)| *of == lock && wanted.meets_at(*held, segment))
    }

    /// Begins a walk, which lasts until the result is dropped.
    #[inline]
    pub(crate) fn pin(&'static self) -> Pin {
        self.epoch.pin();
        Pin { local: self }
    }
}

/// A walk under way: nodes reached from a list stay valid.
pub(crate) struct Pin {
    local: &'static Local,
}

impl Pin {
    /// Gives up a node that this thread has unlinked.
    #[inline]
    pub(crate) fn retire(&self, node: NonNull<Node>) {
        self.local.nodes.retire(node);
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.local.epoch.unpin();
        if self.local.nodes.is_bloated() {
            self.local.nodes.collect(epochs);
        }
    }
}
