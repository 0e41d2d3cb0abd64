//! When a slot lock moves from its list to slots.

use spanlock::range::RangeLock;
use spanlock::range::slots::RawSlots;
use spanlock_testkit::exact::Exact;
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

fn has_moved(lock: &RangeLock) -> bool {
    let described = format!("{:?}", lock.raw());
    assert!(described.contains("has_moved"), "{described}");
    described.contains("has_moved: true")
}

/// Threads meet also where each request is granted at once.
#[test]
fn a_lock_moves_though_nobody_waits() {
    let lock = RangeLock::new();
    let held = lock.write(0..8);
    thread::scope(|scope| {
        // Far more meetings than a move takes.
        let meet = |_| drop(lock.try_write(8..16).expect("it is free"));
        scope.spawn(move || (0..10_000).for_each(meet));
    });
    assert!(has_moved(&lock), "threads have met");
    drop(held);
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
