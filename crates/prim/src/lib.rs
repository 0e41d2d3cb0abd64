//! The platform layer of Spanlock: atomics, cells, fences, threads, waiting and time.
//!
//! ```text
//!           the source of `spanlock`, written once, in terms of `prim`
//!                                  |
//!            +---------------------+----------------------+
//!            v                     v                      v
//!          prim                prim-loom              prim-sim
//!     (this crate: the      (the loom model       (a simulated machine
//!        hardware)             checker)             of many cores)
//! ```
//!
//! The three crates offer the same names, and the library's source is compiled against each of them. So the code of a
//! lock takes atomics, threads and time from `prim` and not from `std`, and it contains no platform names. A
//! test of `spanlock-loom` checks this.
//!
//! There is no algorithm here. The package, `spanlock-prim`, is a part of Spanlock and makes no promise of stability.
//!
//! | module | what it is |
//! |---|---|
//! | [`atomic`] | atomic types and orderings |
//! | [`barrier`] | the asymmetric barrier: a store-load fence of which one side bears the cost |
//! | [`cell`] | an `UnsafeCell` whose accesses a model checker can see |
//! | [`thread`] | a small dense index per thread, exit hooks, thread ids, per-thread tables |
//! | [`futex`] | sleep until a word changes, wake the threads that sleep |
//! | [`spin`] | bounded spinning, with the limits named |
//! | [`clock`] | monotonic time |
//! | [`cost`] | the cost of plain work and memory, for a simulated machine; nothing here |
//! | [`debug`] | whether debug builds run extra checks |
//! | [`edge`] | named protocol edges, which the model checker and the simulator can weaken |
//! | [`sync`] | a plain mutex for slow paths |
//! | [`timer`] | calls at points in time |
//! | [`track`] | a marker inside an allocation, for a leak check |

pub mod atomic;
pub mod barrier;
pub mod cell;
pub mod clock;
pub mod cost;
pub mod edge;
#[cfg(target_os = "linux")]
mod errno;
mod foreign;
pub mod futex;
#[doc(hidden)]
pub mod simulated;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod timer;
pub mod track;
#[doc(hidden)]
pub mod workload;

pub use foreign::contain;

/// Whether reader-writer locks keep account of what each thread holds, to panic when a thread would wait for itself: in
/// debug builds. The account decides nothing else, so debug builds run the same algorithms as release builds.
pub const SELF_DEADLOCK_CHECKS: bool = cfg!(debug_assertions);

/// Diagnostics of debug builds.
pub mod debug {
    /// Whether checks that cost time are on. They only report errors: the algorithm is the same without them.
    pub const CHECKS: bool = cfg!(debug_assertions);
}

/// Chooses between the size for real use and a small one, with which a model checker reaches the rare paths. Here: the
/// size for real use. The interpreter Miri is slow and gets the small one, too.
#[must_use]
pub const fn sized(real: usize, model: usize) -> usize {
    if cfg!(miri) { model } else { real }
}

/// A number that identifies an object for as long as the object stays in its place: here, its address.
///
/// On a simulated machine the number depends on the run alone and not on where the host puts memory. So a hash of it
/// gives the same result each time the run is repeated.
#[inline]
#[must_use]
pub fn address_of<T>(what: &T) -> usize {
    core::ptr::from_ref(what).addr()
}

/// Chooses, like [`sized`], how many spare objects to keep. The caller asks each time, because a simulated run may make
/// spare objects scarce.
#[must_use]
pub const fn stock(real: usize, model: usize) -> usize {
    sized(real, model)
}

/// The number of successive draws that succeed, where each succeeds with probability `2^-digits`. The draws are the
/// digits of the random number. On a model checker the model decides instead.
#[inline]
#[must_use]
pub const fn wins(random: u64, digits: u32) -> u32 {
    random.trailing_zeros() / digits
}

/// Declares one function that is `const` here. On platforms whose atomics cannot be made in a constant it is a plain
/// function.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        $(#[$meta])* $vis const fn $($rest)*
    };
}

/// An array whose elements are all made by the same expression.
#[macro_export]
macro_rules! array {
    ($new:expr; $count:expr) => {
        [const { $new }; $count]
    };
}

/// The initial value of a constant that a trait requires.
#[macro_export]
macro_rules! initial {
    ($new:expr) => {
        $new
    };
}

/// Declares a global: a plain `static` here; on a model checker, one for each execution.
#[macro_export]
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $ty = $init;
    };
}

/// Declares a thread-local without a destructor. A thread can read it at any time of its life.
#[macro_export]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        ::std::thread_local! { $(#[$meta])* static $name: $ty = const { $init }; }
    };
}
