//! Looks for deadlocks, beside threads that lock, wait and release. The timer calls when the model says so.

use prim::atomic::{AtomicU32, Ordering};
use prim::{Model, futex, thread, timer};
use spanlock_loom::deadlock::{self, Deadlocks};
use spanlock_loom::range::list::{Fairness, ListRw};
use spanlock_loom::range::{Owner, RangeLock, Refusal};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

/// A list in which deadlocks are looked for.
fn lock(deadlocks: Deadlocks) -> Arc<RangeLock<ListRw>> {
    let builder = ListRw::builder()
        .fairness(Fairness::Unfair)
        .deadlocks(deadlocks);
    Arc::new(RangeLock::from_raw(builder.build()))
}

/// Polls a request that has to wait, and then calls `go_on`.
fn sleeps(lock: &RangeLock<ListRw>, go_on: impl FnOnce()) {
    let mut request = pin!(lock.write_async(0..1));
    let polled = request
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    go_on();
}

/// Has those who look know the lock: a request has been asleep in it.
fn watched(lock: &RangeLock<ListRw>) {
    let held = lock.write(0..1);
    sleeps(lock, || drop(held));
}

/// Threads sleep until it is given.
#[derive(Default)]
struct Sign(AtomicU32);

impl Sign {
    fn give(&self) {
        self.0.fetch_add(1, Ordering::Release);
        futex::wake_all(&self.0);
    }

    fn wait(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            futex::wait(&self.0, 0, None);
        }
    }
}

/// One thread locks the first, and then the second when the other has it. The other waits for the first, and locks the
/// second beside it. A look reads one after the other: it may find that each waits for the other, which never is so.
#[test]
fn a_ring_that_never_was_is_not_told() {
    Model::new(Some(2)).check(|| {
        // A panic of what is told would not be heard.
        static TOLD: Mutex<Option<String>> = Mutex::new(None);
        deadlock::on_report(|report| *TOLD.lock().unwrap() = Some(report.to_string()));
        let locks = [lock(Deadlocks::report()), lock(Deadlocks::report())];
        locks.iter().for_each(|lock| watched(lock));
        let [holds, goes_on, has_both, looked]: &'static [Sign; 4] = Box::leak(Box::default());
        let one = {
            let locks = locks.clone();
            thread::spawn(move || {
                let held = locks[0].write(0..1);
                holds.give();
                goes_on.wait();
                drop(held);
                has_both.wait();
                drop(locks[1].write(0..1));
            })
        };
        holds.wait();
        let other = {
            let locks = locks.clone();
            thread::spawn(move || {
                let _first = locks[0].write(0..1);
                let _second = locks[1].write(0..1);
                has_both.give();
                looked.wait();
            })
        };
        while locks[0].snapshot().waiters.is_empty() {
            prim::loom::thread::yield_now();
        }
        goes_on.give();
        for _ in 0..3 {
            timer::fire();
        }
        assert_eq!(TOLD.lock().unwrap().take(), None);
        looked.give();
        for thread in [one, other] {
            thread.join().expect("loom reports panics itself");
        }
    });
}

/// Two owners wait for each other. One is refused, and the other goes on when that one has released.
#[test]
fn one_of_two_owners_is_refused() {
    Model::new(Some(2)).check(|| {
        let lock = lock(Deadlocks::refuse());
        let owners = [Owner::new(), Owner::new()];
        let holds: Vec<_> = owners
            .iter()
            .zip(0..)
            .map(|(owner, at)| lock.by_arc(owner).write(at..=at).expect("it is free"))
            .collect();
        let threads: Vec<_> = holds
            .into_iter()
            .zip([1, 0])
            .map(|(mut held, wanted): (_, u64)| thread::spawn(move || held.extend(wanted..=wanted)))
            .collect();
        while lock.snapshot().waiters.len() < 2 {
            prim::loom::thread::yield_now();
        }
        for _ in 0..2 {
            while !timer::fire() {
                prim::loom::thread::yield_now();
            }
        }
        let outcomes: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("loom reports panics itself"))
            .collect();
        assert_eq!(
            outcomes,
            [Ok(()), Err(Refusal::Deadlock)],
            "the owner that was made last"
        );
        assert!(owners[1].deadlock().is_some());
        assert!(lock.try_write(0..2).is_some());
    });
}

/// Two requests are the first that sleep in a lock: each makes its queue, and has it watched.
#[test]
fn two_make_the_queue() {
    Model::new(Some(2)).check(|| {
        let lock = lock(Deadlocks::report());
        let _held = lock.write(0..1);
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || sleeps(&lock, || {}))
        };
        sleeps(&lock, || {});
        other.join().expect("loom reports panics itself");
    });
}
