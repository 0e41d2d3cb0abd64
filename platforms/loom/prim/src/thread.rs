//! The threads of a model: the same functions as in `prim`.

mod table;

pub use self::{cpu as node, cpus as processors, yield_now as nap};
pub use hardware::simulated::{ForkHook, after_fork_in_child};
pub use hardware::thread::{ExitHook, Tenure, Uncancelled};
pub use loom::thread::JoinHandle;
pub use table::Table;

use crate::atomic::{AtomicUsize, Ordering};
use crate::with_execution;
use std::cell::RefCell;

/// The number of spins and yields that loom explores in one execution. After that it follows one fair schedule to the
/// end. Models with spins explore a few more.
pub(crate) const EXPLORED: usize = 6;

/// A thread's index and exit hooks.
struct HeldIndex {
    index: usize,
    hooks: Vec<ExitHook>,
}

loom::thread_local! {
    static HELD: RefCell<Option<HeldIndex>> = RefCell::new(None);
}

loom::lazy_static! {
    static ref HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
}

fn with_held<R>(f: impl FnOnce(&mut HeldIndex) -> R) -> R {
    HELD.with(|held| {
        let mut held = held.borrow_mut();
        f(held.get_or_insert_with(|| HeldIndex {
            index: take_index(),
            hooks: Vec::new(),
        }))
    })
}

/// This thread's index.
pub(crate) fn index() -> usize {
    with_held(|held| held.index)
}

fn take_index() -> usize {
    let index = with_execution(|execution| {
        execution.left.take().unwrap_or_else(|| {
            execution.threads += 1;
            execution.threads - 1
        })
    });
    HIGH_WATER.fetch_max(index + 1, Ordering::SeqCst);
    index
}

/// Lets another thread run. It counts as a spin, because a thread that yields in a loop waits for something.
#[track_caller]
pub fn yield_now() {
    count_spin();
    loom::thread::yield_now();
}

/// Counts one spin. Beyond the number that is explored, loom does not branch.
fn count_spin() {
    let spins = with_execution(|execution| {
        execution.spins += 1;
        execution.spins
    });
    if spins == crate::SETTING.get().explored {
        loom::skip_branch();
    }
}

/// Runs `f` in a new thread.
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

/// Ends a thread for the library: runs its exit hooks.
pub(crate) fn exit() {
    let held = HELD.with(|held| held.borrow_mut().take());
    if let Some(held) = held {
        for hook in held.hooks {
            hook(held.index);
        }
    }
}

/// Ends this thread for the library, though it still holds something, and gives its index to the next thread that asks
/// for one. What this thread releases from then on it releases late, as a destructor does after the exit hooks. If it
/// acquires anything, it is a new thread.
///
/// Nothing here orders the next thread after the exit. So this thread is to start it.
pub fn exit_early() {
    let index = index();
    exit();
    with_execution(|execution| execution.left = Some(index));
}

/// Calls `f` with this thread's index, and registers `on_exit` to run when the thread exits.
pub fn with_index<R>(on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    let index = with_held(|held| {
        held.hooks.push(on_exit);
        held.index
    });
    f(index, Tenure::Thread)
}

hardware::simulated_high_water!();

/// The number of threads that can run at a time: all threads of a model.
#[must_use]
pub fn cpus() -> usize {
    loom::MAX_THREADS
}

/// Each thread of a model has a processor.
#[must_use]
pub fn cpu() -> usize {
    index()
}

/// The id of the running thread, which is never zero.
#[must_use]
pub fn id() -> u32 {
    u32::try_from(index() + 1).expect("few threads")
}

/// The number of calls of [`pretend_fork`].
#[must_use]
pub fn forks() -> u32 {
    with_execution(|execution| execution.forks)
}

/// Pretends a fork: from now on the process is the child, with all threads.
pub fn pretend_fork() {
    yield_now();
    with_execution(|execution| execution.forks += 1);
}
