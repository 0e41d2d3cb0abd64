//! Many ranges held at a time by one thread, as by a transaction that locks rows. What counts is the virtual time that
//! one more takes on a simulated machine, where many are held and where few are.

use prim::clock::Instant;
use prim::{Machine, Setup, run, workload};
use spanlock_sim::range::RangeLock;
use spanlock_sim::range::list::ListRw;
use spanlock_sim::range::raw::RawRangeLock;
use spanlock_sim::range::skip::SkipRw;
use spanlock_sim::range::slots::RawSlots;
use std::sync::Arc;

/// The place of the range that a thread asks for as its `turn`th of so many.
type Order = fn(turn: u64, of: u64) -> u64;

const ORDERS: [(&str, Order); 3] = [
    ("ascending", |turn, _| turn),
    ("descending", |turn, of| of - 1 - turn),
    ("permuted", |turn, of| turn * 48_271 % of),
];

/// The ranges that are acquired beside those held, to take the mean.
const MORE: u64 = 32;

/// How long one more range takes, in nanoseconds, while a thread holds so many that it acquired in that order: the
/// holder's own, and another thread's.
fn one_more<L: RawRangeLock + Send + Sync + 'static>(raw: L, held: u64, order: Order) -> [u64; 2] {
    let machine = Machine::find("small-1x2x1").expect("it is built in");
    let ended = run(&Setup::new(machine), move || {
        let lock = Arc::new(RangeLock::from_raw(raw));
        // Ranges begin at multiples of ten, and between them is room.
        let of = held.next_multiple_of(2) + 1;
        let all = (0..held).map(|turn| lock.write(10 * order(turn, of)..10 * order(turn, of) + 5));
        let all: Vec<_> = all.collect();
        let time = |lock: &RangeLock<L>| {
            let begin = Instant::now();
            for one in 0..MORE {
                let place = 10 * (one * of / MORE) + 6;
                drop(lock.write(place..place + 2));
            }
            begin.elapsed().as_nanos() as u64 / MORE
        };
        let own = time(&lock);
        let others = Arc::clone(&lock);
        let another = workload::crew(2, move |thread| (thread == 1).then(|| time(&others)), || ());
        drop(all);
        [own, another[1].expect("it has taken the time")]
    });
    ended.unwrap_or_else(|failure| panic!("{failure}")).value
}

/// With sixteen times as many ranges held, one more takes less than four times as long: its place is searched for, and
/// not walked to.
fn grows_slowly<L: RawRangeLock + Send + Sync + 'static>(make: impl Fn() -> L) {
    for (name, order) in ORDERS {
        let [few, many] = [128, 2048].map(|held| one_more(make(), held, order));
        for (who, few, many) in [("own", few[0], many[0]), ("another", few[1], many[1])] {
            assert!(
                many < 4 * few,
                "{name}, {who}: {many} ns beside 2048 ranges, {few} ns beside 128"
            );
        }
    }
}

#[test]
fn the_default_lock_searches() {
    grows_slowly(RawSlots::new);
}

#[test]
fn a_lock_that_has_moved_searches() {
    grows_slowly(|| RawSlots::builder().slots_at_once().build());
}

#[test]
fn a_lock_with_buckets_searches() {
    grows_slowly(|| RawSlots::builder().buckets_at_once(8).build());
}

#[test]
fn a_skip_list_searches() {
    grows_slowly(SkipRw::new);
}

/// The other tests can fail.
#[test]
#[should_panic(expected = "beside 2048 ranges")]
fn a_list_walks() {
    grows_slowly(ListRw::new);
}
