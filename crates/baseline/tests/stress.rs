//! The baselines exclude, under random work by several threads. What else they promise the library's conformance suite
//! tests, with its own locks.

use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_baseline::{Bitmap, KernelRw, LustreEx, MAX_HEIGHT, Pnova, Song};
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

const UNITS: usize = 32;

/// Who is in each unit: so many readers, or -1 for a writer. Panics when one meets another that it excludes.
#[derive(Default)]
struct Oracle([AtomicI32; UNITS]);

impl Oracle {
    fn units(&self, range: &Range<u64>) -> &[AtomicI32] {
        &self.0[range.start as usize..range.end as usize]
    }

    fn read(&self, range: &Range<u64>) {
        for unit in self.units(range) {
            assert!(
                unit.fetch_add(1, Ordering::Relaxed) >= 0,
                "a reader met a writer"
            );
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

fn excludes<L: RawRangeMutex + Sync>(raw: L) {
    let lock = RangeMutex::from_raw(raw);
    stress(|oracle, range, _| {
        let _held = lock.lock(range.clone());
        oracle.write(&range);
    });
    assert!(lock.try_lock(..).is_some(), "nothing is left behind");
}

#[test]
fn lustre_ex_excludes() {
    excludes(LustreEx::new());
}

#[test]
fn song_excludes() {
    for height in [1, 4, MAX_HEIGHT] {
        excludes(Song::new(height));
    }
}

#[test]
fn bitmap_excludes() {
    for block in [1, 3, 64] {
        excludes(Bitmap::new(UNITS as u64, block));
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

#[test]
fn kernel_rw_excludes() {
    excludes_and_shares(KernelRw::new());
}

#[test]
fn pnova_rw_excludes() {
    for segment in [1, 3] {
        excludes_and_shares(Pnova::new(UNITS as u64, segment));
    }
}

fn excludes_and_shares<L: RawRangeLock + Sync>(raw: L) {
    let lock = RangeLock::from_raw(raw);
    let soon = Duration::from_micros(20);
    stress(|oracle, range, rng| match rng.u8(..6) {
        0 => {
            if let Some(_held) = lock.try_write(range.clone()) {
                oracle.write(&range);
            }
        }
        1 => {
            if let Some(_held) = lock.try_read(range.clone()) {
                oracle.read(&range);
            }
        }
        2 => {
            if let Some(_held) = lock.try_write_for(range.clone(), soon) {
                oracle.write(&range);
            }
        }
        3 => {
            if let Some(_held) = lock.try_read_for(range.clone(), soon) {
                oracle.read(&range);
            }
        }
        4 => {
            let _held = lock.read(range.clone());
            oracle.read(&range);
        }
        _ => {
            let held = lock.write(range.clone());
            oracle.write(&range);
            let _held = held.downgrade();
            oracle.read(&range);
        }
    });
    assert!(lock.try_write(..).is_some());
}
