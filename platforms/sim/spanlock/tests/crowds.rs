//! Loads meant to hurt a lock with buckets: narrow ranges that crowd in few of them. What counts is how many ranges all
//! threads of a simulated machine acquire in the same virtual time, with one lock and with another.

use prim::clock::{Duration, Instant};
use prim::{Machine, Setup, run, workload};
use spanlock_sim::range::RangeLock;
use spanlock_sim::range::list::ListRw;
use spanlock_sim::range::raw::RawRangeLock;
use spanlock_sim::range::slots::RawSlots;

/// The bytes of a line: each range is one.
const LINE: u64 = 64;

/// The number of the line for a thread's turn.
type Load = fn(thread: u64, turn: u64) -> u64;

/// Each thread writes lines of its own in turn. All are in one bucket, if that is large.
fn private(thread: u64, turn: u64) -> u64 {
    3 * thread + turn % 3
}

/// Each thread writes one of some lines, by chance.
fn common(thread: u64, turn: u64) -> u64 {
    let hash = (thread << 32 | turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 57
}

/// How many lines the threads of a machine write in a millisecond, after as long for warming up.
fn writes<L: RawRangeLock + Send + Sync + 'static>(raw: L, load: Load) -> u64 {
    let machine = Machine::find("xeon-2x10x2").expect("it is built in");
    let threads = machine.contexts();
    let ended = run(&Setup::new(machine), move || {
        let (lock, begin) = (RangeLock::from_raw(raw), Instant::now());
        let warm = Duration::from_millis(1);
        let write = |thread| {
            let (mut turn, mut count) = (0, 0);
            while begin.elapsed() < 2 * warm {
                let start = LINE * load(thread as u64, turn);
                drop(lock.write(start..start + LINE));
                turn += 1;
                count += u64::from(begin.elapsed() > warm);
            }
            count
        };
        workload::crew(threads, write, || ()).iter().sum::<u64>()
    });
    ended.unwrap_or_else(|failure| panic!("{failure}")).value
}

/// A bucket of 256 lines is given up where all threads are in it.
#[test]
fn buckets_that_came_for_longer_ranges_cost_little() {
    let buckets = writes(
        RawSlots::builder().buckets_at_once(128 * LINE).build(),
        private,
    );
    let none = writes(RawSlots::builder().slots_at_once().build(), private);
    assert!(
        2 * buckets > none,
        "{buckets} writes, {none} without buckets"
    );
}

/// A writer that was blocked does not take words of a line at which others wait already. If it did, all would wait for
/// that line before long.
#[test]
fn writers_that_conflict_in_small_buckets_are_faster_than_in_a_list() {
    let buckets = writes(RawSlots::builder().buckets_at_once(LINE).build(), common);
    let list = writes(ListRw::new(), common);
    assert!(buckets > 8 * list, "{buckets} writes, {list} in a list");
}
