//! Requests of owners that are refused, so that the others go on.

use super::pool::{Count, poll};
use super::{REFUSE, begin, common};
use spanlock::range::list::ListRw;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock, Refusal};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Two transactions lock two rows in two orders, in two locks. One is refused, rolls back and lets the other go on.
#[test]
fn one_of_two_transactions_rolls_back() {
    begin();
    let rows = RangeLock::from_raw(RawSlots::builder().deadlocks(REFUSE).build());
    let logs = RangeLock::from_raw(ListRw::builder().deadlocks(REFUSE).build());
    let (older, younger) = (Owner::new(), Owner::new());
    let both_hold_one = Barrier::new(2);
    common::watched(rows.raw(), || {
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let row = rows.by(&older).write(1..2).expect("it is free");
                both_hold_one.wait();
                let log = logs.by(&older).write(0..100);
                drop(row);
                log.map(drop)
            });
            let row = logs.by(&younger).write(7..8).expect("it is free");
            both_hold_one.wait();
            let refused = rows.by(&younger).read(0..10);
            assert_eq!(refused.err(), Some(Refusal::Deadlock));
            drop(row);
            assert_eq!(
                first.join().expect("it ends"),
                Ok(()),
                "the older one is not refused"
            );
        });
    });
    let ring = younger.deadlock().expect("it was refused");
    assert_eq!(ring.steps.len(), 2);
    let owners: Vec<_> = ring.steps.iter().map(|step| step.owner).collect();
    assert!(
        owners.contains(&older.id()) && owners.contains(&younger.id()),
        "{ring}"
    );
    assert_eq!(older.deadlock(), None);
    common::assert_nothing_held(rows.raw());
    common::assert_nothing_held(logs.raw());
}

/// An owner waits for a thread that waits for it.
#[test]
fn an_owner_makes_way_for_a_thread() {
    begin();
    let rows = RangeLock::from_raw(RawSlots::builder().deadlocks(REFUSE).build());
    let owner = Owner::new();
    let both_hold_one = Barrier::new(2);
    common::watched(rows.raw(), || {
        thread::scope(|scope| {
            scope.spawn(|| {
                let _one = rows.write(0..10);
                both_hold_one.wait();
                drop(rows.write(50..60));
            });
            let mut held = rows.by(&owner).read(55..56).expect("it is free");
            both_hold_one.wait();
            assert_eq!(held.extend(5..6), Err(Refusal::Deadlock));
            assert_eq!(held.pieces().count(), 1, "it keeps what it had");
            held.release(..);
        });
    });
    common::assert_nothing_held(rows.raw());
}

/// Two tasks, whose owners wait for each other. The one that is refused is woken.
#[test]
fn a_task_is_refused() {
    begin();
    let rows = RangeLock::from_raw(RawSlots::builder().deadlocks(REFUSE).build());
    let (older, younger) = (Owner::new(), Owner::new());
    let counts: [Arc<Count>; 2] = Default::default();
    let wakers = counts.clone().map(Waker::from);
    common::watched(rows.raw(), || {
        let first = rows.by(&older).write(0..10).expect("it is free");
        let second = rows.by(&younger).write(50..60).expect("it is free");
        let mut one = rows.by(&older).write_async(55..56);
        let mut other = rows.by(&younger).write_async(5..6);
        assert!(poll(&mut one, &wakers[0]).is_pending());
        assert!(poll(&mut other, &wakers[1]).is_pending());
        common::until(|| counts[1].woken() > 0);
        match poll(&mut other, &wakers[1]) {
            Poll::Ready(refused) => assert_eq!(refused.err(), Some(Refusal::Deadlock)),
            Poll::Pending => panic!("it is refused"),
        }
        assert_eq!(counts[0].woken(), 0);
        drop(second);
        assert_eq!(counts[0].woken(), 1);
        assert!(poll(&mut one, &wakers[0]).is_ready());
        drop(first);
    });
    assert!(younger.deadlock().is_some());
    common::assert_nothing_held(rows.raw());
}

/// A conversion and several ranges are refused as a whole.
#[test]
fn all_or_nothing() {
    begin();
    let rows = RangeLock::from_raw(ListRw::builder().deadlocks(REFUSE).build());
    let (older, younger) = (Owner::new(), Owner::new());
    let waker = Waker::from(Arc::new(Count::default()));
    let context = &mut Context::from_waker(&waker);
    common::watched(rows.raw(), || {
        let first = rows.by(&older).write(0..10).expect("it is free");
        let second = rows.by(&younger).write(50..60).expect("it is free");
        let mut one = rows.by(&older).write_async(50..51);
        assert!(poll(&mut one, &waker).is_pending());
        let by = rows.by(&younger);
        let mut many = pin!(by.write_many_async([100..101, 5..6]));
        common::until(|| match many.as_mut().poll(context) {
            Poll::Pending => false,
            Poll::Ready(refused) => {
                assert_eq!(refused.err(), Some(Refusal::Deadlock));
                true
            }
        });
        assert!(rows.try_write(100..101).is_some(), "nothing of it is left");
        drop((first, second));
    });
    common::assert_nothing_held(rows.raw());
}
