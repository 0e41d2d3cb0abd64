//! The baselines exclude, serve first come first served, and give up cleanly.

use spanlock::range::{RangeLock, RangeMutex};
use spanlock_bench::baseline::{KernelRw, LustreEx};
use spanlock_bench::target::{Readers, Target};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

const UNITS: usize = 32;
const LONG: Duration = Duration::from_secs(60);

/// Who is in each unit: so many readers, or -1 for a writer. Panics when one meets another that it excludes.
#[derive(Default)]
struct Oracle([AtomicI32; UNITS]);

impl Oracle {
    fn units(&self, range: &Range<u64>) -> &[AtomicI32] {
        &self.0[range.start as usize..range.end as usize]
    }

    fn read(&self, range: &Range<u64>, readers: Readers) {
        for unit in self.units(range) {
            let before = unit.fetch_add(1, Ordering::Relaxed);
            match readers {
                Readers::Share => assert!(before >= 0, "a reader met a writer"),
                Readers::Exclude => assert_eq!(before, 0, "a reader met somebody"),
            }
        }
        thread::yield_now();
        for unit in self.units(range) {
            unit.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn write(&self, range: &Range<u64>) {
        for unit in self.units(range) {
            assert_eq!(unit.swap(-1, Ordering::Relaxed), 0, "a writer met somebody");
        }
        thread::yield_now();
        for unit in self.units(range) {
            unit.store(0, Ordering::Relaxed);
        }
    }
}

fn random_range(rng: &mut fastrand::Rng) -> Range<u64> {
    let (a, b) = (rng.u64(..UNITS as u64), rng.u64(..UNITS as u64));
    a.min(b)..a.max(b) + 1
}

/// Four threads that do `operation` with random ranges.
fn stress(operation: impl Fn(&Oracle, Range<u64>, &mut fastrand::Rng) + Sync) {
    let oracle = Oracle::default();
    thread::scope(|scope| {
        for seed in 0..4 {
            let (oracle, operation) = (&oracle, &operation);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..3000 {
                    operation(oracle, random_range(&mut rng), &mut rng);
                }
            });
        }
    });
}

fn excludes<T: Target>(lock: &T) {
    stress(|oracle, range, rng| {
        if rng.bool() {
            let _held = lock.read(range.clone());
            oracle.read(&range, T::READERS);
        } else {
            let _held = lock.write(range.clone());
            oracle.write(&range);
        }
    });
    // Nothing is left behind: the whole range is free at once.
    drop(lock.write(0..UNITS as u64));
}

#[test]
fn kernel_rw_excludes() {
    excludes(&RangeLock::from_raw(KernelRw::new()));
}

#[test]
fn lustre_ex_excludes() {
    excludes(&RangeMutex::from_raw(LustreEx::new()));
}

#[test]
fn kernel_rw_excludes_with_tries_time_limits_and_downgrades() {
    let lock = RangeLock::from_raw(KernelRw::new());
    let soon = Duration::from_micros(20);
    stress(|oracle, range, rng| match rng.u8(..5) {
        0 => {
            if let Some(_held) = lock.try_write(range.clone()) {
                oracle.write(&range);
            }
        }
        1 => {
            if let Some(_held) = lock.try_read(range.clone()) {
                oracle.read(&range, Readers::Share);
            }
        }
        2 => {
            if let Some(_held) = lock.try_write_for(range.clone(), soon) {
                oracle.write(&range);
            }
        }
        3 => {
            if let Some(_held) = lock.try_read_for(range.clone(), soon) {
                oracle.read(&range, Readers::Share);
            }
        }
        _ => {
            let held = lock.write(range.clone());
            oracle.write(&range);
            let _held = held.downgrade();
            oracle.read(&range, Readers::Share);
        }
    });
    assert!(lock.try_write(..).is_some());
}

/// P1 §3: A = [1, 3) is held, B = [2, 7) waits for A, and C = [4, 5) waits for B, though nobody holds any of it.
#[test]
fn a_request_waits_behind_a_waiting_one() {
    let lock = RangeMutex::from_raw(LustreEx::new());
    let order = Mutex::new(Vec::new());
    let a = lock.lock(1..3);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _b = lock.lock(2..7);
            order.lock().unwrap().push('B');
        });
        while lock.try_lock(4..5).is_some() {
            thread::yield_now();
        }
        // B is in the tree now, or else C would have been granted.
        scope.spawn(|| {
            let _c = lock.lock(4..5);
            order.lock().unwrap().push('C');
        });
        assert!(lock.try_lock(4..5).is_none());
        assert!(order.lock().unwrap().is_empty());
        drop(a);
    });
    assert_eq!(*order.lock().unwrap(), ['B', 'C']);
}

#[test]
fn readers_wait_behind_a_waiting_writer() {
    let lock = RangeLock::from_raw(KernelRw::new());
    let a = lock.read(1..3);
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write(2..7)));
        while lock.try_read(4..5).is_some() {
            thread::yield_now();
        }
        assert!(lock.try_read(1..2).is_some(), "nobody is in the way there");
        drop(a);
    });
    assert!(lock.try_write(..).is_some());
}

/// The one that gave up is in nobody's way, though those behind it had counted it.
#[test]
fn who_gives_up_lets_those_behind_through() {
    let lock = RangeMutex::from_raw(LustreEx::new());
    let a = lock.lock(1..3);
    thread::scope(|scope| {
        let b = scope.spawn(|| lock.try_lock_for(2..7, Duration::from_millis(50)).is_some());
        let c = scope.spawn(|| lock.try_lock_for(4..5, LONG).is_some());
        assert!(!b.join().unwrap());
        assert!(c.join().unwrap());
    });
    assert!(lock.try_lock(3..).is_some());
    drop(a);
    assert!(lock.try_lock(..).is_some());
}

#[test]
fn a_downgrade_lets_readers_in_and_keeps_writers_out() {
    let lock = RangeLock::from_raw(KernelRw::new());
    let writer = lock.write(0..10);
    thread::scope(|scope| {
        let reader = scope.spawn(|| lock.try_read_for(5..15, LONG).is_some());
        // It is in the tree, or else a writer of what it alone wants would be granted.
        while lock.try_write(12..13).is_some() {
            thread::yield_now();
        }
        let held = writer.downgrade();
        assert!(reader.join().unwrap());
        assert!(lock.try_write(0..1).is_none());
        assert!(lock.try_read(0..1).is_some());
        drop(held);
    });
    assert!(lock.try_write(..).is_some());
}
