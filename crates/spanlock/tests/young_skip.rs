//! Skip-list locks that are young: how far readers reach is still being learnt.
//!
//! In a lock that has had one reader of everything, writers begin at the head for ever after. So here each lock lives
//! for a few hundred requests, in which readers become longer and longer.

mod common;

use common::{assert_nothing_held, setting, watched};
use fastrand::Rng;
use spanlock::range::RangeLock;
use spanlock::range::list::FastPath;
use spanlock::range::skip::SkipRw;
use spanlock_testkit::exact::Exact;
use spanlock_testkit::exclusion::{Holder, Slot, Visit};
use std::ops::Range;
use std::thread;

#[global_allocator]
static HEAP: Exact = Exact;

const SLOTS: u64 = 96;
const THREADS: u64 = 4;
const ROUNDS: u64 = 300;

struct Worker<'a> {
    lock: &'a RangeLock<SkipRw>,
    slots: &'a [Slot],
    random: Rng,
    /// How long the long ranges are.
    long: u64,
}

impl Worker<'_> {
    /// Holds up to `depth` ranges at a time, each beyond the one before: so no two threads wait for each other.
    fn hold_ascending(&mut self, from: u64, depth: u32) {
        let start = from + self.random.u64(..6);
        let length = match self.random.u64(..6) {
            0 => self.long,
            _ => 1 + self.random.u64(..2),
        };
        let end = SLOTS.min(start + length);
        if depth == 0 || start >= end {
            return;
        }
        match self.random.u64(..8) {
            0..=3 => {
                let _held = self.lock.read(start..end);
                self.stay(Holder::Reader, start..end, depth - 1);
            }
            4..=6 => {
                let _held = self.lock.write(start..end);
                self.stay(Holder::Writer(0), start..end, depth - 1);
            }
            _ => {
                let held = self.lock.write(start..end);
                self.stay(Holder::Writer(0), start..end, 0);
                let _held = held.downgrade();
                self.stay(Holder::Reader, start..end, depth - 1);
            }
        }
    }

    /// Is in a range, and holds others meanwhile. Called by holders only.
    fn stay(&mut self, holder: Holder, range: Range<u64>, depth: u32) {
        let slots = &self.slots[range.start as usize..range.end as usize];
        // SAFETY: the caller holds the range, and releases it after this.
        let visit = unsafe { Visit::begin(slots, holder) };
        self.hold_ascending(range.end, depth);
        visit.end();
    }
}

fn live(seed: u64, fast_path: FastPath) {
    let builder = SkipRw::builder().fast_path(fast_path).index_after(0);
    let lock = RangeLock::from_raw(builder.build());
    let slots = Slot::many(SLOTS);
    watched(lock.raw(), || {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let mut worker = Worker {
                    lock: &lock,
                    slots: &slots,
                    random: Rng::with_seed(seed * THREADS + thread),
                    long: 0,
                };
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        worker.long = 2 + round / 4;
                        let from = worker.random.u64(..20);
                        worker.hold_ascending(from, 8);
                    }
                });
            }
        });
    });
    assert_nothing_held(lock.raw());
}

#[test]
fn growing_readers_and_writers() {
    for seed in 0..setting("SPANLOCK_STRESS_OPS", 200_000) / (ROUNDS * THREADS) {
        live(seed, FastPath::Off);
        live(seed, FastPath::On);
    }
}
