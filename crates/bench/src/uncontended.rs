//! What one thread pays for a lock that nobody else wants.

use crate::registry::Lock;
use crate::target::{Readers, Target};
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Mode;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

/// What is locked.
const RANGE: Range<u64> = 0..64;

/// How long so many acquisitions and releases of one range take.
pub fn time<T: Target>(lock: &T, mode: Mode, pairs: u32) -> Duration {
    match mode {
        Mode::Shared => repeat(pairs, || drop(black_box(lock).read(black_box(RANGE)))),
        Mode::Exclusive => repeat(pairs, || drop(black_box(lock).write(black_box(RANGE)))),
    }
}

pub(crate) fn repeat(pairs: u32, pair: impl Fn()) -> Duration {
    // The thread's node pool and the caches get warm.
    (0..1000).for_each(|_| pair());
    let start = Instant::now();
    (0..pairs).for_each(|_| pair());
    start.elapsed()
}

/// A lock in one of its modes.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The lock.
    pub lock: &'static Lock,
    /// The mode it is acquired in.
    pub mode: Mode,
}

impl Subject {
    /// The modes that a lock has.
    pub fn all_of(lock: &'static Lock) -> impl Iterator<Item = Self> {
        let modes: &[Mode] = match lock.measure.readers() {
            Readers::Share => &[Mode::Exclusive, Mode::Shared],
            Readers::Exclude => &[Mode::Exclusive],
        };
        modes.iter().map(move |&mode| Self { lock, mode })
    }

    /// Measures one round.
    #[must_use]
    pub fn measure(self, pairs: u32, round: u32) -> Record {
        let Self { lock, mode } = self;
        let took = lock.measure.uncontended(lock.values, mode, pairs);
        Record {
            lock: lock.name.to_owned(),
            mode: match mode {
                Mode::Shared => "read".to_owned(),
                Mode::Exclusive => "write".to_owned(),
            },
            round,
            pairs,
            ns_per_pair: took.as_nanos() as f64 / f64::from(pairs),
            rmw_by_reading: lock.rmw.to_owned(),
        }
    }
}

/// One round of one lock in one mode: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The lock's name.
    pub lock: String,
    /// `read` or `write`.
    pub mode: String,
    /// Which of several equal rounds, from 0.
    pub round: u32,
    /// Acquisitions, each with a release, in the round.
    pub pairs: u32,
    /// Nanoseconds per acquisition and release.
    pub ns_per_pair: f64,
    /// Atomic read-modify-writes per acquisition and release, found by reading the lock's code and not by measuring.
    pub rmw_by_reading: String,
}
