//! The conformance suite over the library's locks in several configurations, and over the baselines.
//!
//! What a lock lacks is declared in `locks.rs`. `docs/conformance.md` tells how to run it, and which trap has which
//! test.

#[path = "../common/mod.rs"]
mod common;

mod baselines;
mod by_owners;
mod document;
mod locks;

use spanlock_testkit::exact::Exact;
use std::process::ExitCode;

#[global_allocator]
static HEAP: Exact = Exact;

fn main() -> ExitCode {
    spanlock_conformance::run(|suite| {
        locks::register(suite);
        document::register(suite);
    })
}
