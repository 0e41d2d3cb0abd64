//! Threads of a model.

mod table;

pub use loom::thread::{JoinHandle, spawn, yield_now};
pub use table::Table;

use crate::with_execution;
use std::cell::Cell;

/// Would run when a thread gives its index back; here it never does.
pub type ExitHook = fn(usize);

/// How long an index belongs to the caller of [`with_index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenure {
    /// Until the thread exits.
    Thread,
    /// Until the closure returns; never here.
    Call,
}

loom::thread_local! {
    static INDEX: Cell<Option<usize>> = Cell::new(None);
}

fn index() -> usize {
    INDEX.with(|index| {
        index.get().unwrap_or_else(|| {
            let taken = with_execution(|execution| {
                execution.threads += 1;
                execution.threads - 1
            });
            index.set(Some(taken));
            taken
        })
    })
}

/// Calls `f` with this thread's index.
pub fn with_index<R>(_on_exit: ExitHook, f: impl FnOnce(usize, Tenure) -> R) -> R {
    f(index(), Tenure::Thread)
}

/// All indices in use are below this.
#[must_use]
pub fn high_water() -> usize {
    with_execution(|execution| execution.threads)
}

/// The running thread's id: never zero.
#[must_use]
pub fn id() -> u32 {
    u32::try_from(index() + 1).expect("few threads")
}

/// There is no fork in a model.
pub fn after_fork_in_child(_hook: extern "C" fn()) {}
