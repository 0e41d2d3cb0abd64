//! Virtual threads: the same functions as in `prim`.

mod table;

pub use self::{cpus as processors, yield_now as nap};
pub use hardware::simulated::{ForkHook, after_fork_in_child};
pub use hardware::thread::{ExitHook, Tenure};
pub use table::Table;

use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::clock::{Duration, Instant};
use crate::futex::{self, Woken};
use crate::world;
use std::cell::RefCell;
use std::rc::Rc;

crate::global! {
    static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
}

/// The handle by which a thread is joined.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: usize,
    result: Rc<RefCell<Option<T>>>,
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the thread.
    ///
    /// # Errors
    /// Never: a panic ends the run.
    ///
    /// # Panics
    /// Never.
    pub fn join(self) -> std::thread::Result<T> {
        world::join(self.thread);
        let result = self.result.borrow_mut().take();
        Ok(result.expect("a thread that has ended leaves its result"))
    }
}

/// Runs `f` in a new thread.
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let result = Rc::new(RefCell::new(None));
    let returned = Rc::clone(&result);
    let thread = world::spawn(Box::new(move || {
        let value = f();
        *returned.borrow_mut() = Some(value);
    }));
    JoinHandle { thread, result }
}

/// Runs `work` in `threads` threads, each with its number, and `meanwhile` in this thread. Returns their results when
/// all have ended.
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
            // SAFETY: the closure's borrows outlive it, because this function joins the thread before it returns. If
            // this thread unwinds instead, the run is over, and no other thread is ever resumed.
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

/// A barrier that does nothing: the threads of a crew begin at the same virtual time anyway.
#[derive(Debug)]
pub struct Start;

impl Start {
    /// A barrier for any number of threads.
    #[must_use]
    pub fn new(_threads: usize) -> Self {
        Self
    }

    /// Returns at once.
    pub fn wait(&self) {}
}

/// Sleeps for so much virtual time, and returns it.
pub fn sleep(time: Duration) -> Duration {
    /// A word on cache lines of its own.
    #[repr(align(128))]
    struct Nobody(AtomicU32);
    let nobody = Nobody(AtomicU32::new(0));
    let deadline = Some(Instant::now() + time);
    while futex::wait(&nobody.0, 0, deadline) != Woken::TimedOut {}
    time
}

/// Lets other threads run.
pub fn yield_now() {
    world::enter_system();
}

/// Ends a thread for the library: runs its exit hooks and frees its index.
pub(crate) fn exit() {
    let (index, hooks) = world::with(|world| {
        let thread = world.current_mut();
        (thread.index, std::mem::take(&mut thread.hooks))
    });
    if let Some(index) = index {
        for hook in hooks {
            hook(index);
        }
        // All stores of this thread become visible before another thread can get the index.
        world::drain();
        world::with(|world| world.indices[index] = false);
    }
}

/// Calls `f` with this thread's index, and registers `on_exit` to run when the thread exits.
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

hardware::simulated_high_water!();

/// The number of hardware threads of the machine; one outside a run.
#[must_use]
pub fn cpus() -> usize {
    world::peek(|world| world.setup.machine.contexts()).unwrap_or(1)
}

/// The number of the hardware thread that runs this thread.
#[must_use]
pub fn cpu() -> usize {
    world::peek(|world| world.current().context()).unwrap_or(0)
}

/// The number of the socket that runs this thread.
#[must_use]
pub fn node() -> usize {
    world::peek(|world| world.current().core() / world.setup.machine.cores).unwrap_or(0)
}

/// The id of the running thread, which is never zero.
#[must_use]
pub fn id() -> u32 {
    let number = world::with(|world| world.running);
    u32::try_from(number + 1).expect("few threads")
}

/// Zero: there is no `fork` in a run.
#[must_use]
pub fn forks() -> u32 {
    0
}
