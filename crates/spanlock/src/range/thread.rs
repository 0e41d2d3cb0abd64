//! The record of each thread: its epoch, the parker on which it sleeps, and what the locks keep for it.
//!
//! ```text
//!   thread-local HERE ---> record of index 3 in the global table, reused by the next thread with index 3
//!   thread-local LOCAL --> one node, for the fast path; null while a range is held by it
//!                          another one, for the fast path of owners
//!                          the thread's home slots in the locks that it used last
//!                          the slots that were lent last to owners for whom it acquired
//! ```
//!
//! A record belongs to a thread index (`prim::thread`). It is made on a thread's first acquisition, passes to a later
//! thread when this one exits, and never moves. Other threads access only `epoch` and `parker`.
//!
//! # Edges
//!
//! - **tasks-unpinned**: what wakes tasks is called when the thread does not walk.

use super::parts::{Local, Parts};
use crate::deadlock::Wish;
use crate::reclaim::Epoch;
use crate::wait::{Parker, Spins, Wakers};
use prim::thread::{self, ForkHook, Table, Tenure};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::task::Waker;

/// What the library keeps for one thread.
#[repr(align(128))] // Two cache lines, as processors fetch them: a change of one epoch must not disturb another.
pub(crate) struct ThreadRecord {
    pub(in crate::range) parts: Parts,
    /// The state of a generator of random numbers.
    random: Cell<u64>,
    thread: Cell<u32>,
    /// How long it spins on holders.
    pub(crate) spins: Spins,
    pub(crate) epoch: Epoch,
    pub(crate) parker: Parker,
    /// Tasks to be called when this thread does not walk any more.
    tasks: Cell<Wakers>,
}

// SAFETY: other threads access `epoch` and `parker` only, which are atomic. The owning thread accesses the rest. The
// next owner gets the record with the index, and `prim::thread` orders the one before the other.
unsafe impl Sync for ThreadRecord {}

impl Default for ThreadRecord {
    fn default() -> Self {
        Self {
            parts: Parts::default(),
            random: Cell::new(0),
            thread: Cell::new(0),
            spins: Spins::default(),
            epoch: Epoch::default(),
            parker: Parker::default(),
            tasks: Cell::default(),
        }
    }
}

prim::global! {
    static TABLE: Table<ThreadRecord> = Table::new();
}

prim::local! {
    static HERE: Cell<*const ThreadRecord> = Cell::new(ptr::null());
}

prim::local! {
    static LOCAL: Local = Local::new();
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

/// Whether that record is the running thread's, for good. Not, if the thread is exiting and has borrowed it.
#[inline]
pub(crate) fn is_here(record: usize) -> bool {
    HERE.with(Cell::get).addr() == record
}

/// Wakes tasks: at once, or after the walk under way, by [`ThreadRecord::call_tasks`]. What wakes them is foreign code,
/// which may ask for a range, and walks do not nest [tasks-unpinned].
pub(crate) fn call_tasks(tasks: Wakers) {
    if tasks.is_empty() {
        return;
    }
    // SAFETY: null, or a pointer into the global table, whose entries never move and are never freed.
    match unsafe { HERE.with(Cell::get).as_ref() } {
        Some(record) if record.epoch.is_walking() && prim::intact!("tasks-unpinned") => {
            let mut later = record.tasks.take();
            later.append(tasks);
            record.tasks.set(later);
        }
        _ => tasks.call(),
    }
}

/// Drops a waker that is not needed: at once, or after the walk under way. A panic of it must not take along what was
/// granted meanwhile.
pub(crate) fn discard(waker: Option<Waker>) {
    let mut wakers = Wakers::default();
    wakers.discard(waker);
    call_tasks(wakers);
}

/// The running thread's id. Its record has it, if there is one: to ask the system takes longer.
pub(crate) fn id() -> u32 {
    // SAFETY: null, or a pointer into the global table, whose entries never move and are never freed.
    let here = unsafe { HERE.with(Cell::get).as_ref() };
    here.map_or_else(thread::id, ThreadRecord::thread)
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
            with_local(|local| record.parts.begin(local, record.thread(), epochs));
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
    with_local(|local| record.parts.end(local, epochs));
}

/// Runs in a forked child, perhaps twice. The other threads are gone, so none of them walks, and this thread has a new
/// id.
extern "C" fn after_fork() {
    let here = HERE.with(Cell::get);
    for record in TABLE.iter() {
        if ptr::eq(record, here) {
            record.thread.set(thread::id());
            with_local(|local| local.forked(record.thread()));
        } else {
            record.epoch.abandon();
        }
    }
}

/// The epochs of all threads.
pub(super) fn epochs() -> impl Iterator<Item = &'static Epoch> {
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

    /// Wakes the tasks whose wake-up was put off until the thread does not walk.
    #[inline]
    pub(crate) fn call_tasks(&self) {
        let tasks = self.tasks.take();
        if !tasks.is_empty() {
            tasks.call();
        }
    }

    /// What the thread holds in locks that do not know who holds them.
    #[cold] // Where deadlocks are looked for, before it sleeps.
    pub(crate) fn accounts(&self) -> Vec<Wish> {
        self.parts.wishes()
    }

    /// A random number, good enough to draw lots with (SplitMix64).
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
    /// The record of the thread that walks.
    #[inline]
    pub(super) fn record(&self) -> &'static ThreadRecord {
        self.record
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.record.epoch.unpin();
        self.record.parts.list.collect(epochs);
    }
}
