//! What is no deadlock is not told.

use super::pool::{Count, poll};
use super::{Meeting, REFUSE, REPORT, TOLD, await_report, begin, common, lasting, waits_at};
use spanlock::deadlock::{self, Report};
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock};
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

fn slots() -> RangeLock {
    RangeLock::from_raw(RawSlots::builder().deadlocks(REPORT).build())
}

/// Returns when all locks were looked at several times: a deadlock that begins now is told.
fn looks_pass() {
    for _ in 0..2 {
        let meeting = Meeting::of(2);
        let lock = lasting(slots());
        for (first, second) in [(0..1, 1..2), (1..2, 0..1)] {
            meeting.party(move |meet| {
                let (_held, line) = (lock.write(first), line!());
                meet(line, line!() + 1);
                drop(lock.write(second));
            });
        }
        let ring = await_report(|report| match report {
            Report::Deadlock(ring) => {
                let here = lasting_address(lock);
                let is_its = ring.steps.iter().any(|step| here.contains(&step.lock));
                is_its.then(|| ring.clone())
            }
            _ => None,
        });
        assert_eq!(ring.steps.len(), 2);
    }
}

fn lasting_address(lock: &RangeLock) -> std::ops::Range<usize> {
    let start = std::ptr::from_ref(lock).addr();
    start..start + size_of_val(lock)
}

/// No report names a wait in that line of this file.
fn assert_not_told(line: u32) {
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for report in &*told {
        if let Report::Deadlock(ring) = report {
            assert!(!waits_at(ring, file!(), line), "{ring}");
        }
    }
}

/// A holder that runs may release.
#[test]
fn a_chain_that_ends_at_a_thread_that_runs() {
    begin();
    let (lock, other) = (&slots(), &slots());
    let held = other.write(..);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let _one = lock.write(0..10);
            let line = line!() + 1;
            drop(other.write(5..6));
            line
        });
        common::await_sleepers(other.raw(), 1);
        let last = scope.spawn(|| drop(lock.write(5..6)));
        common::await_sleepers(lock.raw(), 1);
        looks_pass();
        drop(held);
        assert_not_told(waits.join().expect("it ends"));
        last.join().expect("it ends");
    });
}

/// A request with a limit of time ends by itself.
#[test]
fn a_ring_that_time_ends() {
    begin();
    let lock = &slots();
    thread::scope(|scope| {
        let first = lock.write(0..10);
        let other = scope.spawn(|| {
            let _second = lock.write(50..60);
            let line = line!() + 1;
            drop(lock.write(5..6));
            line
        });
        common::await_sleepers(lock.raw(), 1);
        let line = line!() + 1;
        assert!(
            lock.try_write_for(50..51, Duration::from_millis(300))
                .is_none()
        );
        assert_not_told(line);
        drop(first);
        assert_not_told(other.join().expect("it ends"));
    });
}

/// An owner waits in two places. In one of them it waits for somebody who waits for it, and in the other it goes on.
#[test]
fn an_owner_that_waits_elsewhere_too() {
    begin();
    let (lock, free) = (&slots(), &slots());
    let (one, other) = (Owner::new(), Owner::new());
    let waker = Waker::from(Arc::new(Count::default()));
    let mut first = lock.by(&one).write(0..10).expect("it is free");
    let second = lock.by(&other).write(50..60).expect("it is free");
    let line = line!() + 1;
    let mut asks = lock.by(&one).write_async(55..56);
    assert!(poll(&mut asks, &waker).is_pending());
    let mut asks_back = lock.by(&other).write_async(5..6);
    assert!(poll(&mut asks_back, &waker).is_pending());
    let held = free.write(..);
    let mut elsewhere = free.by(&one).write_async(0..1);
    assert!(poll(&mut elsewhere, &waker).is_pending());
    looks_pass();
    assert_not_told(line);
    // When that is over it is a deadlock.
    drop(held);
    assert!(poll(&mut elsewhere, &waker).is_ready());
    drop(elsewhere);
    await_report(|report| match report {
        Report::Deadlock(ring) => waits_at(ring, file!(), line).then_some(()),
        _ => None,
    });
    drop(second);
    assert!(poll(&mut asks, &waker).is_ready());
    drop(asks);
    first.release(..);
}

/// Of two tasks of one owner the one waits for the other. That is told, and is no deadlock: nobody is refused.
#[test]
fn tasks_of_one_owner() {
    begin();
    let lock = RangeLock::from_raw(RawSlots::builder().deadlocks(REFUSE).build());
    let connection = Owner::new();
    let waker = Waker::from(Arc::new(Count::default()));
    let mut first = lock.by(&connection).write_async(0..10);
    let Poll::Ready(Ok(held)) = poll(&mut first, &waker) else {
        panic!("it is free");
    };
    let line = line!() + 1;
    let mut second = lock.by(&connection).read_async(5..15);
    assert!(poll(&mut second, &waker).is_pending());
    let told = await_report(|report| match report {
        Report::OwnRange(step) => (step.place.line() == line).then(|| report.to_string()),
        _ => None,
    });
    let owner = connection.id();
    for says in [
        format!("{owner} (a task) waits for 5..=14 shared of the lock 0x"),
        format!(", at {}:{line}:", file!()),
        format!("which {owner} holds: 0..=9 exclusive"),
    ] {
        assert!(told.contains(&says), "{told}");
    }
    looks_pass();
    assert_not_told(line);
    assert!(poll(&mut second, &waker).is_pending());
    drop(held);
    assert!(matches!(poll(&mut second, &waker), Poll::Ready(Ok(_))));
}

/// A task that was woken and is not polled is told apart.
#[test]
fn a_task_that_is_not_polled() {
    begin();
    let lock = slots();
    let waker = Waker::from(Arc::new(Count::default()));
    let held = lock.write(0..10);
    let line = line!() + 1;
    let mut first = lock.write_async(0..10);
    assert!(poll(&mut first, &waker).is_pending());
    assert!(deadlock::dump_all().contains(&format!("behind the holder thread {}", id())));
    drop(held);
    let told = await_report(|report| match report {
        Report::NotPolled(task) => {
            (task.place.file() == file() && task.place.line() == line).then_some(*task)
        }
        _ => None,
    });
    assert_eq!((told.span.start(), told.span.last()), (0, 9));
    let text = Report::NotPolled(told).to_string();
    assert!(
        text.starts_with("not polled: somebody was woken for 0..=9 exclusive"),
        "{text}"
    );
    assert!(poll(&mut first, &waker).is_ready());
}

fn file() -> &'static str {
    file!()
}

/// The number of the running thread, as a listing names it.
fn id() -> u32 {
    let lock = RangeLock::new();
    let _held = lock.write(..);
    lock.snapshot().holders[0]
        .owner
        .thread()
        .expect("a thread holds it")
}
