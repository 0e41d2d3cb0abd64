//! Words that all threads want, and the simplest locks on them: the cost of contention on a machine.
//!
//! Counters are changed without a pause. Locks guard one line, which is written inside (or read, by 99 of 100 of the
//! reader-writer lock's), and there is a pause of about a hundred cycles outside. They spin without end, as published.

use crate::crew::{Meter, Signal, tallied};
use crate::rw::guarded::Guarded;
use crate::rw::{steps, until_stop};
use crate::workload::Workload;
use fastrand::Rng;
use prim::atomic::{AtomicU64, Ordering::*};
use prim::workload::until_changed;
use serde::{Deserialize, Serialize};
use spanlock_records::by_name;
use spanlock_records::record::Kind;
use spanlock_records::trial::run::{Outcome, Tally};
use spanlock_records::trial::settings::Settings;
use std::fmt;

/// Steps of the pause outside.
const OUTSIDE: u32 = 50;

/// Of a hundred operations on the reader-writer lock, those that write.
const WRITES: u32 = 1;

/// The operation that is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// An atomic addition to one word.
    Add,
    /// The same by a load and a compare-exchange, until one succeeds.
    CompareExchange,
    /// A lock that is tested, then tested and set.
    Ttas,
    /// A queue lock in which each thread waits on a line of its own.
    Mcs,
    /// A reader-writer lock of one count; one operation of a hundred writes.
    RwCounter,
}

impl Kernel {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Add,
        Self::CompareExchange,
        Self::Ttas,
        Self::Mcs,
        Self::RwCounter,
    ];
}

by_name!(Kernel);

/// The settings, of which there are none: a kernel takes the place of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("microbenchmarks")
    }
}

impl Settings for Load {
    const NAME: &'static str = "micro";
    const KIND: Kind = Kind::Others;
}

impl Workload for Load {
    const ABOUT: &'static str =
        "Contended words and the simplest locks on them, to know the machine";
}

/// One run, but for the kernel.
type Trial = spanlock_records::trial::run::Trial<Load>;

/// Runs a kernel.
///
/// # Panics
/// When there are no threads.
pub fn run(kernel: Kernel, trial: &Trial, meter: &mut dyn Meter) -> Outcome {
    assert!(trial.threads > 0);
    match kernel {
        Kernel::Add => count(trial, meter, |word| _ = word.fetch_add(1, Relaxed)),
        Kernel::CompareExchange => count(trial, meter, |word| {
            let mut seen = word.load(Relaxed);
            while let Err(found) = word.compare_exchange_weak(seen, seen + 1, Relaxed, Relaxed) {
                seen = found;
            }
        }),
        Kernel::Ttas => guard(trial, meter, 100, &Ttas::default()),
        Kernel::Mcs => guard(trial, meter, 100, &Mcs::new(trial.threads)),
        Kernel::RwCounter => guard(trial, meter, WRITES, &RwCounter::default()),
    }
}

/// A word that shares its lines with no other.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU64);

/// All threads count on one word.
fn count(trial: &Trial, meter: &mut dyn Meter, add: impl Fn(&AtomicU64) + Sync) -> Outcome {
    let Word(word) = &Word::default();
    let work = |_: usize, _: Rng, signal: &Signal, tally: &mut Tally| {
        until_stop(signal, |counts| {
            add(word);
            tally.writes += counts;
            tally.added += 1;
        });
    };
    tallied(trial, meter, work, |all| {
        all.data(word.load(Relaxed).abs_diff(all.added))
    })
}

/// A lock that knows threads by numbers. Readers are writers, unless it says otherwise.
trait Lock: Sync {
    fn lock(&self, thread: usize);
    fn unlock(&self, thread: usize);
    fn lock_shared(&self, thread: usize) {
        self.lock(thread);
    }
    fn unlock_shared(&self, thread: usize) {
        self.unlock(thread);
    }
}

/// All threads write, and in so many of a hundred operations not, what a lock guards.
fn guard(trial: &Trial, meter: &mut dyn Meter, writes: u32, lock: &impl Lock) -> Outcome {
    let data = Guarded::default();
    let work = |thread: usize, mut rng: Rng, signal: &Signal, tally: &mut Tally| {
        until_stop(signal, |counts| {
            if rng.u32(..100) < writes {
                lock.lock(thread);
                data.write(|| ());
                lock.unlock(thread);
                tally.writes += counts;
                tally.added += 1;
            } else {
                lock.lock_shared(thread);
                tally.torn += data.read(|| ());
                lock.unlock_shared(thread);
                tally.reads += counts;
            }
            steps(&mut rng, OUTSIDE);
        });
    };
    tallied(trial, meter, work, |all| all.data(data.lost(all.added)))
}

/// Test, and test-and-set.
#[derive(Default)]
struct Ttas(Word);

impl Lock for Ttas {
    fn lock(&self, _: usize) {
        let Word(word) = &self.0;
        while word.load(Relaxed) != 0 || word.swap(1, Acquire) != 0 {
            until_changed(word, 1);
        }
    }

    fn unlock(&self, _: usize) {
        self.0.0.store(0, Release);
    }
}

/// A queue, in which each waits on a line of its own (Mellor-Crummey and Scott). Places are known by numbers from 1.
struct Mcs {
    tail: Word,
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    waits: Word,
    next: Word,
}

impl Mcs {
    fn new(threads: usize) -> Self {
        Self {
            tail: Word::default(),
            places: (0..threads).map(|_| Place::default()).collect(),
        }
    }
}

impl Lock for Mcs {
    fn lock(&self, thread: usize) {
        let own = &self.places[thread];
        own.next.0.store(0, Relaxed);
        own.waits.0.store(1, Relaxed);
        let before = self.tail.0.swap(thread as u64 + 1, AcqRel);
        if before != 0 {
            let before = &self.places[before as usize - 1];
            before.next.0.store(thread as u64 + 1, Release);
            until_changed(&own.waits.0, 1);
        }
    }

    fn unlock(&self, thread: usize) {
        let own = &self.places[thread];
        let mut next = own.next.0.load(Acquire);
        if next == 0 {
            let last = self
                .tail
                .0
                .compare_exchange(thread as u64 + 1, 0, Release, Relaxed);
            if last.is_ok() {
                return;
            }
            next = until_changed(&own.next.0, 0);
        }
        self.places[next as usize - 1].waits.0.store(0, Release);
    }
}

/// A reader-writer lock of one word that counts readers.
#[derive(Default)]
struct RwCounter(Word);

const WRITER: u64 = 1 << 32;

impl Lock for RwCounter {
    fn lock(&self, _: usize) {
        let Word(word) = &self.0;
        while let Err(found) = word.compare_exchange(0, WRITER, Acquire, Relaxed) {
            until_changed(word, found);
        }
    }

    fn unlock(&self, _: usize) {
        self.0.0.fetch_sub(WRITER, Release);
    }

    fn lock_shared(&self, _: usize) {
        let Word(word) = &self.0;
        while word.fetch_add(1, Acquire) >= WRITER {
            let mut seen = word.fetch_sub(1, Relaxed) - 1;
            while seen >= WRITER {
                seen = until_changed(word, seen);
            }
        }
    }

    fn unlock_shared(&self, _: usize) {
        self.0.0.fetch_sub(1, Release);
    }
}
