//! What a reader-writer lock promises, case by case, for each lock and with a bias on each.

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

use common::rw::{SHORT, bravo, linger, run};
use common::{HANG, elsewhere, panic_message};
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RwLock};
use spanlock::rw::{Bias, Bravo, FutexRwLock, PhaseFairQueue, PhaseFairTicket, WritersFirst};
use spanlock_testkit::exact::Exact;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

mod again;
mod model;
mod parts;
mod places;
mod policies;
mod timed;
mod upgrading;

mod all {
    use super::*;
    for_every_lock! {
        {
            a_free_lock_is_granted_to_a_try,
            a_reader_keeps_a_writer_out,
            a_writer_keeps_all_out,
            a_writer_waits_for_a_reader,
            a_reader_waits_for_a_writer,
            writers_take_turns,
            a_panic_releases,
        }
    }
}

mod sharing {
    use super::*;
    for_every_lock_that_shares! { { readers_are_inside_together, a_writer_becomes_a_reader } }
    for_each! { [bravo_mutex] { readers_are_inside_together } }
}

mod recursion {
    use super::*;
    for_each! {
        [
            futex_readers_first,
            bravo_adaptive_readers_first,
            bravo_off_readers_first,
            bravo_eager_readers_first,
        ]
        { a_reader_reads_again_while_a_writer_waits }
    }
}

fn a_free_lock_is_granted_to_a_try<L: RawRwLock>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        drop(lock.try_read().expect("free"));
        drop(lock.try_write().expect("free"));
        drop(lock.try_write().expect("free"));
    }
}

fn a_reader_keeps_a_writer_out<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        let reading = lock.read();
        assert!(lock.is_locked());
        assert!(elsewhere(|| lock.try_write().is_none()));
        drop(reading);
        assert!(elsewhere(|| lock.try_write().is_some()));
    }
}

fn a_writer_keeps_all_out<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        let writing = lock.write();
        assert!(lock.is_locked_exclusive());
        elsewhere(|| {
            assert!(lock.try_write().is_none());
            assert!(lock.try_read().is_none());
        });
        drop(writing);
    }
}

/// Asks for the lock, and calls what it gets once that is granted.
type Request<'a> = &'a (dyn Fn(&dyn Fn()) + Sync);

/// While this thread holds the lock, other threads ask for it, 20 times over. `requests` call the function that they
/// get when they are granted: it fails if this thread still holds the lock.
fn wait_for_a_holder<G, const N: usize>(
    hold: impl Fn() -> G,
    beside: &str,
    requests: [Request<'_>; N],
) {
    for round in 0..20 {
        let inside = &AtomicBool::new(true);
        thread::scope(|scope| {
            let held = hold();
            for request in requests {
                scope.spawn(move || request(&|| assert!(!inside.load(Relaxed), "{beside}")));
            }
            linger(round);
            inside.store(false, Relaxed);
            drop(held);
        });
    }
}

fn a_writer_waits_for_a_reader<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    let write = |granted: &dyn Fn()| {
        *lock.write() += 1;
        granted();
    };
    wait_for_a_holder(|| lock.read(), "beside a reader", [&write]);
    assert_eq!(*lock.read(), 20);
}

fn a_reader_waits_for_a_writer<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for round in 0..20 {
        thread::scope(|scope| {
            let mut writing = lock.write();
            let reader = scope.spawn(|| *lock.read());
            linger(round);
            *writing += 1;
            let written = *writing;
            drop(writing);
            assert_eq!(reader.join().unwrap(), written);
        });
    }
}

fn writers_take_turns<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| *lock.write() += 1));
        }
    });
    assert_eq!(*lock.read(), 4000);
}

fn a_panic_releases<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    let message = panic_message(|| {
        let _writing = lock.write();
        panic!("inside");
    });
    assert_eq!(message, "inside");
    panic_message(|| {
        let _reading = lock.read();
        panic!("inside");
    });
    assert!(lock.try_write().is_some());
}

fn readers_are_inside_together<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    let all_inside = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let reading = lock.read();
                all_inside.wait();
                drop(reading);
            });
        }
    });
}

fn a_writer_becomes_a_reader<L: RawRwLockDowngrade + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..10 {
        let mut writing = lock.write();
        *writing += 1;
        let reading = lock_api::RwLockWriteGuard::downgrade(writing);
        assert!(elsewhere(|| lock.try_write().is_none()));
        assert_eq!(elsewhere(|| *lock.read()), *reading);
    }
}

fn a_reader_reads_again_while_a_writer_waits<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for round in 0..200 {
        thread::scope(|scope| {
            let reading = lock.read();
            let writer = scope.spawn(|| *lock.write() += 1);
            if round % 10 == 0 {
                thread::sleep(SHORT);
            }
            let again = lock.read();
            assert_eq!(*again, *reading);
            drop((again, reading));
            writer.join().unwrap();
        });
    }
}

/// A thread that reads by the table reads again though the underlying lock prefers writers.
#[test]
fn a_fast_reader_reads_again_in_any_case() {
    let lock = bravo::<FutexRwLock>(Bias::EAGER);
    let lock = RwLock::from_raw(lock, 0);
    thread::scope(|scope| {
        let reading = lock.read();
        let writer = scope.spawn(|| *lock.write() += 1);
        thread::sleep(SHORT);
        assert_eq!(*lock.read(), 0);
        drop(reading);
        writer.join().unwrap();
    });
}

/// A leaked guard outlives its thread, leaves its lock locked, and nothing else.
#[test]
fn a_leaked_reader_stays_and_harms_no_other_lock() {
    let leaked = Arc::new(RwLock::from_raw(bravo::<FutexRwLock>(Bias::EAGER), 0));
    let other = RwLock::from_raw(bravo::<FutexRwLock>(Bias::EAGER), 0);
    let theirs = Arc::clone(&leaked);
    thread::spawn(move || mem::forget(theirs.read()))
        .join()
        .unwrap();
    assert!(leaked.try_write().is_none());
    assert!(leaked.try_read().is_some());
    for _ in 0..10 {
        elsewhere(|| drop((other.read(), leaked.read())));
        *other.write() += 1;
    }
}

/// A lock at the place of one that was dropped with a leaked reader is free.
#[test]
fn a_dropped_lock_takes_its_leaked_readers_along() {
    let mut lock = Box::new(RwLock::from_raw(bravo::<FutexRwLock>(Bias::EAGER), 0));
    mem::forget(lock.read());
    assert!(lock.try_write().is_none());
    *lock = RwLock::from_raw(bravo::<FutexRwLock>(Bias::EAGER), 0);
    assert!(lock.try_write().is_some());
}

#[test]
#[cfg(target_pointer_width = "64")]
fn locks_are_as_small_as_their_docs_say() {
    assert_eq!(size_of::<FutexRwLock>(), 8);
    assert_eq!(size_of::<PhaseFairTicket>(), 16);
    assert_eq!(size_of::<PhaseFairQueue>(), 40);
    assert_eq!(size_of::<spanlock::rw::RwLock<()>>(), 16);
    // The guard of a fast read is no larger than one with two words.
    assert!(size_of::<spanlock::rw::RwLockReadGuard<'_, ()>>() <= 16);
}
