//! Reading again while a writer waits, and fair releases.

use super::*;
use lock_api::{RawRwLockFair, RwLockReadGuard, RwLockWriteGuard};
use spanlock::rw::{ForTasks, RawRwLockRecursive, ReadRecursive, SendGuards};
use std::sync::atomic::AtomicU32;

mod recursive {
    use super::*;
    for_each! {
        [
            futex, futex_readers_first, bravo_adaptive, bravo_eager, bravo_off, bravo_eager_readers_first,
        ]
        { a_thread_that_reads_reads_again, readers_in_turns_keep_reading }
    }
}

fn a_thread_that_reads_reads_again<L: RawRwLockRecursive + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..10 {
        let outer = lock.read();
        let begun = Barrier::new(2);
        thread::scope(|scope| {
            let writes = scope.spawn(|| {
                begun.wait();
                *lock.write() += 1;
            });
            begun.wait();
            // It waits by now, or will.
            thread::sleep(SHORT);
            let inner = lock.read_recursive();
            assert_eq!(*outer, *inner);
            assert!(lock.try_read_recursive().is_some() || lock.is_locked());
            drop((inner, outer));
            writes.join().expect("it got in");
        });
    }
    assert_eq!(*lock.read(), 10);
    let writing = lock.write();
    assert!(elsewhere(|| lock.try_read_recursive().is_none()));
    drop(writing);
}

/// Several threads read twice beside writers, and all get in.
fn readers_in_turns_keep_reading<L: RawRwLockRecursive + Sync>(lock: &RwLock<L, u32>) {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let outer = lock.read();
                    let inner = lock.read_recursive();
                    assert_eq!(*outer, *inner);
                }
            });
        }
        scope.spawn(|| (0..500).for_each(|_| *lock.write() += 1));
    });
    assert_eq!(*lock.read(), 500);
}

#[test]
fn locks_around_it_read_again_too() {
    let sent = RwLock::from_raw(SendGuards::new(FutexRwLock::<WritersFirst>::new()), 1);
    let outer = sent.read();
    thread::scope(|scope| {
        scope
            .spawn(|| drop((outer, sent.read_recursive())))
            .join()
            .expect("it releases")
    });
    assert!(sent.try_write().is_some());
    let tasks = RwLock::from_raw(ForTasks::new(FutexRwLock::<WritersFirst>::new()), 1);
    let outer = tasks.read();
    assert_eq!(*tasks.try_read_recursive().expect("readers share"), *outer);
    assert_eq!(*tasks.read_recursive(), 1);
}

mod fair {
    use super::*;
    for_each! { [ticket, queue, bravo_ticket, bravo_queue] { who_waits_comes_before_who_left } }
}

/// A thread that releases and asks again, without end, lets one in that waits: each time.
fn who_waits_comes_before_who_left<L: RawRwLockFair + Sync>(lock: &RwLock<L, u32>) {
    let waiting = AtomicU32::new(0);
    thread::scope(|scope| {
        let mut held = lock.write();
        let other = scope.spawn(|| {
            for _ in 0..20 {
                waiting.fetch_add(1, Relaxed);
                *lock.write() += 1;
            }
        });
        for round in 0..20 {
            while waiting.load(Relaxed) <= round {
                thread::yield_now();
            }
            // From when it has its place on, the next release lets it in. If releases were not fair, it might never.
            while *held <= round {
                RwLockWriteGuard::bump(&mut held);
            }
        }
        drop(held);
        other.join().expect("it ends");
        let reading = lock.read();
        RwLockReadGuard::unlock_fair(reading);
    });
}
