//! Threads of a model.

mod table;

pub use loom::thread::JoinHandle;
pub use table::Table;

use crate::atomic::{AtomicUsize, Ordering};
use crate::with_execution;
use std::cell::RefCell;

/// Runs when a thread exits, with its index, on that thread.
pub type ExitHook = fn(usize);

/// How long an index belongs to the caller of [`with_index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenure {
    /// Until the thread exits.
    Thread,
    /// Until the closure returns; never here.
    Call,
}

/// A thread's index, and what to run when it exits.
struct Seat {
    index: usize,
    hooks: Vec<ExitHook>,
}

loom::thread_local! {
    static SEAT: RefCell<Option<Seat>> = RefCell::new(None);
}

loom::lazy_static! {
    static ref HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
}

fn with_seat<R>(f: impl FnOnce(&mut Seat) -> R) -> R {
    SEAT.with(|seat| {
        let mut seat = seat.borrow_mut();
        f(seat.get_or_insert_with(|| Seat {
            index: take_index(),
            hooks: Vec::new(),
        }))
    })
}

/// This thread's index.
pub(crate) fn index() -> usize {
    with_seat(|seat| seat.index)
}

fn take_index() -> usize {
    let index = with_execution(|execution| {
        execution.threads += 1;
        execution.threads - 1
    });
    HIGH_WATER.fetch_max(index + 1, Ordering::SeqCst);
    index
}

/// Lets another thread run. It counts as a spin: who yields in a loop waits for something.
#[track_caller]
pub fn yield_now() {
    crate::spin::count();
    loom::thread::yield_now();
}

/// Runs `f` in a thread of its own.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    loom::thread::spawn(move || {
        let result = f();
        exit();
        result
    })
}

/// What a thread's end does to the library.
pub(crate) fn exit() {
    let seat = SEAT.with(|seat| seat.borrow_mut().take());
    if let Some(seat) = seat {
        for hook in seat.hooks {
            hook(seat.index);
        }
    }
}

/// Calls `f` with this thread's index; `on_exit` will run when the thread exits.
pub fn with_index<R>(on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    let index = with_seat(|seat| {
        seat.hooks.push(on_exit);
        seat.index
    });
    f(index, Tenure::Thread)
}

/// Lets others run: for a loop that waits for a thread which has a few instructions to go, and wakes nobody.
#[track_caller]
pub fn nap() {
    yield_now();
}

/// All indices in use are below this. Load it after a `SeqCst` fence to miss nobody who entered before.
#[must_use]
pub fn high_water() -> usize {
    HIGH_WATER.load(Ordering::Relaxed)
}

/// All threads of a model can run at a time.
#[must_use]
pub fn cpus() -> usize {
    loom::MAX_THREADS
}

/// As [`cpus`].
#[must_use]
pub fn processors() -> usize {
    cpus()
}

/// Each thread of a model has a processor.
#[must_use]
pub fn cpu() -> usize {
    index()
}

/// Each thread of a model has a memory node.
#[must_use]
pub fn node() -> usize {
    cpu()
}

/// The running thread's id: never zero.
#[must_use]
pub fn id() -> u32 {
    u32::try_from(index() + 1).expect("few threads")
}

/// There is no fork in a model.
pub fn after_fork_in_child(_hook: extern "C" fn()) {}

/// How often [`pretend_fork`] was called.
#[must_use]
pub fn forks() -> u32 {
    with_execution(|execution| execution.forks)
}

/// From now on the process is another, and all its threads are in the child.
pub fn pretend_fork() {
    yield_now();
    with_execution(|execution| execution.forks += 1);
}

/// A hook for forked children: never run.
#[derive(Debug)]
pub struct ForkHook;

impl ForkHook {
    /// Forgets the hook.
    #[must_use]
    pub const fn new(_hook: extern "C" fn()) -> Self {
        Self
    }

    /// There is no fork in a model.
    pub fn register(&self) {}
}
