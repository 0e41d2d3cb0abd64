//! What every range lock promises, tested with each: the library's in several configurations, and the baselines.
//!
//! A scenario gets a fresh lock and a fresh thread and leaves nothing held, which is checked after each: the full range
//! is lockable at once and the listing is empty. None depends on timing; a hang is turned into a failure. What a lock
//! lacks is declared in `locks.rs`; scenarios that need it are reported as not applicable, by name, with the reason.
//!
//! `docs/conformance.md` tells how to run it, and which trap has which test.

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod suite;

mod baselines;
mod cancelled;
mod document;
mod erased;
mod exclusive;
mod giving_way;
mod left_behind;
mod locks;
mod many;
mod sequential;
mod shared;
mod together;
mod traps;
mod waiting;

use libtest_mimic::Arguments;
use spanlock_testkit::exact::Exact;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

#[global_allocator]
static HEAP: Exact = Exact;

/// How many scenarios run at once, unless the caller says so: mostly they wait.
const AT_ONCE: usize = 8;

fn main() -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let on_purpose = info.payload().downcast_ref() == Some(&"on purpose");
        if !on_purpose && !common::expects_panic() {
            usual(info);
        }
    }));
    let mut suite = suite::Suite::default();
    locks::register(&mut suite);
    suite.trials.extend(document::trials(suite.locks));
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    libtest_mimic::run(&arguments, suite.trials).exit_code()
}
