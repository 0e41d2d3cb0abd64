//! A test suite for range locks: what each must do, and what breaks published ones.
//!
//! A lock takes part by implementing [`RawRangeMutex`], and with readers [`RawRangeLock`]. The suite is the `main` of
//! an integration test without a harness:
//!
//! ```no_run
//! use spanlock::range::list::{ListEx, ListRw};
//! use spanlock_conformance::{Declared, Need, run};
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     run(|suite| {
//!         let after_a_while = [Need::Overtaking, Need::GivingWay, Need::Queueing];
//!         suite.owned(Declared::new("with-readers", &after_a_while), ListRw::new);
//!         let exclusive = [Need::Readers, Need::Overtaking, Need::GivingWay, Need::Queueing];
//!         suite.exclusive(Declared::new("exclusive", &exclusive), ListEx::new);
//!     })
//! }
//! ```
//!
//! Each pair of a lock and a scenario is a test, named `LOCK::SUBJECT::SCENARIO`: `cargo test` filters, lists and
//! counts them as usual. A scenario that needs what the lock [lacks](Need) is reported as ignored, with the reason. So
//! a lock that says that it lacks nothing has nothing ignored.
//!
//! A scenario gets a fresh lock and a fresh thread and leaves nothing held, which is checked after each: the full range
//! is lockable at once and the listing is empty. None depends on timing. A hang ends the process after a minute, with
//! what the lock lists.
//!
//! | subject | what is tested |
//! |---|---|
//! | `exclusive`, `shared` | who excludes whom: neighbours, points, empty ranges, the first and the last position |
//! | `together` | that holders who may coexist do |
//! | `sequential` | random tries and timed requests against a sequential model |
//! | `waiting`, `cancelled` | timed requests, those who wait, and those who no longer do |
//! | `giving_way` | overtaking, and that nobody waits for ever where a lock is fair |
//! | `many` | several ranges at once, without deadlock |
//! | `left_behind` | panics, leaked guards, threads that exit |
//! | `traps` | what broke published locks |
//! | `owned` | what is held by an owner and not by a thread |
//!
//! [`RawRangeMutex`]: spanlock::range::raw::RawRangeMutex
//! [`RawRangeLock`]: spanlock::range::raw::RawRangeLock

#[macro_use]
mod suite;

mod cancelled;
mod erased;
mod exclusive;
mod giving_way;
mod left_behind;
mod many;
mod owned;
mod sequential;
mod shared;
#[doc(hidden)] // what the library's own tests share with the scenarios
pub mod support;
mod together;
mod traps;
mod waiting;

/// The example in the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use self::suite::{Declared, Need, Suite};

use libtest_mimic::Arguments;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

/// How many scenarios run at once, unless the caller says so: mostly they wait.
const AT_ONCE: usize = 8;

/// Runs the suite over the locks that `register` adds to it, with the process's arguments: those of any test.
///
/// It sets the process's panic hook, so that panics which a scenario expects print nothing.
#[must_use = "the exit code tells whether the locks have passed"]
pub fn run(register: impl FnOnce(&mut Suite)) -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let on_purpose = info.payload().downcast_ref() == Some(&"on purpose");
        if !on_purpose && !support::expects_panic() {
            usual(info);
        }
    }));
    let mut suite = Suite::default();
    register(&mut suite);
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    libtest_mimic::run(&arguments, suite.into_trials()).exit_code()
}
