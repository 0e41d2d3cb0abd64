//! Two parties lock an account and the journal in two orders, and wait for each other. The library finds that, reports
//! it, and the program ends. `SPANLOCK_DEADLOCKS=report` has the same effect where the locks say nothing.
//!
//! `cargo run --example deadlock`

use spanlock::deadlock::{self, Deadlocks, Report};
use spanlock::range::{Owner, RangeLock};
use std::process;
use std::sync::Barrier;
use std::thread;

const LOOK: Deadlocks = Deadlocks::report();

/// Many threads use it, so it has slots from the beginning.
static ACCOUNTS: RangeLock =
    RangeLock::from_raw(RangeLock::builder().slots_at_once().deadlocks(LOOK).build());
static JOURNAL: RangeLock = RangeLock::from_raw(RangeLock::builder().deadlocks(LOOK).build());
static BOTH_HOLD_ONE: Barrier = Barrier::new(2);

/// A thread changes one account, and then writes to the journal.
fn pays() {
    let _account = ACCOUNTS.write(17..=17);
    BOTH_HOLD_ONE.wait();
    let _entry = JOURNAL.write(0..4096);
}

/// A transaction reads the journal, and then all accounts.
fn sums() {
    let me = Owner::new();
    let entries = JOURNAL.by(&me).read(0..512);
    BOTH_HOLD_ONE.wait();
    let accounts = ACCOUNTS.by(&me).read(..);
    drop((entries, accounts));
}

fn told(report: &Report) {
    print!("{report}\n{}", deadlock::dump_all());
    process::exit(0);
}

fn main() {
    deadlock::on_report(told);
    thread::scope(|scope| {
        scope.spawn(pays);
        scope.spawn(sums);
    });
}
