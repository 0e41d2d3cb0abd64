//! Virtual threads.

mod table;

pub use table::Table;

use crate::atomic::{AtomicUsize, Ordering};
use crate::world;
use std::cell::RefCell;
use std::rc::Rc;

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

crate::global! {
    static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
}

/// A thread to be joined.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: usize,
    result: Rc<RefCell<Option<T>>>,
}

impl<T> JoinHandle<T> {
    /// Waits for the thread's end.
    ///
    /// # Errors
    /// None: a panic ends the run.
    ///
    /// # Panics
    /// Never.
    pub fn join(self) -> std::thread::Result<T> {
        world::join(self.thread);
        let result = self.result.borrow_mut().take();
        Ok(result.expect("a thread that has ended leaves its result"))
    }
}

/// Runs `f` in a thread of its own.
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let result = Rc::new(RefCell::new(None));
    let returned = Rc::clone(&result);
    let thread = world::spawn(move || {
        let value = f();
        *returned.borrow_mut() = Some(value);
    });
    JoinHandle { thread, result }
}

/// Runs `work` in so many threads, each with its number, and `meanwhile` in this one. What they return, when all have
/// ended.
pub fn crew<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
    meanwhile: impl FnOnce(),
) -> Vec<T> {
    let results: Vec<_> = (0..threads).map(|_| RefCell::new(None)).collect();
    let spawned: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(number, result)| {
            let work = &work;
            let body = move || *result.borrow_mut() = Some(work(number));
            let body: Box<dyn FnOnce() + '_> = Box::new(body);
            // SAFETY: what it borrows outlives it. This function does not return before the thread has ended; and if
            // this thread unwinds, the run is over and no other is ever resumed.
            let body: Box<dyn FnOnce()> = unsafe { std::mem::transmute(body) };
            world::spawn(body)
        })
        .collect();
    meanwhile();
    spawned.into_iter().for_each(world::join);
    let results = results.into_iter().map(RefCell::into_inner);
    results
        .map(|result| result.expect("a thread that has ended leaves its result"))
        .collect()
}

/// Lets others run.
pub fn yield_now() {
    world::enter_system();
}

/// What a thread's end does to the library.
pub(crate) fn exit() {
    let (index, hooks) = world::with(|world| {
        let thread = world.current_mut();
        (thread.index, std::mem::take(&mut thread.hooks))
    });
    if let Some(index) = index {
        for hook in hooks {
            hook(index);
        }
        // Who gets the index next comes after all that was done with it.
        world::drain();
        world::with(|world| world.indices[index] = false);
    }
}

/// Calls `f` with this thread's index; `on_exit` will run when the thread exits.
pub fn with_index<R>(on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    let (index, is_new) = world::with(|world| {
        world.current_mut().hooks.push(on_exit);
        match world.current().index {
            Some(index) => (index, false),
            None => (world.take_index(), true),
        }
    });
    if is_new {
        HIGH_WATER.fetch_max(index + 1, Ordering::SeqCst);
    }
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

/// How many threads the machine runs at a time; one outside a run.
#[must_use]
pub fn cpus() -> usize {
    world::peek(|world| world.setup.machine.contexts()).unwrap_or(1)
}

/// As [`cpus`]: nobody is bound to a part of the machine.
#[must_use]
pub fn processors() -> usize {
    cpus()
}

/// The hardware thread that runs the thread.
#[must_use]
pub fn cpu() -> usize {
    world::peek(|world| world.current().context()).unwrap_or(0)
}

/// The socket of its core.
#[must_use]
pub fn node() -> usize {
    world::peek(|world| world.current().core() / world.setup.machine.cores).unwrap_or(0)
}

/// The running thread's id: never zero.
#[must_use]
pub fn id() -> u32 {
    let number = world::with(|world| world.running);
    u32::try_from(number + 1).expect("few threads")
}

/// There is no fork in a run.
pub fn after_fork_in_child(_hook: extern "C" fn()) {}

/// None.
#[must_use]
pub fn forks() -> u32 {
    0
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

    /// There is no fork in a run.
    pub fn register(&self) {}
}
