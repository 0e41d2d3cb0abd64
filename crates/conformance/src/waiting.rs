//! Waiting, for a time or forever, and for oneself.

use crate::suite::Scenario;
use crate::support::{Exclusive, await_sleepers, elsewhere};
use spanlock::range::RangeMutex;
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(3);

fn waiter_gets_in_after_the_release<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(10..20);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| drop(lock.lock(0..15)));
        await_sleepers(lock.raw(), 1);
        assert!(!waiter.is_finished());
        drop(held);
    });
}

fn waiter_waits_for_each_in_turn<L: Exclusive>(lock: &RangeMutex<L>) {
    let mut held: Vec<_> = (0..5).map(|at| lock.lock(10 * at..10 * at + 5)).collect();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| drop(lock.lock(0..100)));
        while let Some(last) = held.pop() {
            await_sleepers(lock.raw(), 1);
            assert!(!waiter.is_finished());
            drop(last);
        }
    });
}

/// All that sleep behind one holder are woken, however many.
fn all_waiters_get_in<L: Exclusive>(lock: &RangeMutex<L>) {
    const WAITERS: u64 = 20;
    let held = lock.lock(..);
    thread::scope(|scope| {
        for at in 0..WAITERS {
            scope.spawn(move || drop(lock.lock(at % 7..10)));
        }
        await_sleepers(lock.raw(), WAITERS as usize);
        drop(held);
    });
}

fn timeouts_on_a_free_range<L: Exclusive>(lock: &RangeMutex<L>) {
    for timeout in [Duration::ZERO, SHORT, Duration::MAX] {
        assert!(lock.try_lock_for(5..10, timeout).is_some(), "{timeout:?}");
    }
    assert!(lock.try_lock_until(5..10, Instant::now()).is_some());
    assert!(lock.try_lock_many_for([5..10, 20..30], SHORT).is_some());
}

fn timeouts_on_a_held_range<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = lock.lock(5..10);
    elsewhere(|| {
        assert!(lock.try_lock_until(9..11, Instant::now()).is_none());
        assert!(lock.try_lock_for(9..11, Duration::ZERO).is_none());
        let start = Instant::now();
        assert!(lock.try_lock_for(9..11, SHORT).is_none());
        assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
        assert!(lock.try_lock_until(9..11, start + 2 * SHORT).is_none());
        assert!(start.elapsed() >= 2 * SHORT, "{:?}", start.elapsed());
    });
    assert!(lock.snapshot().waiters.is_empty());
}

/// One's own hold is waited for like any other, when there is a time to give up.
fn timeout_on_a_range_of_ones_own<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = lock.lock(5..10);
    assert!(lock.try_lock(5..6).is_none());
    assert!(lock.try_lock_for(5..6, SHORT).is_none());
}

fn a_timed_waiter_is_granted_in_time<L: Exclusive>(lock: &RangeMutex<L>) {
    for timeout in [10 * crate::support::HANG, Duration::MAX] {
        let held = lock.lock(5..10);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| lock.try_lock_for(0..20, timeout).is_some());
            await_sleepers(lock.raw(), 1);
            drop(held);
            assert!(waiter.join().unwrap());
        });
    }
}

fn the_listing_names_each_blocker<L: Exclusive>(lock: &RangeMutex<L>) {
    let _elsewhere = lock.lock(0..5);
    let held = lock.lock(10..20);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.lock(15..30)));
        await_sleepers(lock.raw(), 1);
        let snapshot = lock.snapshot();
        let holder = snapshot.holders[1];
        let waiter = snapshot.waiters[0];
        assert_eq!(snapshot.holders.len(), 2);
        assert_eq!((holder.span.start(), holder.span.last()), (10, 19));
        assert_eq!(waiter.behind, holder);
        let asked = waiter.request;
        assert_eq!((asked.span.start(), asked.span.last()), (15, 29));
        assert_ne!(asked.owner, holder.owner);
        let text = format!("{lock:?} {snapshot}");
        assert!(text.contains("15..=29"), "{text}");
        drop(held);
    });
}

fn listing_names_threads_as_tools_do<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = lock.lock(10..20);
    let me = std::fs::read_link("/proc/thread-self").unwrap();
    let listed = lock.snapshot().holders[0]
        .owner
        .thread()
        .expect("no owner was named");
    let listed = listed.to_string();
    assert_eq!(me.file_name().unwrap(), listed.as_str());
}

/// Debug builds would rather panic than hang; whatever was held still is, and the lock works on.
fn waiting_for_oneself_panics<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(10..20);
    for _ in 0..3 {
        let message = crate::support::panic_message(|| drop(lock.lock(15..30)));
        assert!(message.contains("deadlock"), "{message}");
        assert!(message.contains("15..=29"), "{message}");
    }
    assert!(lock.try_lock(20..30).is_some());
    assert!(elsewhere(|| lock.try_lock(19..30).is_none()));
    drop(held);
    assert!(elsewhere(|| lock.try_lock(10..30).is_some()));
}

/// The one that gave up is in nobody's way, though those behind it may have counted it.
fn a_request_that_gives_up_lets_those_behind_through<L: Exclusive>(lock: &RangeMutex<L>) {
    let held = lock.lock(1..3);
    thread::scope(|scope| {
        let impatient = scope.spawn(|| lock.try_lock_for(2..7, 10 * SHORT).is_some());
        let behind = scope.spawn(|| drop(lock.lock(4..5)));
        assert!(!impatient.join().unwrap());
        behind.join().unwrap();
    });
    assert!(elsewhere(|| lock.try_lock(3..).is_some()));
    drop(held);
}

/// The scenarios of this file.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        waiter_gets_in_after_the_release,
        waiter_waits_for_each_in_turn,
        all_waiters_get_in,
        timeouts_on_a_free_range,
        timeouts_on_a_held_range,
        timeout_on_a_range_of_ones_own,
        a_timed_waiter_is_granted_in_time,
        a_request_that_gives_up_lets_those_behind_through,
        the_listing_names_each_blocker needs EachHolder,
        listing_names_threads_as_tools_do needs EachHolder ThreadNumbers,
        waiting_for_oneself_panics needs SelfCheck,
    ]
}
