//! In debug builds a thread that asks for what it holds panics: at the line that asks, with the line that locked.
//!
//! One test, since the panic hook is the whole process's.
#![cfg(debug_assertions)]

mod common;

use spanlock::range::list::{ListEx, ListRw};
use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::skip::{SkipEx, SkipRw};
use spanlock::range::{Limited, RangeLock, RangeLocked, RangeMutex};
use spanlock_testkit::exact::Exact;
use std::cell::Cell;
use std::panic;

#[global_allocator]
static HEAP: Exact = Exact;

thread_local! {
    static PANICKED_AT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Runs what deadlocks, and checks where it says that it does.
macro_rules! deadlocks {
    ($held_at:expr, $held:expr, $asks:expr) => {{
        let message = common::panic_message(|| drop($asks));
        assert_eq!(PANICKED_AT.take(), Some(line!()), "{message}");
        let held = format!("{}, locked at {}:{}:", $held, file!(), $held_at);
        assert!(message.starts_with("deadlock: "), "{message}");
        assert!(message.contains(&held), "{message} does not say: {held}");
    }};
}

fn shared_locks<L: RawRangeLock + Default>() {
    let lock = RangeLock::<L>::default();
    // Held by the fast path, and then not.
    for _ in 0..2 {
        let (first, line) = (lock.write(0..10), line!());
        deadlocks!(line, "0..=9 exclusive", lock.write(5..6));
        deadlocks!(line, "0..=9 exclusive", lock.read(5..6));
        deadlocks!(line, "0..=9 exclusive", lock.read_many([3..4, 50..51]));
        let both = [3..4, 50..51];
        deadlocks!(line, "0..=9 exclusive", lock.write_many(both));
        let (second, other) = (lock.read(100..110), line!());
        deadlocks!(other, "100..=109 shared", lock.write(105..200));
        let both = [60..61, 105..200];
        deadlocks!(other, "100..=109 shared", lock.write_many(both));
        let shared = first.downgrade();
        deadlocks!(line, "0..=9 shared", lock.write(5..6));
        drop((shared, second));
    }
    let (_many, line) = (lock.write_many([300..310, 320..330, 340..350]), line!());
    deadlocks!(line, "320..=329 exclusive", lock.write(325..326));
    deadlocks!(line, "340..=349 exclusive", lock.read(345..346));
}

fn exclusive_locks<L: RawRangeMutex + Default>() {
    let lock = RangeMutex::<L>::default();
    let (_first, line) = (lock.lock(0..10), line!());
    deadlocks!(line, "0..=9 exclusive", lock.lock(5..6));
    deadlocks!(line, "0..=9 exclusive", lock.lock_many([5..6, 20..21]));
}

fn slices() {
    let slice: RangeLocked<u8> = (0..100).collect();
    let (_first, line) = (slice.write(10..20), line!());
    deadlocks!(line, "10..=19 exclusive", slice.read(..));
    deadlocks!(line, "10..=19 exclusive", slice.write(19..));
}

fn limited_locks() {
    let lock = RangeLock::from_raw(Limited::new(ListRw::new(), 1));
    let (_first, line) = (lock.write(0..10), line!());
    deadlocks!(line, "0..=9 exclusive", lock.write(5..6));
    deadlocks!(line, "0..=9 exclusive", lock.read_many([5..6, 20..21]));
}

fn segments<L: RawRangeLock>(make: fn() -> L) {
    let lock = RangeLock::from_raw(make());
    let (first, line) = (lock.write(0..8), line!());
    deadlocks!(line, "0..=7 exclusive", lock.write(5..6));
    deadlocks!(line, "0..=7 exclusive", lock.read_many([5..6, 20..21]));
    let shared = first.downgrade();
    deadlocks!(line, "0..=7 shared", lock.write(5..6));
    drop(shared);
    let (_again, line) = (lock.read(8..16), line!());
    deadlocks!(line, "8..=15 shared", lock.write(0..9));
}

#[test]
fn asking_for_what_one_holds_panics_where_one_asks() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().filter(|place| place.file() == file!());
        PANICKED_AT.set(place.map(panic::Location::line));
        if !common::expects_panic() {
            before(info);
        }
    }));
    common::watched(&ListRw::new(), || {
        shared_locks::<ListRw>();
        shared_locks::<SkipRw>();
        exclusive_locks::<ListEx>();
        exclusive_locks::<SkipEx>();
        slices();
        limited_locks();
        segments(common::srl_array_of_eights);
        segments(common::srl_tree_of_eights);
    });
}
