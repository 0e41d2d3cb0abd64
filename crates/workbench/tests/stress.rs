//! The baselines exclude, under random work by several threads. What else they promise the library's conformance suite
//! tests, with its own locks.

use spanlock::range::raw::{RawRangeLock, RawRangeMutex};
use spanlock::range::{RangeLock, RangeMutex};
use spanlock_testkit::exclusion::{Holder, Slot, Visit};
use spanlock_testkit::setting;
use spanlock_testkit::watchdog::{HANG, watched};
use spanlock_workbench::baseline::{Bitmap, KernelRw, LustreEx, MAX_HEIGHT, Pnova, Song};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const UNITS: usize = 32;

/// The units, which holders of a range visit.
struct Units(Vec<Slot>);

impl Units {
    /// A holder's stay in a range. Called by holders only.
    fn stay(&self, holder: Holder, range: &Range<u64>) {
        let units = &self.0[range.start as usize..range.end as usize];
        // SAFETY: the caller holds the range, and releases it after this.
        let visit = unsafe { Visit::begin(units, holder) };
        thread::yield_now();
        visit.end();
    }

    fn read(&self, range: &Range<u64>) {
        self.stay(Holder::Reader, range);
    }

    fn write(&self, range: &Range<u64>) {
        self.stay(Holder::Writer(0), range);
    }
}

fn random_range(rng: &mut fastrand::Rng) -> Range<u64> {
    let (a, b) = (rng.u64(..UNITS as u64), rng.u64(..UNITS as u64));
    a.min(b)..a.max(b) + 1
}

const THREADS: u64 = 4;

/// Threads that do `operation` with random ranges: `SPANLOCK_STRESS_OPS` times, all together.
fn stress(operation: impl Fn(&Units, Range<u64>, &mut fastrand::Rng) + Sync) {
    let units = Units(Slot::many(UNITS as u64));
    let done = AtomicU64::new(0);
    let progress = || done.load(Relaxed);
    let report = |done: &u64| format!("after {done} operations");
    let work = |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..setting("SPANLOCK_STRESS_OPS", 12_000) / THREADS {
            operation(&units, random_range(&mut rng), &mut rng);
            done.fetch_add(1, Relaxed);
        }
    };
    watched(HANG, progress, report, || {
        thread::scope(|scope| {
            for seed in 0..THREADS {
                let work = &work;
                scope.spawn(move || work(seed));
            }
        });
    });
}

fn excludes<L: RawRangeMutex + Sync>(raw: L) {
    let lock = RangeMutex::from_raw(raw);
    stress(|units, range, _| {
        let _held = lock.lock(range.clone());
        units.write(&range);
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
    stress(|units, range, rng| {
        let wide = range.start * 100..range.end * 100;
        let soon = Duration::from_micros(20);
        let held = match rng.u8(..3) {
            0 => lock.try_lock(wide),
            1 => lock.try_lock_for(wide, soon),
            _ => Some(lock.lock(wide)),
        };
        if let Some(_held) = held {
            units.write(&range);
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
    stress(|units, range, rng| match rng.u8(..6) {
        0 => {
            if let Some(_held) = lock.try_write(range.clone()) {
                units.write(&range);
            }
        }
        1 => {
            if let Some(_held) = lock.try_read(range.clone()) {
                units.read(&range);
            }
        }
        2 => {
            if let Some(_held) = lock.try_write_for(range.clone(), soon) {
                units.write(&range);
            }
        }
        3 => {
            if let Some(_held) = lock.try_read_for(range.clone(), soon) {
                units.read(&range);
            }
        }
        4 => {
            let _held = lock.read(range.clone());
            units.read(&range);
        }
        _ => {
            let held = lock.write(range.clone());
            units.write(&range);
            let _held = held.downgrade();
            units.read(&range);
        }
    });
    assert!(lock.try_write(..).is_some());
}
