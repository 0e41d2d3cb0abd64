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

use crate::crew::{self, Keeper, Meter, Timekeeper};
use crate::workload::Workload;
use fastrand::Rng;
use keys::Keys;
use prim::{cost, workload};
use serde::{Deserialize, Serialize};
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::{Argument, On};
use spanlock_records::trial::run::{Found, Outcome, Tally};
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// The most keys.
pub const MAX_KEYS: usize = 1 << 28;

/// The longest stall, in cycles.
pub const MAX_STALL: usize = 1_000_000;

/// The keys that a scan looks at.
pub const SCANNED: usize = 100;

/// How often a key is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// As often as any other.
    Uniform,
    /// The n-th key, in a random order, with a probability in proportion to 1/n.
    Zipfian,
}

impl Chosen {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipfian];
}

by_name!(Chosen);

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// P1's: of a hundred operations 80 search, 10 insert and 10 remove.
    Updates,
    /// 70 search, 10 look at [`SCANNED`] keys in a row, 10 insert and 10 remove.
    Scans,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Updates, Self::Scans];
}

by_name!(Mix);

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Keys from which threads choose.
    pub keys: usize,
    /// How often each is chosen.
    pub chosen: Chosen,
    /// What threads do.
    pub mix: Mix,
    /// Cycles that each operation takes besides, on a simulated machine. Its caches have no limit, so searches there
    /// lack the misses of a set that exceeds real caches.
    pub stall: u32,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, chosen, .. } = self;
        let mix = match self.mix {
            Mix::Updates => "80 % searches",
            Mix::Scans => "70 % searches, 10 % scans",
        };
        write!(f, "set of {keys} {chosen} keys, {mix}")?;
        match self.stall {
            0 => Ok(()),
            stall => write!(f, ", {stall} cycles more each"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "set";
    const KIND: Kind = Kind::Built;
}

impl Workload for Load {
    const ABOUT: &'static str = "Ordered sets: threads search, insert and remove keys";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::whole(
            "keys",
            1..=MAX_KEYS,
            "8388608",
            "Keys from which threads choose; half of them are in the set",
        )
        .simulated("16384"),
        Argument::words("chosen", Chosen::named, "uniform", "How often each key is chosen: uniform, zipfian"),
        Argument::words(
            "mix",
            Mix::named,
            "updates",
            "What threads do: updates (80 % search, 10 % insert, 10 % remove), scans (10 % scan 100 keys, 70 % search)",
        ),
        Argument::whole(
            "stall",
            0..=MAX_STALL,
            "0",
            "Cycles that each operation takes in addition. The machine's caches have no limit: this stands for the \
             misses of a set that exceeds them, such as P1's of 8 M keys",
        )
        .only(On::Simulated),
    ];
}

/// One run.
pub type Trial = spanlock_records::trial::run::Trial<Load>;

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
pub fn run(
    set: &dyn Set,
    filled: u64,
    trial: &Trial,
    meter: &mut dyn Meter,
) -> Result<Outcome, &'static str> {
    assert!(trial.threads > 0 && trial.load.keys > 0);
    if trial.load.mix == Mix::Scans && set.scan(0, 0).is_none() {
        return Err("it has no order");
    }
    let keys = Keys::of(trial.load.chosen, trial.load.keys);
    Ok(crew::tallied(
        trial,
        meter,
        |_, rng, keeper: &Keeper, tally| work(set, keys, trial.load, rng, keeper, tally),
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
