//! A forked child has one thread, and locks that other threads of the parent were using.
#![cfg(target_os = "linux")]

mod common;

use common::{await_sleepers, status_of_child, watched};
use spanlock::range::RangeLock;
use spanlock_testkit::exact::Exact;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

/// Keeps threads walking another lock, such that some are forked in the midst of it.
fn while_others_are_busy(f: impl FnOnce()) {
    let busy = RangeLock::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..3 {
            let (busy, done) = (&busy, &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    drop((busy.read(at..at + 9), busy.write(20 + at..21 + at)));
                }
            });
        }
        watched(busy.raw(), f);
        done.store(true, Relaxed);
    });
}

#[test]
fn a_child_locks_and_unlocks() {
    let lock = RangeLock::new();
    drop(lock.write(0..10));
    while_others_are_busy(|| {
        for _ in 0..20 {
            let status = status_of_child(|| {
                for at in 0..500 {
                    drop((lock.write(at..at + 1), lock.read(1_000..2_000)));
                }
                lock.try_write(..).is_some()
            });
            assert_eq!(status, 0);
        }
    });
}

/// Walks that were under way in the parent's threads hold back no nodes in the child: the memory in use is bounded.
#[test]
fn a_child_reuses_its_nodes() {
    const PAIRS: usize = 10_000;
    let lock = RangeLock::new();
    drop(lock.write(0..10));
    while_others_are_busy(|| {
        for _ in 0..20 {
            let status = status_of_child(|| {
                let before = heap_in_use();
                for _ in 0..PAIRS {
                    drop((lock.read(0..10), lock.read(5..15)));
                }
                heap_in_use() < before + 32 * PAIRS
            });
            assert_eq!(status, 0);
        }
    });
}

/// Bytes that the C library's allocator, which is Rust's, has given out.
fn heap_in_use() -> usize {
    // SAFETY: mallinfo2 has no preconditions.
    unsafe { libc::mallinfo2() }.uordblks
}

/// The parent's other threads are gone in the child; what they held is held.
#[test]
fn ranges_of_other_threads_stay_held() {
    let lock = RangeLock::new();
    let held = lock.write(0..10);
    common::elsewhere(|| {
        let status = status_of_child(|| {
            lock.try_read(5..6).is_none()
                && lock.try_read(10..20).is_some()
                && lock.try_read_for(0..1, Duration::from_millis(2)).is_none()
        });
        assert_eq!(status, 0);
    });
    drop(held);
}

/// The forking thread's own ranges are its child's own too, to release there.
#[test]
fn ranges_of_the_forking_thread_are_released_by_either() {
    let lock = RangeLock::new();
    let mut held = Some(lock.write(0..10));
    // SAFETY: as in `status_of_child`.
    let status = {
        let held = Cell::new(held.take());
        let status = status_of_child(|| {
            let refused = lock.try_read(5..6).is_none();
            drop(held.take());
            refused && lock.try_write(..).is_some()
        });
        assert!(lock.try_read(5..6).is_none());
        status
    };
    assert_eq!(status, 0);
    assert!(lock.try_write(..).is_some());
}

/// A lock in which others slept for long, rather than just now.
#[test]
fn a_child_uses_the_free_part_of_a_lock_that_others_sleep_in() {
    let lock = RangeLock::new();
    let held = lock.write(0..10);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(5..15)));
        await_sleepers(lock.raw(), 1);
        thread::sleep(Duration::from_millis(10));
        let status =
            status_of_child(|| lock.try_read(5..6).is_none() && lock.try_write(20..30).is_some());
        assert_eq!(status, 0);
        drop(held);
    });
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A child has a timer of its own, and its parent's does nothing there.
#[test]
fn turns_of_tasks_end_in_a_child() {
    let lock = RangeLock::new();
    let held = Cell::new(Some(lock.write(0..10)));
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let limit = Duration::from_secs(1);
    let mut first = lock.try_write_async_for(0..10, limit);
    let mut second = lock.write_async(0..10);
    let over = Instant::now() + limit;
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut first).poll(&mut nobody).is_pending());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut second).poll(&mut context).is_pending());
    let status = status_of_child(|| {
        // What the parent's timer was to do would be done by then.
        while Instant::now() < over {
            thread::sleep(Duration::from_millis(1));
        }
        // The first is woken and is not polled, so the second waits for the end of a turn.
        drop(held.take());
        while !woken.0.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        Pin::new(&mut second).poll(&mut context).is_ready()
    });
    assert_eq!(status, 0);
}
