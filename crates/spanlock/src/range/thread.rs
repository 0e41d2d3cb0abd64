//! The record of each thread: its epoch, its pools of nodes, the parker on which it sleeps, and what it holds.
//!
//! ```text
//!   thread-local HERE ---> record of index 3 in the global table, reused by the next thread with index 3
//!   thread-local LOCAL --> one node, for the fast path; null while a range is held by it
//!                          the thread's home slots in the locks that it used last
//! ```
//!
//! A record belongs to a thread index (`prim::thread`). It is made on a thread's first acquisition, passes to a later
//! thread when this one exits, and never moves. Other threads access only `epoch` and `parker`.

use crate::range::list::{Node, TallNode};
use crate::range::owner::OwnerId;
use crate::range::segment::Segments;
use crate::range::slots::Seats;
use crate::reclaim::{Epoch, Pool, Recycled};
use crate::wait::{Parker, Spins};
use prim::thread::{self, ForkHook, Table, Tenure};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// What the library keeps for one thread.
#[repr(align(128))] // Two cache lines, as processors fetch them: a change of one epoch must not disturb another.
pub(crate) struct ThreadRecord {
    nodes: Pool<Node>,
    tall_nodes: Pool<TallNode>,
    /// How many nodes the thread allocates before it sweeps a list.
    sweep_after: Cell<usize>,
    /// The state of a generator of random numbers.
    random: Cell<u64>,
    /// How many ranges are held in lists, without the range that the spare node is used for. A hint: a leaked guard
    /// counts for ever.
    holds: Cell<usize>,
    /// Segments held.
    segments: RefCell<VecDeque<HeldSegments>>,
    thread: Cell<u32>,
    /// How long it spins on holders.
    pub(crate) spins: Spins,
    pub(crate) epoch: Epoch,
    pub(crate) parker: Parker,
}

/// Segments that a thread holds: in which lock, and since when.
struct HeldSegments {
    lock: u64,
    segments: Segments,
    at: &'static Location<'static>,
}

// SAFETY: other threads access `epoch` and `parker` only, which are atomic. The owning thread accesses the rest. The
// next owner gets the record with the index, and `prim::thread` orders the one before the other.
unsafe impl Sync for ThreadRecord {}

impl Default for ThreadRecord {
    fn default() -> Self {
        Self {
            nodes: Pool::new(),
            tall_nodes: Pool::new(),
            sweep_after: Cell::new(first_sweep()),
            random: Cell::new(0),
            holds: Cell::new(0),
            segments: RefCell::new(VecDeque::new()),
            thread: Cell::new(0),
            spins: Spins::default(),
            epoch: Epoch::default(),
            parker: Parker::default(),
        }
    }
}

prim::global! {
    static TABLE: Table<ThreadRecord> = Table::new();
}

prim::local! {
    static HERE: Cell<*const ThreadRecord> = Cell::new(ptr::null());
}

/// What the fast paths use of the running thread. It is one variable: where the compiler does not know in which module
/// of the program it is, each look at a thread-local is a call.
pub(crate) struct Local {
    /// A node for the fast path, assigned to this thread. Null while a range is held by it, and before the thread's
    /// first acquisition; [`EXITED`] after its last.
    spare: Cell<*mut Node>,
    pub(crate) seats: Seats,
}

prim::local! {
    static LOCAL: Local = Local { spare: Cell::new(ptr::null_mut()), seats: Seats::new() };
}

/// What the fast paths use of the running thread. It lives as long as the thread runs.
#[inline(always)] // A closure for the fast path as a whole would be too large for the compiler to be inlined.
pub(crate) fn local() -> NonNull<Local> {
    LOCAL.with(|local| NonNull::from(local))
}

/// Calls `f` with that.
#[inline]
pub(crate) fn with_local<R>(f: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: this thread runs, and the reference does not leave the closure.
    f(unsafe { local().as_ref() })
}

impl Local {
    /// Takes the spare node. `None`: it is in use, or the thread is new or exiting.
    #[inline]
    pub(crate) fn take_spare(&self) -> Option<NonNull<Node>> {
        let node = self.spare.get();
        if node <= EXITED {
            return None;
        }
        // Before the acquisition's atomic operation this store costs nothing. After it the store would have to wait.
        self.spare.set(ptr::null_mut());
        NonNull::new(node)
    }

    /// Returns a node that no other thread knows, after its range was released. It becomes the spare node if there is
    /// none.
    #[inline]
    pub(crate) fn return_spare(&self, node: NonNull<Node>) {
        if self.spare.get().is_null() {
            self.spare.set(node.as_ptr());
        } else {
            released_beside_spare(node);
        }
    }
}

/// Whether that record is the running thread's, for good. Not, if the thread is exiting and has borrowed it.
#[inline]
pub(crate) fn is_here(record: usize) -> bool {
    HERE.with(Cell::get).addr() == record
}

