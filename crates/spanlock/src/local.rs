//! What the library keeps for each thread: its epoch, its nodes, where it sleeps, and how much it holds.
//!
//! A record belongs to a thread index (`prim::thread`): it is made on a thread's first acquisition, handed to a
//! later thread when this one exits, and never moves. Only `epoch` and `parker` are looked at by other threads.

use crate::range::list::{Node, TallNode};
use crate::range::segment::Segments;
use crate::reclaim::{Epoch, Pool, Recycled};
use crate::wait::Parker;
use prim::thread::{self, ForkHook, Table, Tenure};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// A thread's record.
#[repr(align(128))] // Two cache lines, as processors fetch them: a neighbour's epoch must not move ours.
pub(crate) struct Local {
    nodes: Pool<Node>,
    tall_nodes: Pool<TallNode>,
    /// How many nodes the thread allocates before it sweeps a list.
    sweep_after: Cell<usize>,
    /// The state of a generator of random numbers.
    random: Cell<u64>,
    /// Ranges held in lists, less the one that the spare node is lent to. A hint: a leaked guard counts for ever.
    holds: Cell<usize>,
    /// Segments held.
    segments: RefCell<VecDeque<HeldSegments>>,
    thread: Cell<u32>,
    pub(crate) epoch: Epoch,
    pub(crate) parker: Parker,
}

/// Segments that a thread holds: in which lock, and since when.
struct HeldSegments {
    lock: u64,
    segments: Segments,
    at: &'static Location<'static>,
}

// SAFETY: other threads touch `epoch` and `parker` only, which are atomic; the rest is the owning thread's, and
// passes from one owner to the next with the index, in happens-before order.
unsafe impl Sync for Local {}

impl Default for Local {
    fn default() -> Self {
        Self {
            nodes: Pool::new(),
            tall_nodes: Pool::new(),
            sweep_after: Cell::new(first_sweep()),
            random: Cell::new(0),
            holds: Cell::new(0),
            segments: RefCell::new(VecDeque::new()),
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
        local.random.set(index as u64);
        if tenure == Tenure::Thread {
            HERE.with(|here| here.set(local));
            SPARE.with(|spare| spare.set(local.take_node().as_ptr()));
        }
        static FORK: ForkHook = ForkHook::new(after_fork);
        FORK.register();
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
    local.tall_nodes.flush(epochs);
    // What it owes of a sweep the next thread with this record inherits: many short-lived threads leave as much behind as one.
    local.holds.set(0);
    local.segments.take();
}

/// Allocations that are no reason for a sweep: at least so many between two.
fn fewest_between_sweeps() -> usize {
    prim::stock(64, 1)
}

/// A thread's first nodes are none either.
fn first_sweep() -> usize {
    Node::ready() + TallNode::ready() + fewest_between_sweeps()
}

/// Once a sweep is due, one acquisition in `2^SWEEP_DIGITS` makes it. So it is no certain one: of locks that a thread uses in
/// turn, each is swept.
const SWEEP_DIGITS: u32 = 4;

/// In a forked child the other threads are gone: none of them walks, and this one has a new id. It may run twice.
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
        // [barrier]
        if !prim::intact!("barrier") && !self.epoch.is_walking() {
            self.nodes.await_grace(epochs);
        }
        let node = self.nodes.take(epochs);
        // SAFETY: so says `take`.
        unsafe { Node::assign(node, self.thread()) };
        node
    }

    /// The same, of a node that may be linked in so many levels of an index.
    pub(crate) fn take_tall_node(&self, levels: u32) -> NonNull<Node> {
        let tall = self.tall_nodes.take(epochs);
        // SAFETY: so says `take`.
        let fresh = unsafe { tall.as_ref() };
        // SAFETY: as above.
        unsafe { fresh.draw(levels) };
        let node = tall.cast();
        // SAFETY: as above; a tall node begins with its base.
        unsafe { Node::assign(node, self.thread()) };
        node
    }

    /// Returns a node that no other thread has known since it was taken.
    pub(crate) fn put_back(&self, node: NonNull<Node>) {
        // SAFETY: the caller's, so it is alive.
        match unsafe { TallNode::of(node) } {
            Some(tall) => self.tall_nodes.put_back(tall),
            None => self.nodes.put_back(node),
        }
    }

