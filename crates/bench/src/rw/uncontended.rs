//! What one thread pays for a lock that nobody else wants.

use super::locks::Lock;
use super::target::RwTarget;
use crate::uncontended::repeat;
use serde::{Deserialize, Serialize};
use spanlock::range::raw::Mode;
use std::hint::black_box;
use std::time::Duration;

/// How long so many acquisitions and releases take.
pub fn time<T: RwTarget>(lock: &T, mode: Mode, pairs: u32) -> Duration {
    match mode {
        Mode::Shared => repeat(pairs, || drop(black_box(black_box(lock).read()))),
        Mode::Exclusive => repeat(pairs, || drop(black_box(black_box(lock).write()))),
    }
}

/// One round of one lock: a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The lock's name.
    pub lock: String,
    /// Which of several equal rounds, from 0.
    pub round: u32,
    /// Acquisitions, each with a release, in each mode.
    pub pairs: u32,
    /// Nanoseconds per acquisition for reading and its release.
    pub read_ns: f64,
    /// Nanoseconds per acquisition for writing and its release.
    pub write_ns: f64,
}

impl Record {
    /// Measures one round.
    #[must_use]
    pub fn measure(lock: &Lock, pairs: u32, round: u32) -> Self {
        let each = |mode| {
            let took = lock.measure.uncontended(mode, pairs);
            took.as_nanos() as f64 / f64::from(pairs)
        };
        Self {
            lock: lock.name.to_owned(),
            round,
            pairs,
            read_ns: each(Mode::Shared),
            write_ns: each(Mode::Exclusive),
        }
    }
}