/// No node: the thread is exiting, has given up its nodes, and keeps none any more.
const EXITED: *mut Node = NonNull::dangling().as_ptr();

#[cold] // The thread holds several ranges, or is exiting.
fn released_beside_spare(node: NonNull<Node>) {
    with_record(|record| {
        record.put_back(node);
        record.holds.set(record.holds.get().saturating_sub(1));
    });
}

/// Calls `f` with the running thread's record.
#[inline]
pub(crate) fn with_record<R>(f: impl FnOnce(&'static ThreadRecord) -> R) -> R {
    // SAFETY: null, or a pointer into the global table, whose entries never move and are never freed.
    match unsafe { HERE.with(Cell::get).as_ref() } {
        Some(record) => f(record),
        None => with_new(f),
    }
}

#[cold] // A thread's first acquisition, and any in a destructor that runs after its last.
fn with_new<R>(f: impl FnOnce(&'static ThreadRecord) -> R) -> R {
    thread::with_index(on_exit, |index, tenure| {
        let record = TABLE.get(index);
        record.thread.set(thread::id());
        record.random.set(index as u64);
        if tenure == Tenure::Thread {
            HERE.with(|here| here.set(record));
            with_local(|local| local.spare.set(record.take_node().as_ptr()));
        }
        static FORK: ForkHook = ForkHook::new(after_fork);
        FORK.register();
        f(record)
    })
}

fn on_exit(index: usize) {
    let record = TABLE.get(index);
    debug_assert!(
        !record.epoch.is_walking(),
        "a walk outlasts the use of its record"
    );
    HERE.with(|here| here.set(ptr::null()));
    if let Some(spare) = with_local(Local::take_spare) {
        record.put_back(spare);
    }
    with_local(|local| {
        local.spare.set(EXITED);
        local.seats.forget_all();
    });
    record.nodes.flush(epochs);
    record.tall_nodes.flush(epochs);
    // `sweep_after` stays: the next thread with this record inherits the progress towards a sweep. Many short-lived
    // threads leave as many nodes behind as one long-lived thread.
    record.holds.set(0);
    record.segments.take();
}

/// At least so many allocations are between two sweeps.
fn fewest_between_sweeps() -> usize {
    prim::stock(64, 1)
}

/// The allocations before a thread's first sweep: filling its pools is no reason for one.
fn first_sweep() -> usize {
    Node::ready() + TallNode::ready() + fewest_between_sweeps()
}

/// Once a sweep is due, one acquisition in `2^SWEEP_DIGITS`, by lot, makes it. So each of the locks that a thread uses
/// in turn is swept, whatever the order.
const SWEEP_DIGITS: u32 = 4;

/// Runs in a forked child, perhaps twice. The other threads are gone, so none of them walks, and this thread has a new
/// id.
extern "C" fn after_fork() {
    let here = HERE.with(Cell::get);
    for record in TABLE.iter() {
        if ptr::eq(record, here) {
            record.thread.set(thread::id());
            // What the thread announces in its slots from now on is to bear the new id.
            with_local(|local| {
                local.seats.forget_all();
                if let Some(spare) = local.take_spare() {
                    // SAFETY: a spare node is alive, and known to its thread only.
                    unsafe { Node::assign(spare, OwnerId::of_thread(record.thread())) };
                    local.return_spare(spare);
                }
            });
        } else {
            record.epoch.abandon();
        }
    }
}

fn epochs() -> impl Iterator<Item = &'static Epoch> {
    TABLE.iter().map(|record| &record.epoch)
}

impl ThreadRecord {
    /// The thread's id, as tools show it.
    #[inline]
    pub(crate) fn thread(&self) -> u32 {
        self.thread.get()
    }

    /// Whether it is the running thread's, for good.
    pub(crate) fn is_here(&self) -> bool {
        is_here(ptr::from_ref(self).addr())
    }

    /// A node that no other thread knows, assigned to this one.
    pub(crate) fn take_node(&self) -> NonNull<Node> {
        // [grace-nonblocking]
        if !prim::intact!("grace-nonblocking") && !self.epoch.is_walking() {
            self.nodes.await_grace(epochs);
        }
        let node = self.nodes.take(epochs);
        // SAFETY: `take` returns a live node that no other thread knows.
        unsafe { Node::assign(node, OwnerId::of_thread(self.thread())) };
        node
    }

    /// The same for a node that may be linked in so many levels of an index.
    pub(crate) fn take_tall_node(&self, levels: u32) -> NonNull<Node> {
        let tall = self.tall_nodes.take(epochs);
        // SAFETY: `take` returns a live node.
        let fresh = unsafe { tall.as_ref() };
        // SAFETY: `take` returns a node that no other thread knows.
        unsafe { fresh.draw(levels) };
        let node = tall.cast();
        // SAFETY: alive and unknown to other threads, and a tall node begins with its base.
        unsafe { Node::assign(node, OwnerId::of_thread(self.thread())) };
        node
    }

    /// Returns a node that no other thread has known since it was taken.
    pub(crate) fn put_back(&self, node: NonNull<Node>) {
        // SAFETY: it was taken and not returned, so it is alive.
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

    /// Whether this thread is to sweep the list that it is about to walk. It has allocated so many nodes that nodes of
    /// released ranges may be piling up where no walk passes.
    #[inline]
    pub(crate) fn is_sweep_due(&self) -> bool {
        self.nodes.made() + self.tall_nodes.made() >= self.sweep_after.get()
            && prim::wins(self.random(), SWEEP_DIGITS) > 0
    }

    /// Notes a sweep that found so many ranges held. The next sweep is due when as many nodes were allocated, so
    /// sweeping costs a few steps for each allocation.
    pub(crate) fn swept(&self, held: usize) {
        self.sweep_next_after(held.max(fewest_between_sweeps()));
    }

    fn sweep_next_after(&self, made: usize) {
        self.sweep_after.set(made);
        self.nodes.count_anew();
        self.tall_nodes.count_anew();
    }

    /// Whether the thread may hold a range in a list. Not reliable in a thread that is exiting.
    pub(crate) fn may_hold_nodes(&self) -> bool {
        self.holds.get() > 0 || with_local(|local| local.spare.get().is_null())
    }

    /// How many ranges the thread holds in lists, but for one. A hint.
    pub(crate) fn holds(&self) -> usize {
        self.holds.get()
    }

    /// Counts an acquisition that did not take the spare node.
    pub(crate) fn acquired(&self) {
        self.holds.set(self.holds.get() + 1);
    }

    /// Counts a release whose node stays in the list. If that was the spare node, the thread gets another one.
    pub(crate) fn released(&self) {
        if self.holds.get() > 0 {
            self.holds.set(self.holds.get() - 1);
        } else if ptr::eq(self, HERE.with(Cell::get))
            && with_local(|local| local.spare.get().is_null())
        {
            let node = self.take_node();
            with_local(|local| local.return_spare(node));
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

    /// Forgets segments, and returns where they were acquired. A thread that is exiting may have forgotten them
    /// already.
    pub(crate) fn forget_segments(
        &self,
        lock: u64,
        segments: Segments,
    ) -> Option<&'static Location<'static>> {
        let mut noted = self.segments.borrow_mut();
        let is_it = |held: &HeldSegments| held.lock == lock && held.segments == segments;
        // From both ends at once, because most are released in the order of their acquisition or in reverse order.
        let last = noted.len().checked_sub(1)?;
        let place = (0..=last / 2)
            .flat_map(|step| [last - step, step])
            .find(|&place| is_it(&noted[place]))?;
        Some(noted.remove(place)?.at)
    }

    /// Forgets what this thread still holds, by leaked guards, in a lock that is dropped.
    pub(crate) fn forget_lock(&self, lock: u64) {
        self.segments.borrow_mut().retain(|held| held.lock != lock);
    }

    /// What this thread holds in the lock with that id, each converted by `f`.
    pub(crate) fn segments_of<R>(&self, lock: u64, f: impl Fn(Segments) -> R) -> Vec<R> {
        let noted = self.segments.borrow();
        let held = noted.iter().filter(|held| held.lock == lock);
        held.map(|held| f(held.segments)).collect()
    }

    /// Whether this thread itself holds that segment in the way of a request.
    pub(crate) fn holds_segment(&self, lock: u64, wanted: Segments, segment: u64) -> bool {
        let noted = self.segments.borrow();
        noted
            .iter()
            .any(|held| held.lock == lock && wanted.meets_at(held.segments, segment))
    }

    /// What this thread itself holds in the way of a request, and where it was acquired.
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
        Pin { record: self }
    }
}

/// A walk under way: nodes reached from a list stay valid.
pub(crate) struct Pin {
    record: &'static ThreadRecord,
}

impl Pin {
    /// Gives up a node from which this thread has removed a link, if that was the last link to it.
    #[inline]
    pub(crate) fn unlinked(&self, node: NonNull<Node>) {
        // SAFETY: reached in this walk, so not reused before the walk ends.
        match unsafe { TallNode::of(node) } {
            None => self.record.nodes.retire(node),
            // SAFETY: the same node.
            Some(tall) if unsafe { tall.as_ref() }.lost_link() => {
                self.record.tall_nodes.retire(tall)
            }
            Some(_) => {}
        }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.record.epoch.unpin();
        if self.record.nodes.is_bloated() {
            self.record.nodes.collect(epochs);
        }
        if self.record.tall_nodes.is_bloated() {
            self.record.tall_nodes.collect(epochs);
        }
    }
}
