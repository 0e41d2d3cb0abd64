//! The interface of the crate `prim` on a simulated machine.
//!
//! The library's source is compiled against this crate by `spanlock-sim`. [`run`] executes a workload with any number
//! of *virtual threads* on one host thread: each is a stackful coroutine with a clock of its own, and all that threads
//! do to each other happens in the order of those clocks. A [`Machine`] says what each access to memory costs. The same
//! [`Setup`] gives the same run, operation by operation.
//!
//! Outside a run everything here is what it is in `prim`, as far as it does not wait.
//!
//! | module | what it is |
//! |---|---|
//! | [`run`], [`Setup`], [`Failure`] | a run, and how it ends |
//! | [`Machine`] | sockets, cores and latencies |
//! | the others | as in `prim` |
//!
//! `docs/simulator.md` tells the model and what it cannot show.

pub mod atomic;
pub mod barrier;
pub mod cell;
pub mod clock;
pub mod cost;
pub mod edge;
pub mod futex;
pub mod heap;
mod local;
mod machine;
mod report;
mod run;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod track;
mod world;

#[doc(hidden)]
pub use local::{Global, Local};
pub use machine::{Latencies, Machine, Placement};
pub use report::{Failure, Trace};
pub use run::{Asymmetry, Ended, Fuzz, Rmw, Setup, Stock, mark, run};

/// Chooses between the size for real use and a small one for a model checker.
#[must_use]
pub const fn sized(real: usize, _model: usize) -> usize {
    real
}

/// A number that nothing else has while this lives where it does. Not its address: that is the host's choice. This one
/// follows from the run, so that what is placed by it, as by a hash, is so in each.
#[must_use]
pub fn address_of<T>(what: &T) -> usize {
    world::address(std::ptr::from_ref(what).addr())
}

/// Chooses how many of something to keep in stock: the number for real use, or in runs with [`Stock::Scarce`] the
/// model checker's.
#[must_use]
pub fn stock(real: usize, model: usize) -> usize {
    match world::peek(|world| world.setup.fuzz.stock).unwrap_or_default() {
        Stock::Ample => real,
        Stock::Scarce => model,
    }
}

/// How often in a row a lot is won at a chance of one in `2^digits`, decided by a random number.
#[must_use]
pub const fn wins(random: u64, digits: u32) -> u32 {
    random.trailing_zeros() / digits
}

/// Declares one function that is `const` here and plain where atomics cannot be constructed in constants.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        $(#[$meta])* $vis const fn $($rest)*
    };
}

/// An array of that many times the same new thing.
#[macro_export]
macro_rules! array {
    ($new:expr; $count:expr) => {
        [const { $new }; $count]
    };
}

/// The initial value that a trait demands as a constant.
#[macro_export]
macro_rules! initial {
    ($new:expr) => {
        $new
    };
}

/// Declares a global, fresh in each run.
#[macro_export]
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::Global<$ty> = $crate::Global::new(|| $init);
    };
}

/// Declares a local of virtual threads, fresh in each run.
#[macro_export]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $crate::Local<$ty> = $crate::Local::new(|| $init);
    };
}
