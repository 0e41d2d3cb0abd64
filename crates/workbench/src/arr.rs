//! ArrBench (P1 §7.1): threads read or increment ranges of an array, under a range lock.
//!
//! An operation locks a range of slots and then adds up what they hold, or adds one to each. Between operations a
//! thread does nothing, for a while of random length. At the end the array must hold exactly what was added: a lock
//! that let two writers meet has most likely lost some of it.

mod array;

pub use array::{Array, Ranges};

use crate::crew::{self, Keeper, Meter, Timekeeper};
use crate::target::AnyLock;
use crate::workload::{Makes, OnRanges, Workload};
use fastrand::Rng;
use prim::clock::Duration;
use prim::cost;
use serde::{Deserialize, Serialize};
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::argument::Argument;
use spanlock_records::trial::run::{Found, Outcome, Tally};
use spanlock_records::trial::setting::{MAX_THREADS, Resource, SLOTS};
use spanlock_records::trial::settings::Settings;
use spanlock_records::trial::times::Times;
use std::fmt;
use std::hint::black_box;
use std::ops::{Not, Range};

/// The ranges that are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The whole array.
    Full,
    /// The array divided by the threads, one part for each; traversed as many times as there are threads, so that
    /// an operation is the same work for any number of them.
    Disjoint,
    /// Between two random slots, both included.
    Random,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Disjoint, Self::Random];
}

by_name!(Variant);

/// The no-ops between two operations in P1, at most.
pub const PAUSES: u64 = 2048;

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The ranges that are locked.
    pub variant: Variant,
    /// Of a hundred operations, those that read.
    pub reads: u8,
    /// The no-ops between two operations, at most.
    pub pauses: u64,
    /// Whether acquisitions are timed, which costs two readings of the clock each.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub latency: bool,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} range, {} % reads", self.variant, self.reads)?;
        match self.pauses {
            PAUSES => Ok(()),
            pauses => write!(f, ", pauses up to {pauses}"),
        }
    }
}

impl Settings for Load {
    const NAME: &'static str = "arr";
    const KIND: Kind = Kind::Ranges;
}

/// What users are told of it.
pub(crate) const LATENCY: Argument = Argument::flag(
    "latency",
    "Time each acquisition, which costs two readings of the clock",
);

impl Workload for Load {
    const ABOUT: &'static str = "ArrBench: threads read or increment ranges of an array";
    const ARGUMENTS: &'static [Argument] = &[
        Argument::words(
            "variant",
            Variant::named,
            "full,disjoint,random",
            "Ranges: full, disjoint, random",
        ),
        Argument::percent(
            "reads",
            "80",
            "The percentage of operations that read. The paper has 100,80,60",
        )
        .simulated("100,60"),
        Argument::whole(
            "pauses",
            0..=1 << 20,
            "2048",
            "The most no-ops between two operations",
        ),
        LATENCY,
    ];
    const SECONDS: [&'static str; 2] = ["0.05", "0.002"];
    const HANGS_AFTER: Option<Duration> = Some(Duration::ZERO);
}

/// One run.
type Trial = spanlock_records::trial::run::Trial<Load>;

impl OnRanges for Load {
    fn run(
        lock: &dyn Makes,
        trial: &Trial,
        meter: &mut dyn Meter,
    ) -> Result<Outcome, &'static str> {
        assert!((1..=MAX_THREADS).contains(&trial.threads));
        let (lock, array) = (&*lock.make(Resource::ARRAY), Array::new(SLOTS));
        Ok(crew::tallied(
            trial,
            meter,
            |thread, rng, keeper: &Keeper, tally| {
                work(lock, &array, trial, thread, rng, keeper, tally);
            },
            |all| Found::Array {
                added: all.added,
                found: array.total(),
            },
        ))
    }
}

fn work(
    lock: &dyn AnyLock,
    array: &Array,
    trial: &Trial,
    thread: usize,
    mut rng: Rng,
    keeper: &impl Timekeeper,
    tally: &mut Tally,
) {
    let ranges = Ranges::of(trial.load.variant, thread, trial.threads);
    tally.times = trial.load.latency.then(Times::default);
    keeper.until_stop(|phase| {
        let (range, passes) = ranges.next(&mut rng);
        if rng.u8(..100) < trial.load.reads {
            let held = crew::acquire(tally, phase, || lock.read(positions(&range)));
            for _ in 0..passes {
                black_box(array.sum(range.clone()));
            }
            drop(held);
        } else {
            let held = crew::acquire(tally, phase, || lock.write(positions(&range)));
            for _ in 0..passes {
                array.increment(range.clone());
            }
            drop(held);
            tally.added += (range.len() * passes) as u64;
        }
        tally.writes += phase.counts();
        if trial.load.pauses > 0 {
            pause(rng.u64(..=trial.load.pauses));
        }
    });
}

fn positions(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// Does so many no-ops.
#[inline]
pub(crate) fn pause(no_ops: u64) {
    for _ in 0..no_ops {
        // Nothing to hide, so no access to memory either.
        black_box(());
    }
    cost::work(no_ops * cost::steps().no_op);
}
