//! Locks over keys: threads lock single keys and ranges of keys that are byte strings.
//!
//! Each key has a counter, which an operation reads, or increments if it locks alone. At the end of a run the counters
//! must have counted all increments. Keys are those of YCSB: a common beginning and a number in decimal digits.
//!
//! | module | what it is |
//! |---|---|
//! | [`table`] | the table of locks: to add one, add a row |
//! | `lock_table` | locks in a tree under a mutex, as databases have them |
//! | `split` | a table in parts, each with a lock of its own |

mod lock_table;
mod split;
pub mod table;

use crate::crew::{self, Meter, Timekeeper};
use crate::set::keys::Keys;
use fastrand::Rng;
use prim::atomic::{AtomicU64, Ordering};
use spanlock::range::raw::Mode;
use spanlock_records::trial::keys::{Load, SCANNED, Trial};
use spanlock_records::trial::run::{Outcome, Tally};

/// A lock over keys that are byte strings.
pub trait KeyLock: Send + Sync {
    /// Calls `inside` while a key is held.
    fn point(&self, key: &[u8], mode: Mode, inside: &mut dyn FnMut());

    /// Calls `inside` while the keys from `from` on and before `to` are held; or does not, if the lock has no ranges.
    fn scan(&self, from: &[u8], to: &[u8], mode: Mode, inside: &mut dyn FnMut()) -> Scanned;
}

/// Whether a lock can lock ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// It has.
    Yes,
    /// It has single keys only.
    PointsOnly,
}

/// Runs a trial.
///
/// # Errors
/// Why the lock cannot do this.
///
/// # Panics
/// When the trial has no threads, or fewer keys than threads.
pub fn run<K: Timekeeper>(
    lock: &dyn KeyLock,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Result<Outcome, &'static str> {
    let load = trial.load;
    assert!(trial.threads > 0 && load.keys >= trial.threads);
    if load.access.is_scan() {
        let (from, to) = (Key::of(load.length, 0), Key::of(load.length, 1));
        let scanned = lock.scan(&from.0, &to.0, Mode::Shared, &mut || {});
        if scanned == Scanned::PointsOnly {
            return Err("it locks single keys");
        }
    }
    let counters: Vec<AtomicU64> = (0..load.keys).map(|_| AtomicU64::new(0)).collect();
    Ok(crew::tallied(
        trial,
        meter,
        |thread, rng, keeper: &K, tally| {
            let part = match load.access.is_disjoint() {
                true => load.keys / trial.threads,
                false => load.keys,
            };
            let first = match load.access.is_disjoint() {
                true => part * thread,
                false => 0,
            };
            let counters = &counters[first..first + part];
            work(lock, first as u64, counters, load, rng, keeper, tally);
        },
        |all| {
            let counted: u64 = counters
                .iter()
                .map(|counter| counter.load(Ordering::Relaxed))
                .sum();
            all.data(all.added.wrapping_sub(counted))
        },
    ))
}

/// A key: some letters, and its number.
struct Key(Vec<u8>);

impl Key {
    const DIGITS: usize = 12;

    fn of(length: usize, number: u64) -> Self {
        let mut key = Self(vec![b'u'; length]);
        key.set(number);
        key
    }

    #[inline]
    fn set(&mut self, number: u64) {
        let start = self.0.len() - Self::DIGITS;
        let mut left = number;
        for digit in self.0[start..].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
}

fn work(
    lock: &dyn KeyLock,
    first: u64,
    counters: &[AtomicU64],
    load: Load,
    mut rng: Rng,
    keeper: &impl Timekeeper,
    tally: &mut Tally,
) {
    let keys = Keys::of(load.chosen, counters.len());
    let [mut from, mut to] = [0, 1].map(|number| Key::of(load.length, number));
    keeper.until_stop(|phase| {
        let at = keys.draw(&mut rng) as usize;
        let mode = match rng.u8(..100) < load.writes {
            true => Mode::Exclusive,
            false => Mode::Shared,
        };
        let count = match load.access.is_scan() {
            true => rng.usize(1..=SCANNED).min(counters.len() - at),
            false => 1,
        };
        from.set(first + at as u64);
        let mut inside = || {
            for counter in &counters[at..at + count] {
                // The lock excludes: no read-modify-write.
                let value = counter.load(Ordering::Relaxed);
                if mode == Mode::Exclusive {
                    counter.store(value + 1, Ordering::Relaxed);
                } else {
                    std::hint::black_box(value);
                }
            }
        };
        if load.access.is_scan() {
            to.set(first + (at + count) as u64);
            lock.scan(&from.0, &to.0, mode, &mut inside);
        } else {
            lock.point(&from.0, mode, &mut inside);
        }
        let counts = phase.counts();
        match mode {
            Mode::Exclusive => {
                tally.added = tally.added.wrapping_add(count as u64);
                tally.writes += counts;
            }
            Mode::Shared => tally.reads += counts,
        }
    });
}
