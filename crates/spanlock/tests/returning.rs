//! A slot lock returns to its list when one thread uses it alone for long, and moves again when threads meet.

use spanlock::range::RangeLock;
use spanlock_testkit::exact::Exact;
use spanlock_testkit::watchdog;
use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

const HANG: Duration = Duration::from_secs(120);

/// A scenario is to end in time.
fn watched<R>(what: &str, work: impl FnOnce() -> R) -> R {
    watchdog::watched(HANG, || (), |()| what.to_owned(), work)
}

/// More acquisitions than a thread makes until it has looked around twice.
const LONG: u64 = 3 << 16;

fn has_moved(lock: &RangeLock) -> bool {
    let described = format!("{:?}", lock.raw());
    assert!(described.contains("has_moved"), "{described}");
    described.contains("has_moved: true")
}

/// Two threads meet until the lock moves.
fn move_to_slots(lock: &RangeLock) {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !has_ended.load(Relaxed) {
                    let held = lock.write(0..8);
                    thread::yield_now();
                    drop(held);
                    if has_moved(lock) {
                        has_ended.store(true, Relaxed);
                    }
                }
            });
        }
    });
}

fn write_alone(lock: &RangeLock) {
    for at in 0..LONG {
        drop(lock.write(at % 7..8));
    }
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

#[test]
fn a_lock_returns_and_moves_again() {
    let lock = RangeLock::new();
    watched("the lock is left alone", || {
        for _ in 0..3 {
            move_to_slots(&lock);
            write_alone(&lock);
            assert!(!has_moved(&lock), "one thread used it alone");
        }
    });
}

/// The same where the thread asks for one range again and again, reads, or asks for narrow ranges far apart.
#[test]
fn a_lock_returns_whatever_is_asked_for() {
    let ask: [fn(&RangeLock, u64); 3] = [
        |lock, _| drop(lock.write(0..1)),
        |lock, at| drop(lock.read(at..at + 2)),
        |lock, at| drop(lock.write(1000 * at..1000 * at + 1)),
    ];
    for ask in ask {
        let lock = RangeLock::new();
        move_to_slots(&lock);
        (0..LONG).for_each(|at| ask(&lock, at));
        assert!(!has_moved(&lock), "one thread used it alone");
    }
}

/// Threads that stay idle may keep the board, so it does not return from a large one.
#[test]
fn a_lock_with_many_slots_does_not_return() {
    for (slots, stays) in [(900, false), (1_100, true)] {
        let lock = RangeLock::new();
        move_to_slots(&lock);
        let held: Vec<_> = (0..slots).map(|at| lock.read(2 * at..=2 * at)).collect();
        drop(held);
        write_alone(&lock);
        assert_eq!(has_moved(&lock), stays, "{slots} ranges were held");
    }
}

/// What another thread holds keeps the lock on its board, and that thread still knows its slot when the lock is back.
#[test]
fn a_holder_keeps_the_lock_from_returning() {
    let lock = RangeLock::new();
    move_to_slots(&lock);
    let (holds, held) = channel();
    let (go_on, goes_on) = channel();
    watched("a holder beside one that is alone", || {
        thread::scope(|scope| {
            let lock = &lock;
            scope.spawn(move || {
                let mine = lock.write(100..200);
                holds.send(()).expect("the test listens");
                goes_on.recv().expect("the test sends");
                drop(mine);
                holds.send(()).expect("the test listens");
                goes_on.recv().expect("the test sends");
                assert!(lock.try_write(0..300).is_none(), "the other one holds 0..1");
                holds.send(()).expect("the test listens");
                drop(lock.write(0..300));
            });
            held.recv().expect("it holds");
            write_alone(lock);
            assert!(has_moved(lock), "a range is held there");
            assert!(lock.try_read(150..151).is_none(), "it is held");
            go_on.send(()).expect("the thread listens");
            held.recv().expect("it does not hold any more");
            write_alone(lock);
            assert!(!has_moved(lock), "one thread used it alone");
            let mine = lock.write(0..1);
            go_on.send(()).expect("the thread listens");
            held.recv().expect("it has tried");
            drop(mine);
        });
    });
}

/// Counters that a range lock protects.
struct Counters([UnsafeCell<u64>; 8]);

// SAFETY: the threads of the test reach each counter under the lock alone.
unsafe impl Sync for Counters {}

impl Counters {
    /// Counts in two neighbours, which are so many positions apart.
    fn count(&self, lock: &RangeLock, start: usize, apart: u64) {
        let range = start as u64 * apart..(start as u64 + 1) * apart + 1;
        let held = lock.write(range);
        for counter in &self.0[start..start + 2] {
            // SAFETY: the range is held exclusively.
            unsafe { *counter.get() += 1 };
        }
        drop(held);
    }

    /// The same, with a range for each, held together.
    fn count_in_two(&self, lock: &RangeLock, start: usize, apart: u64) {
        let at = |counter: usize| counter as u64 * apart;
        let held = lock.write_many([start, start + 1].map(|counter| at(counter)..at(counter) + 1));
        for counter in &self.0[start..start + 2] {
            // SAFETY: the ranges are held exclusively.
            unsafe { *counter.get() += 1 };
        }
        drop(held);
    }
}

/// One thread alone, then all together, in turn. The others come while it is alone, or after the lock has returned.
fn come_and_go(count: impl Fn(&Counters, &RangeLock, usize) + Sync) {
    const THREADS: u64 = 3;
    const ROUNDS: u64 = 6;
    const TOGETHER: u64 = 5_000;
    let lock = RangeLock::new();
    let counters = Counters(Default::default());
    let barrier = Barrier::new(THREADS as usize);
    watched("alone and together in turn", || {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (lock, counters, barrier, count) = (&lock, &counters, &barrier, &count);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let alone = if round % THREADS == thread { LONG } else { 0 };
                        for at in 0..alone + TOGETHER {
                            count(counters, lock, ((at + thread) % 7) as usize);
                        }
                        barrier.wait();
                    }
                });
            }
        });
    });
    let sum: u64 = counters.0.into_iter().map(UnsafeCell::into_inner).sum();
    assert_eq!(sum, 2 * (ROUNDS * LONG + THREADS * ROUNDS * TOGETHER));
}

#[test]
fn no_two_hold_a_range_while_the_lock_comes_and_goes() {
    come_and_go(|counters, lock, start| counters.count(lock, start, 1));
}

/// Ranges so far apart that the lock has buckets while it has slots.
#[test]
fn nor_with_buckets() {
    come_and_go(|counters, lock, start| counters.count_in_two(lock, start, 10_000));
}
