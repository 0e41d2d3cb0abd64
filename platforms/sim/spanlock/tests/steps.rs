//! How many steps operations take, counted on the simulated machine: a step is an access to what threads share.

use prim::{Machine, Setup, run};
use spanlock_sim::range::list::{ListEx, ListRw};
use spanlock_sim::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock_sim::range::skip::{SkipEx, SkipRw};
use spanlock_sim::range::{RangeLock, RangeMutex};
use std::ops::Range;

/// The steps of a thread that is alone.
fn steps(workload: impl FnOnce() + Send + 'static) -> u64 {
    let machine = Machine::find("small-1x2x1").expect("it is built in");
    run(&Setup::new(machine), workload)
        .unwrap_or_else(|failure| panic!("{failure}"))
        .operations
}

/// Disjoint ranges, and none touches the next.
fn ranges(count: u64) -> impl Iterator<Item = Range<u64>> {
    (0..count).map(|at| 10 * at..10 * at + 5)
}

/// Sixteen times as many ranges in one call cost at most forty times as much: the levels of a skip list have their
/// logarithms. If each range were looked for from the beginning it would be some two hundred.
fn grows_linearly(what: &str, locks_many: fn(u64)) {
    let [few, many] = [1_000, 16_000].map(|count| steps(move || locks_many(count)));
    assert!(
        many < 40 * few,
        "{what}: 1,000 ranges take {few} steps, 16,000 take {many}"
    );
    assert!(few < 150 * 1_000, "{what}: 1,000 ranges take {few} steps");
}

fn writes_many<L: RawRangeLock + Default>(count: u64) {
    let lock = RangeLock::<L>::default();
    drop(lock.write_many(ranges(count)));
}

fn reads_many<L: RawRangeLock + Default>(count: u64) {
    let lock = RangeLock::<L>::default();
    drop(lock.read_many(ranges(count)));
}

fn locks_many<L: RawRangeMutex + Default>(count: u64) {
    let lock = RangeMutex::<L>::default();
    drop(lock.lock_many(ranges(count)));
}

/// After a reader of everything, a writer finds no place to begin in the levels.
fn writes_many_after_a_reader_of_everything(count: u64) {
    let lock = RangeLock::<SkipRw>::default();
    drop(lock.read(..));
    drop(lock.write_many(ranges(count)));
}

/// One range, held by another guard, lies before all: they are not the first.
fn writes_many_behind_a_range_held(count: u64) {
    let lock = RangeLock::<ListRw>::default();
    let _first = lock.read(0..1);
    drop(lock.write_many(ranges(count).skip(1)));
}

#[test]
fn many_ranges_take_steps_in_proportion() {
    grows_linearly("list, exclusive", writes_many::<ListRw>);
    grows_linearly("list, shared", reads_many::<ListRw>);
    grows_linearly("exclusive list", locks_many::<ListEx>);
    grows_linearly("list behind a range", writes_many_behind_a_range_held);
    grows_linearly("skip list, exclusive", writes_many::<SkipRw>);
    grows_linearly("skip list, shared", reads_many::<SkipRw>);
    grows_linearly("exclusive skip list", locks_many::<SkipEx>);
    grows_linearly(
        "skip list that was read",
        writes_many_after_a_reader_of_everything,
    );
}