    /// A random number, good enough to draw lots with (SplitMix64).
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Whether a list that this thread is about to walk is to be swept: it has allocated so many nodes that those of
    /// released ranges may be piling up, where nobody passes.
    #[inline]
    pub(crate) fn is_sweep_due(&self) -> bool {
        self.nodes.made() + self.tall_nodes.made() >= self.sweep_after.get()
            && prim::wins(self.random(), SWEEP_DIGITS) > 0
    }

    /// Notes a sweep that found so many ranges held. The next is due when as many nodes were allocated: so a sweep costs
    /// a few steps for each of them.
    pub(crate) fn swept(&self, held: usize) {
        self.sweep_next_after(held.max(fewest_between_sweeps()));
    }

    fn sweep_next_after(&self, made: usize) {
        self.sweep_after.set(made);
        self.nodes.count_anew();
        self.tall_nodes.count_anew();
    }

    /// Whether the thread may hold a range in a list. In a thread that is exiting that is not known any more.
    pub(crate) fn may_hold_nodes(&self) -> bool {
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

    /// Notes segments acquired there, in the lock with that id.
    pub(crate) fn note_segments(
        &self,
        lock: u64,
        segments: Segments,
        at: &'static Location<'static>,
    ) {
        self.segments
            .borrow_mut()
            .push_back(HeldSegments { lock, segments, at });
    }

    /// Forgets them; where they were acquired. In a thread that is exiting they may be forgotten already.
    pub(crate) fn forget_segments(
        &self,
        lock: u64,
        segments: Segments,
    ) -> Option<&'static Location<'static>> {
        let mut noted = self.segments.borrow_mut();
        let is_it = |held: &HeldSegments| held.lock == lock && held.segments == segments;
        // From both ends at once: most are released in the order of their acquisition, or against it.
        let last = noted.len().checked_sub(1)?;
        let place = (0..=last / 2)
            .flat_map(|step| [last - step, step])
            .find(|&place| is_it(&noted[place]))?;
        Some(noted.remove(place)?.at)
    }

    /// Forgets what this thread still holds in a lock that is dropped: guards were leaked.
    pub(crate) fn forget_lock(&self, lock: u64) {
        self.segments.borrow_mut().retain(|held| held.lock != lock);
    }

    /// What this thread holds in the lock with that id, each as `f` tells it.
    pub(crate) fn segments_of<R>(&self, lock: u64, f: impl Fn(Segments) -> R) -> Vec<R> {
        let noted = self.segments.borrow();
        let held = noted.iter().filter(|held| held.lock == lock);
        held.map(|held| f(held.segments)).collect()
    }

    /// Whether this thread itself keeps a request from entering that segment.
    pub(crate) fn holds_segment(&self, lock: u64, wanted: Segments, segment: u64) -> bool {
        let noted = self.segments.borrow();
        noted
            .iter()
            .any(|held| held.lock == lock && wanted.meets_at(held.segments, segment))
    }

    /// What this thread itself has in the way of a request, and where it was acquired.
    pub(crate) fn held_segments(
        &self,
        lock: u64,
        wanted: Segments,
    ) -> Option<(Segments, &'static Location<'static>)> {
        let noted = self.segments.borrow();
        let in_the_way = |held: &&HeldSegments| held.lock == lock && wanted.meets(held.segments);
        let held = noted.iter().find(in_the_way)?;
        Some((held.segments, held.at))
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
    /// Gives up a node that this thread has unlinked; if it is linked elsewhere, when that link is removed too.
    #[inline]
    pub(crate) fn unlinked(&self, node: NonNull<Node>) {
        // SAFETY: reached in this walk.
        match unsafe { TallNode::of(node) } {
            None => self.local.nodes.retire(node),
            // SAFETY: as above.
            Some(tall) if unsafe { tall.as_ref() }.lost_link() => {
                self.local.tall_nodes.retire(tall)
            }
            Some(_) => {}
        }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.local.epoch.unpin();
        if self.local.nodes.is_bloated() {
            self.local.nodes.collect(epochs);
        }
        if self.local.tall_nodes.is_bloated() {
            self.local.tall_nodes.collect(epochs);
        }
    }
}
