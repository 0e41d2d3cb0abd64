//! Ordered sets (P1 §7.1): threads search, insert and remove keys of a set that is half full.
//!
//! The keys that are in the set to begin with are drawn at random. At the end of a run the set must have as many keys
//! as were inserted and not removed. About as many are inserted as removed, so the set stays half full, and the next
//! run may begin with it.
//!
//! | module | what it is |
//! |---|---|
//! | [`table`] | the table of sets: to add one, add a row |
//! | `keys` | how threads choose keys |

pub(crate) mod keys;
pub mod table;

use crate::crew::{self, Meter, Timekeeper};
use fastrand::Rng;
use keys::Keys;
use prim::{cost, workload};
use spanlock_records::trial::run::{Found, Outcome, Tally};
use spanlock_records::trial::set::{Load, Mix, SCANNED, Trial};

/// A set of numbers that threads share.
#[expect(clippy::len_without_is_empty, reason = "the count is for a check")]
pub trait Set: Send + Sync {
    /// Whether the set has the key.
    fn contains(&self, key: u64) -> bool;

    /// Inserts a key; `false` if the set has it.
    fn insert(&self, key: u64) -> bool;

    /// Removes a key; `false` if the set does not have it.
    fn remove(&self, key: u64) -> bool;

    /// Looks at so many keys in a row, from this one on or the next larger, or at fewer if there are no more. Returns
    /// their number; `None` if the set has no order.
    fn scan(&self, from: u64, most: usize) -> Option<usize>;

    /// The number of keys, while no thread changes the set. `None` if [`insert`](Self::insert) is `true` for each key:
    /// it cannot be known how many there should be.
    fn len(&self) -> Option<usize>;
}

/// Fills a set until half of the keys are in it, by so many threads. Returns their number.
pub fn fill(set: &dyn Set, keys: usize, threads: usize, seed: u64) -> u64 {
    let threads = threads.min(keys);
    let share = |thread| {
        let mut rng = crew::rng(!seed, 0, thread);
        let share = (keys / 2 + thread) / threads;
        let mut left = share;
        while left > 0 {
            let key = rng.u64(..keys as u64);
            left -= usize::from(!set.contains(key) && set.insert(key));
        }
        share as u64
    };
    workload::crew(threads, share, || {}).into_iter().sum()
}

/// Runs a trial on a set that has so many keys.
///
/// # Errors
/// Why the set cannot do this.
///
/// # Panics
/// When the trial has no threads or no keys.
pub fn run<K: Timekeeper>(
    set: &dyn Set,
    filled: u64,
    trial: &Trial,
    meter: &mut impl Meter,
) -> Result<Outcome, &'static str> {
    assert!(trial.threads > 0 && trial.load.keys > 0);
    if trial.load.mix == Mix::Scans && set.scan(0, 0).is_none() {
        return Err("it has no order");
    }
    let keys = Keys::of(trial.load.chosen, trial.load.keys);
    Ok(crew::tallied(
        trial,
        meter,
        |_, rng, keeper: &K, tally| work(set, keys, trial.load, rng, keeper, tally),
        |all| {
            set.len().map_or(Found::Nothing, |found| Found::Keys {
                expected: filled.wrapping_add(all.added),
                found: found as u64,
            })
        },
    ))
}

fn work(
    set: &dyn Set,
    keys: Keys,
    load: Load,
    mut rng: Rng,
    keeper: &impl Timekeeper,
    tally: &mut Tally,
) {
    let scans = match load.mix {
        Mix::Updates => 0,
        Mix::Scans => 10,
    };
    keeper.until_stop(|phase| {
        let key = keys.draw(&mut rng);
        cost::work(load.stall.into());
        match rng.u8(..100) {
            0..10 => {
                let inserted = u64::from(set.insert(key));
                tally.added = tally.added.wrapping_add(inserted);
            }
            10..20 => {
                let removed = u64::from(set.remove(key));
                tally.added = tally.added.wrapping_sub(removed);
            }
            die if die < 20 + scans => {
                std::hint::black_box(set.scan(key, SCANNED));
            }
            _ => {
                std::hint::black_box(set.contains(key));
            }
        }
        tally.writes += phase.counts();
    });
}
