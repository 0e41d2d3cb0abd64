//! BRAVO as published.

use lock_api::RwLock;
use prim::cell::UnsafeCell;
use prim::{model, thread};
use spanlock::rw::{FutexRwLock, WritersFirst};
use spanlock_baseline_loom::PaperBravo;
use std::sync::Arc;

struct Value(UnsafeCell<u64>);

// SAFETY: the value is touched under the lock; that this suffices is what the models check.
unsafe impl Sync for Value {}

type Lock = RwLock<PaperBravo<FutexRwLock>, Value>;

fn new() -> Arc<Lock> {
    let raw = PaperBravo::over(FutexRwLock::<WritersFirst>::new());
    Arc::new(RwLock::from_raw(raw, Value(UnsafeCell::new(0))))
}

fn read(lock: &Lock) -> u64 {
    // SAFETY: held shared; loom checks.
    lock.read().0.with(|value| unsafe { *value })
}

fn write(lock: &Lock) {
    // SAFETY: held exclusively; loom checks.
    lock.write().0.with_mut(|value| unsafe { *value += 1 });
}

fn spawn(lock: &Arc<Lock>, f: fn(&Lock)) -> thread::JoinHandle<()> {
    let lock = Arc::clone(lock);
    thread::spawn(move || f(&lock))
}

#[test]
fn a_fast_reader_and_a_writer() {
    model(Some(3), || {
        let lock = new();
        read(&lock); // The next is fast.
        let writer = spawn(&lock, write);
        read(&lock);
        writer.join().unwrap();
        assert_eq!(read(&lock), 1);
    });
}

#[test]
fn two_writers() {
    model(Some(3), || {
        let lock = new();
        read(&lock);
        let writer = spawn(&lock, write);
        write(&lock);
        writer.join().unwrap();
        assert_eq!(read(&lock), 2);
    });
}

#[test]
fn a_bias_brings_what_writers_did() {
    model(Some(2), || {
        let lock = new();
        let writer = spawn(&lock, write);
        let reader = spawn(&lock, |lock| _ = read(lock));
        read(&lock);
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

/// The bias may be taken off and set again between the two looks of a fast reader.
#[test]
fn fast_readers_and_a_writer() {
    model(Some(2), || {
        let lock = new();
        read(&lock);
        let writer = spawn(&lock, write);
        let reader = spawn(&lock, |lock| _ = read(lock));
        read(&lock);
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn readers_are_inside_together() {
    model(Some(2), || {
        let lock = new();
        let mine = lock.read();
        // Joined while the lock is held: a lock that excluded the other would not end.
        spawn(&lock, |lock| _ = read(lock)).join().unwrap();
        drop(mine);
    });
}
