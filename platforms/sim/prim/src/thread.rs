//! Virtual threads: the same functions as in `prim`.

mod table;

pub use self::{cpus as processors, yield_now as nap};
pub use hardware::simulated::{ForkHook, after_fork_in_child};
pub use hardware::thread::{ExitHook, Tenure, Uncancelled};
pub use table::Table;

use crate::atomic::{AtomicUsize, Ordering};
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
