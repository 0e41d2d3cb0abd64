//! Several ranges at once: all or nothing.

use crate::suite::Scenario;
use crate::support::{Exclusive, Shared, await_sleepers, elsewhere};
use spanlock::range::{RangeLock, RangeMutex};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn holds_each_and_nothing_else<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock_many([20..30, 0..10, 40..50]);
    elsewhere(|| {
        for taken in [0..1, 9..10, 25..26, 49..50] {
            assert!(lock.try_lock(taken.clone()).is_none(), "{taken:?}");
        }
        let _between = lock.try_lock_many([10..20, 30..40, 50..60]).unwrap();
    });
    drop(held);
}

fn overlapping_and_touching_ranges_count_as_one<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock_many([5..15, 0..10, 15..20, 7..8, 0..10, 30..30]);
    elsewhere(|| {
        assert!(lock.try_lock(19..20).is_none());
        assert!(lock.try_lock(20..).is_some());
    });
    drop(held);
}

fn no_range_and_empty_ranges<L: Exclusive>(lock: &RangeMutex<L>) {
    let _all = lock.lock(..);
    let nothing: [std::ops::Range<u64>; 0] = [];
    let _none = lock.lock_many(nothing);
    let _empty = lock.try_lock_many([5..5, 0..0]).expect("empty");
}

/// More than the guards have room for without an allocation.
fn more_ranges_than_a_few<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock_many((0..40).map(|at| 2 * at..2 * at + 1));
    assert_eq!(lock.snapshot().holders.len(), 40);
    drop(held);
}

fn a_refused_try_leaves_nothing_held<L: Exclusive>(lock: &RangeMutex<L>) {
    let ranges = [0..10, 20..30, 40..50];
    for taken in &ranges {
        let _held = lock.lock(taken.clone());
        elsewhere(|| {
            assert!(lock.try_lock_many(ranges.clone()).is_none());
            let timeout = Duration::from_millis(2);
            assert!(lock.try_lock_many_for(ranges.clone(), timeout).is_none());
        });
        assert!(elsewhere(|| lock.try_lock(taken.clone()).is_none()));
        for other in ranges.iter().filter(|other| *other != taken) {
            assert!(elsewhere(|| lock.try_lock(other.clone()).is_some()));
        }
    }
}

/// While it waits for one range, the others are free for everybody else.
fn waits_with_empty_hands<L: Exclusive>(lock: &RangeMutex<L>) {
    let ranges = [0..10, 20..30, 40..50];
    for taken in &ranges {
        let held = lock.lock(taken.clone());
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.lock_many(ranges.clone())));
            await_sleepers(lock.raw(), 1);
            assert_eq!(lock.snapshot().holders.len(), 1);
            drop(held);
        });
    }
}

/// Each thread names the same ranges in another order. At the largest width they touch and count as one, for which a
/// lock without bypass makes the others wait who hold some of it.
fn opposite_orders_do_not_deadlock<L: Exclusive>(lock: &RangeMutex<L>) {
    const ROUNDS: u64 = 300;
    let inside = AtomicU64::new(0);
    let orders = [[0, 20, 40], [40, 20, 0], [20, 0, 40], [40, 0, 20]];
    thread::scope(|scope| {
        for order in orders {
            let inside = &inside;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let width = 1 + round % 20;
                    let _held = lock.lock_many(order.map(|start| start..start + width));
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                }
            });
        }
    });
}

/// Rings of neighbours, where each pair of calls shares one range: philosophers, at a round table.
fn philosophers_all_eat<L: Exclusive>(lock: &RangeMutex<L>) {
    const SEATS: u64 = 5;
    thread::scope(|scope| {
        for seat in 0..SEATS {
            scope.spawn(move || {
                let (left, right) = (seat, (seat + 1) % SEATS);
                for _ in 0..500 {
                    drop(lock.lock_many([2 * right..=2 * right, 2 * left..=2 * left]));
                }
            });
        }
    });
}

fn readers_of_many_ranges_coexist<L: Shared>(lock: &RangeLock<L>) {
    let both_inside = Barrier::new(2);
    thread::scope(|scope| {
        for ranges in [[0..10, 20..30], [25..35, 5..15]] {
            let both_inside = &both_inside;
            scope.spawn(move || {
                let _held = lock.read_many(ranges);
                both_inside.wait();
            });
        }
    });
    let _held = lock.try_read_many([0..10, 20..30]).unwrap();
    assert!(lock.try_write_many([12..13, 29..31]).is_none());
    assert!(lock.try_write_many([12..13, 30..31]).is_some());
}

fn a_refused_try_of_readers_leaves_nothing_held<L: Shared>(lock: &RangeLock<L>) {
    let _held = lock.write(20..30);
    elsewhere(|| {
        let ranges = [0..10, 20..30];
        let timeout = Duration::from_millis(2);
        assert!(lock.try_read_many(ranges.clone()).is_none());
        assert!(lock.try_write_many(ranges.clone()).is_none());
        assert!(lock.try_read_many_for(ranges.clone(), timeout).is_none());
        assert!(lock.try_write_many_for(ranges, timeout).is_none());
        assert!(lock.try_write(0..10).is_some());
    });
}

fn many_ranges_downgrade_together<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.write_many([0..10, 20..30]).downgrade();
    elsewhere(|| {
        assert!(lock.try_read_many([0..10, 20..30]).is_some());
        assert!(lock.try_write(0..1).is_none());
        assert!(lock.try_write(29..30).is_none());
    });
    drop(held);
}

/// The scenarios of this file, exclusive ranges.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        holds_each_and_nothing_else,
        overlapping_and_touching_ranges_count_as_one,
        no_range_and_empty_ranges,
        more_ranges_than_a_few needs Listing,
        a_refused_try_leaves_nothing_held,
        waits_with_empty_hands needs Listing,
        opposite_orders_do_not_deadlock needs Bypass,
        philosophers_all_eat,
    ]
}

/// The scenarios of this file that have readers.
pub fn shared_scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        readers_of_many_ranges_coexist,
        a_refused_try_of_readers_leaves_nothing_held,
        many_ranges_downgrade_together,
    ]
}
