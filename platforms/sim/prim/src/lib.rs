//! The interface of the crate `prim` on a simulated machine.
//!
//! `spanlock-sim` compiles the library's source against this crate. [`run`] executes a workload with any number of
//! *virtual threads* on one host thread. Each virtual thread is a stackful coroutine with a clock of its own. Shared
//! memory operations take effect in the order of those clocks, and a [`Machine`] defines how many cycles each one
//! costs. The same [`Setup`] gives the same run, operation by operation.
//!
//! ```text
//!   virtual threads      t0          t1          t2          t3        coroutines, each with a clock
//!                         |           |           |           |
//!   scheduler          events in the order of virtual time; resumes one thread at a time
//!                         |           |           |           |
//!   store buffers      [ s s ]     [   ]       [ s ]       [   ]       one for each thread
//!                         |           |           |           |
//!   cache lines        owner, sharers, "busy until", queue of requests: one record for each line
//!                         |           |           |           |
//!   host memory        holds the value that was stored last
//! ```
//!
//! Outside a run every function works as in `prim`, except that nothing waits.
//!
//! | module | what it is |
//! |---|---|
//! | [`run`], [`Setup`], [`Failure`] | a run, and how it ends |
//! | [`Machine`] | sockets, cores and latencies |
//! | [`heap`] | an allocator that places memory the same way in each run |
//! | the others | as in `prim` |
//!
//! `docs/simulator.md` describes the model and what it cannot show.

pub mod atomic;
pub mod barrier;
pub mod clock;
pub mod cost;
pub mod edge;
pub mod futex;
pub mod heap;
mod local;
mod report;
mod run;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod timer;
pub mod track;
pub mod workload;
mod world;

pub use hardware::{array, cell, const_fn, contain, debug, initial, sized, wins};
pub use hardware::{simulated_intact as intact, simulated_order as order};
#[doc(hidden)]
pub use local::{Global, Local};
pub use machines::{Latencies, Machine, Placement};
pub use report::{Failure, Trace};
pub use run::{Asymmetry, Ended, Fuzz, Rmw, Setup, Stock, mark, run};

/// Never: a run in which no thread can go on ends with a [`Failure`] that says so.
pub const SELF_DEADLOCK_CHECKS: bool = false;

/// A number that identifies an object for as long as the object stays in its place.
///
/// It is not the object's address, which the host chooses. It depends on the run alone, so a hash of it gives the same
/// result each time the run is repeated.
#[must_use]
pub fn address_of<T>(what: &T) -> usize {
    world::address(std::ptr::from_ref(what).addr())
}

/// Chooses how many spare objects to keep: the number for real use, or in runs with [`Stock::Scarce`] the small number
/// of the model checker.
#[must_use]
pub fn stock(real: usize, model: usize) -> usize {
    match world::peek(|world| world.setup.fuzz.stock).unwrap_or_default() {
        Stock::Ample => real,
        Stock::Scarce => model,
    }
}

/// Declares a global, fresh in each run.
#[macro_export]
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::Global<$ty> = $crate::Global::new(|| $init);
    };
}

/// Declares a thread-local of virtual threads, fresh in each run.
#[macro_export]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::Local<$ty> = $crate::Local::new(|| $init);
    };
}
