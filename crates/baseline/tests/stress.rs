//! The baselines exclude, serve first come first served, and give up cleanly.

use spanlock::range::raw::RawRangeMutex;
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_bench::baseline::{Bitmap, KernelRw, LustreEx, MAX_HEIGHT, Song};
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
fn song_excludes() {
    for height in [1, 4, MAX_HEIGHT] {
        excludes(&RangeMutex::from_raw(Song::new(height)));
    }
}

#[test]
fn bitmap_excludes() {
    for block in [1, 3, 64] {
        excludes(&RangeMutex::from_raw(Bitmap::new(UNITS as u64, block)));
    }
}

/// Ranges that need several words, and so are taken in steps that others may stop.
#[test]
fn bitmap_excludes_where_ranges_span_words() {
    let lock = RangeMutex::from_raw(Bitmap::new(100 * UNITS as u64, 1));
    stress(|oracle, range, rng| {
        let wide = range.start * 100..range.end * 100;
        let soon = Duration::from_micros(20);
        let held = match rng.u8(..3) {
            0 => lock.try_lock(wide),
            1 => lock.try_lock_for(wide, soon),
            _ => Some(lock.lock(wide)),
        };
        if let Some(_held) = held {
            oracle.write(&range);
        }
    });
    assert!(lock.try_lock(..).is_some());
}

/// What both promise of positions at the edges, of neighbours, and of giving up.
fn keeps_the_edges<L: RawRangeMutex + Sync>(lock: &RangeMutex<L>) {
    let max = u64::MAX;
    let first = lock.try_lock(0..1).unwrap();
    let last = lock.try_lock(max..=max).unwrap();
    assert!(lock.try_lock(0..=0).is_none());
    assert!(lock.try_lock(max - 1..=max).is_none());
    assert!(lock.try_lock(..).is_none());
    let adjacent = [1..2, 2..3, 3..5].map(|range| lock.try_lock(range).unwrap());
    assert!(lock.try_lock(4..6).is_none());
    assert!(lock.try_lock(7..7).is_some(), "an empty range");
    assert!(lock.try_lock_for(1..2, Duration::from_millis(2)).is_none());
    drop(first);
    assert!(lock.try_lock(0..1).is_some());
    assert!(lock.try_lock(0..2).is_none());
    drop(adjacent);
    assert!(lock.try_lock(0..5).is_some());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.try_lock_for(max - 1.., LONG).is_some());
        drop(last);
        assert!(waiter.join().unwrap());
    });
    assert!(lock.try_lock(..).is_some());
}

#[test]
fn song_keeps_the_edges() {
    for height in [1, 4, MAX_HEIGHT] {
        let lock = RangeMutex::from_raw(Song::new(height));
        keeps_the_edges(&lock);
        let held = lock.try_lock(1 << 63..).unwrap();
        assert!(lock.try_lock(..1 << 63).is_some(), "the highest bit counts");
        drop(held);
    }
}

#[test]
fn bitmap_keeps_the_edges() {
    for units in [8, 64, 65, 1000] {
        keeps_the_edges(&RangeMutex::from_raw(Bitmap::new(units, 1)));
    }
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
