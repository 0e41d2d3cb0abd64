//! What tests of locks share.
//!
//! | module | content |
//! |---|---|
//! | `documents` | the examples of the documents, as doctests |
//! | [`edges`] | the names of protocol edges, and where comments cite them |
//! | [`exact`] | an allocator that aligns no better than it is asked to |
//! | [`exclusion`] | the oracle: panics when holders coexist that exclude each other |
//! | `fork` | runs a part of a test in a forked child |
//! | [`history`] | the oracle: whether the operations of all threads are linearisable |
//! | [`mutation`] | weakens one named edge at a time and expects a model to fail |
//! | `stack` | how much stack a part of a test takes |
//! | [`watchdog`] | ends a process whose work gets nowhere |

#[cfg(doctest)]
mod documents;
pub mod edges;
pub mod exact;
pub mod exclusion;
#[cfg(target_os = "linux")]
pub mod fork;
pub mod history;
pub mod mutation;
#[cfg(target_os = "linux")]
pub mod stack;
pub mod watchdog;

use std::sync::Mutex;
use std::thread;

/// Checks that `run` yields the same twice, whatever was allocated between.
///
/// # Panics
/// When it does not.
pub fn assert_repeats<T: PartialEq + std::fmt::Debug>(what: &str, run: impl Fn() -> T) {
    let first = run();
    let disturbance: Vec<_> = (1..50).map(|size| vec![0_u8; size * 16]).collect();
    assert_eq!(first, run(), "{what}");
    drop(disturbance);
}

/// Does something with each, on all processors.
///
/// # Panics
/// When `f` does.
pub fn on_all_processors<T: Send>(all: impl Iterator<Item = T> + Send, f: impl Fn(T) + Sync) {
    let all = Mutex::new(all);
    let next = || all.lock().expect("no panic while held").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(one) = next() {
                    f(one);
                }
            });
        }
    });
}

/// Whether the tests do all that they can, as `SPANLOCK_TESTS=all` asks them to, and not only what fits into minutes.
/// `platforms/loom/prim` reads the variable, too.
///
/// # Panics
/// When the variable has another value.
#[must_use]
pub fn do_all() -> bool {
    match std::env::var_os("SPANLOCK_TESTS") {
        None => false,
        Some(value) if value == "all" => true,
        Some(value) => panic!("SPANLOCK_TESTS is {value:?}: expected `all`, or no such variable"),
    }
}

/// The number in an environment variable, or `default`.
///
/// # Panics
/// When it is not a number.
#[must_use]
pub fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        let number = text.parse();
        number.unwrap_or_else(|_| panic!("{variable} is {text:?}: expected a whole number"))
    })
}
