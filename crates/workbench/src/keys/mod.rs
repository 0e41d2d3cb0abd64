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

use crate::crew::{self, Keeper, Meter, Timekeeper};
use crate::set::Chosen;
use crate::set::keys::Keys;
use crate::workload::Workload;
use fastrand::Rng;
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Duration;
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Mode;
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Outcome, Tally};
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// The most keys.
pub const MAX_KEYS: usize = 1 << 24;

/// The bytes of a key, at least: its number must find room.
pub const MIN_LENGTH: usize = 16;

/// The most.
pub const MAX_LENGTH: usize = 1 << 12;

/// The most keys that a range has.
pub const SCANNED: usize = 16;

/// What threads lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// A key.
    Points,
    /// Up to [`SCANNED`] keys in a row.
    Scans,
    /// A key of the thread's own part of them.
    Own,
    /// Keys in a row in that part.
    Apart,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Points, Self::Scans, Self::Own, Self::Apart];

    /// Whether threads keep to their own parts.
    #[must_use]
    pub fn is_disjoint(self) -> bool {
        matches!(self, Self::Own | Self::Apart)
    }

    /// Whether ranges are locked.
    #[must_use]
    pub fn is_scan(self) -> bool {
        matches!(self, Self::Scans | Self::Apart)
    }

    /// In words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Scans => "scans",
            Self::Own => "points in own parts",
            Self::Apart => "scans in own parts",
        }
    }
}

by_name!(Access);

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Keys from which threads choose.
    pub keys: usize,
    /// The bytes of a key.
    pub length: usize,
    /// How often each is chosen.
    pub chosen: Chosen,
    /// What is locked.
    pub access: Access,
    /// Of a hundred operations, those that lock alone.
    pub writes: u8,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            keys,
            length,
            chosen,
            access,
            writes,
        } = self;
        let access = access.about();
        write!(
            f,
            "{access}, {chosen}, of {keys} keys of {length} bytes, {writes} % writes"
        )
    }
}

impl Settings for Load {
    const NAME: &'static str = "keys";
    const KIND: Kind = Kind::Built;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "Locks over keys: threads lock single byte strings, and ranges of them";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "access",
            Access::named,
            "own,apart,points,scans",
            "What is locked: points, scans (up to 16 keys in a row), own (points of a part for each thread), apart \
             (scans in such parts)",
        ),
        Argument::whole(
            "keys",
            1..=MAX_KEYS,
            "65536",
            "Keys from which threads choose",
        )
        .simulated("4096"),
        Argument::whole(
            "length",
            MIN_LENGTH..=MAX_LENGTH,
            "16",
            "Bytes of a key, which is some letters and a number",
        ),
        Argument::words(
            "chosen",
            Chosen::named,
            "uniform",
            "How often each key is chosen: uniform, zipfian",
        ),
        Argument::percent(
            "writes",
            "5",
            "Of a hundred operations, those that lock alone",
        ),
    ];
    const HANGS_AFTER: Option<Duration> = Some(Duration::from_millis(200));
}

/// One run.
pub type Trial = spanlock_records::trial::run::Trial<Load>;

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
pub fn run(
    lock: &dyn KeyLock,
    trial: &Trial,
    meter: &mut dyn Meter,
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
        |thread, rng, keeper: &Keeper, tally| {
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
