//! What Spanlock asks of the platform: atomics, cells, fences, threads, waiting and time.
//!
//! This is the *hardware* build. The crates `prim-loom` and `prim-sim` offer the same names on the loom model checker
//! and on a simulated machine, and the library's source is compiled against each. So a lock never says `std::sync`, never says `cfg`, and never
//! names a platform: it says `prim`.
//!
//! There is no algorithm here. The package, `spanlock-prim`, is a part of Spanlock and outside any promise of stability.
//!
//! | module | what it is |
//! |---|---|
//! | [`atomic`] | atomic types and orderings |
//! | [`barrier`] | a store-load fence whose cost one side bears |
//! | [`cell`] | an `UnsafeCell` whose accesses a model checker can see |
//! | [`thread`] | a small dense index per thread, exit hooks, thread ids, per-thread tables |
//! | [`futex`] | wait for a word to change, wake those who wait |
//! | [`spin`] | bounded polite spinning, with the limits named |
//! | [`clock`] | monotonic time |
//! | [`cost`] | what a simulated machine is told about plain work and memory |
//! | [`sync`] | a plain mutex for slow paths |
//! | [`track`] | marks an allocation for a leak check |

pub mod atomic;
pub mod barrier;
pub mod cell;
pub mod clock;
pub mod cost;
pub mod edge;
#[cfg(target_os = "linux")]
mod errno;
pub mod futex;
pub mod spin;
pub mod sync;
pub mod thread;
pub mod track;

/// Chooses between the size for real use and a small one that lets a model checker reach the rare paths.
#[must_use]
pub const fn sized(real: usize, _model: usize) -> usize {
    real
}

/// A number that nothing else has while this lives where it does: its address. On a simulated machine it follows from the
/// run and not from the host, so that what is placed by it, as by a hash, is so in each.
#[inline]
#[must_use]
pub fn address_of<T>(what: &T) -> usize {
    core::ptr::from_ref(what).addr()
}

/// Chooses like [`sized`] how many of something to keep in stock. Asked each time: a simulated run may be one in which
/// everything is scarce.
#[must_use]
pub const fn stock(real: usize, _model: usize) -> usize {
    real
}

/// How often in a row a lot is won at a chance of one in `2^digits`, decided by a random number. A model checker asks
/// the model instead.
#[inline]
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

/// Declares a global: a plain `static` here, one per execution in a model checker.
#[macro_export]
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        $(#[$meta])* static $name: $ty = $init;
    };
}

/// Declares a thread-local that has no destructor and so can be read at any time of a thread's life.
#[macro_export]
macro_rules! local {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr;) => {
        ::std::thread_local! { $(#[$meta])* static $name: $ty = const { $init }; }
    };
}
