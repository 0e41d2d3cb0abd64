//! When a slot lock moves from its list to slots.

use spanlock::range::RangeLock;
use spanlock::range::slots::RawSlots;
use spanlock_testkit::exact::Exact;
use spanlock_testkit::watchdog::{self, HANG};
use std::sync::Arc;
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

fn has_moved(lock: &RangeLock) -> bool {
    let described = format!("{:?}", lock.raw());
    assert!(described.contains("has_moved"), "{described}");
    described.contains("has_moved: true")
}

/// Threads meet also where each request is granted at once, and where it is an owner's.
#[test]
fn a_lock_moves_though_nobody_waits() {
    let meet: [fn(&Arc<RangeLock>); 2] = [
        |lock| drop(lock.try_write(8..16).expect("it is free")),
        |lock| drop(lock.try_write_owned(8..16).expect("it is free")),
    ];
    for meet in meet {
        let lock = Arc::new(RangeLock::new());
        let held = lock.write(0..8);
        thread::scope(|scope| {
            // Far more meetings than a move takes.
            scope.spawn(|| (0..10_000).for_each(|_| meet(&lock)));
        });
        assert!(has_moved(&lock), "threads have met");
        drop(held);
    }
}

/// Nor need threads meet: one that holds many ranges moves the lock, in whatever order it asks for them.
#[test]
fn a_lock_of_many_ranges_moves() {
    const MANY: u64 = 1 << 10;
    let orders: [fn(u64) -> u64; 3] = [|at| at, |at| MANY - 1 - at, |at| at * 389 % MANY];
    for order in orders {
        let lock = RangeLock::new();
        let hold = |at| lock.write(2 * order(at)..=2 * order(at));
        let held: Vec<_> = (0..MANY).map(hold).collect();
        assert!(has_moved(&lock), "{MANY} ranges are held");
        for at in 0..MANY {
            assert!(lock.try_read(2 * at..=2 * at).is_none(), "{at} is held");
            assert!(lock.try_read(2 * at + 1..=2 * at + 1).is_some(), "{at}");
        }
        drop(held);
        assert!(lock.try_write(..).is_some(), "all are released");
    }
}

/// What one thread holds for many owners gains nothing by a move.
#[test]
fn owners_of_one_thread_do_not_meet() {
    let lock = Arc::new(RangeLock::new());
    for _ in 0..10_000 {
        let hold = |at: u64| lock.write_owned(at..at + 8);
        let held = [0, 20, 10].map(hold);
        assert!(lock.try_read_owned(12..14).is_none(), "it is held");
        drop(held);
    }
    assert!(!has_moved(&lock), "one thread has used it");
}

/// Owners on several threads meet where one changes what another was about to change.
#[test]
fn a_lock_of_owners_moves_when_their_threads_meet() {
    let lock = Arc::new(RangeLock::new());
    let report = |_: &bool| "the lock has not moved".to_owned();
    let meet = |at: u64| {
        while !has_moved(&lock) {
            (0..64).for_each(|_| drop(lock.write_owned(at..at + 8)));
        }
    };
    let meet = &meet;
    // A few meetings would do, but on one processor they are rare.
    watchdog::watched(
        HANG,
        || has_moved(&lock),
        report,
        || {
            thread::scope(|scope| {
                for own in 0..4 {
                    scope.spawn(move || meet(8 * own));
                }
            });
        },
    );
    assert!(lock.try_write(..).is_some(), "all are released");
}

/// A thread that holds few ranges of each of many locks moves none of them.
#[test]
fn locks_of_few_ranges_stay_small() {
    let locks: Vec<_> = (0..200).map(|_| RangeLock::new()).collect();
    let hold = |lock| [0, 10, 20].map(|at| RangeLock::write(lock, at..at + 1));
    let held: Vec<_> = locks.iter().map(hold).collect();
    assert!(locks.iter().all(|lock| !has_moved(lock)));
    drop(held);
}

/// A thread remembers its slots in locks that it has used. It does not take a new lock for one that was in its place.
#[test]
fn a_lock_in_the_place_of_another_is_a_new_one() {
    for _ in 0..100 {
        let lock = RangeLock::from_raw(RawSlots::builder().slots_at_once().build());
        for _ in 0..3 {
            let held = lock.write(0..10);
            thread::scope(|scope| {
                scope.spawn(|| assert!(lock.try_read(5..6).is_none()));
            });
            drop(held);
        }
        assert!(lock.try_write(..).is_some());
    }
}
