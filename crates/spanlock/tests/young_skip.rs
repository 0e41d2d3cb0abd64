//! Skip-list locks that are young: how far readers reach is still being learnt.
//!
//! In a lock that has had one reader of everything, writers begin at the head for ever after. So here each lock lives
//! for a few hundred requests, in which readers become longer and longer.

mod common;

use common::{Random, assert_nothing_held, setting, watched};
use spanlock::range::RangeLock;
use spanlock::range::list::FastPath;
use spanlock::range::skip::SkipRw;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread;

const SLOTS: u64 = 96;
const THREADS: u64 = 4;
const ROUNDS: u64 = 300;

struct Worker<'a> {
    lock: &'a RangeLock<SkipRw>,
    /// Readers inside, or -1 for a writer.
    slots: &'a [AtomicI32],
    random: Random,
    /// How long the long ranges are.
    long: u64,
}

impl Worker<'_> {
    /// Holds up to `depth` ranges at a time, each beyond the one before: so no two threads wait for each other.
    fn hold_ascending(&mut self, from: u64, depth: u32) {
        let start = from + self.random.below(6);
        let length = match self.random.below(6) {
            0 => self.long,
            _ => 1 + self.random.below(2),
        };
        let end = SLOTS.min(start + length);
        if depth == 0 || start >= end {
            return;
        }
        match self.random.below(8) {
            0..=3 => {
                let _held = self.lock.read(start..end);
                self.read_while(start..end, depth);
            }
            4..=6 => {
                let _held = self.lock.write(start..end);
                self.enter(start..end, 0, -1);
                self.hold_ascending(end, depth - 1);
                self.enter(start..end, -1, 0);
            }
            _ => {
                let held = self.lock.write(start..end);
                self.enter(start..end, 0, -1);
                self.enter(start..end, -1, 0);
                let _held = held.downgrade();
                self.read_while(start..end, depth);
            }
        }
    }

    fn read_while(&mut self, range: Range<u64>, depth: u32) {
        for slot in &self.slots[range.start as usize..range.end as usize] {
            assert!(slot.fetch_add(1, Relaxed) >= 0, "beside a writer");
        }
        self.hold_ascending(range.end, depth - 1);
        for slot in &self.slots[range.start as usize..range.end as usize] {
            assert!(slot.fetch_sub(1, Relaxed) > 0, "a writer came in");
        }
    }

    fn enter(&self, range: Range<u64>, then: i32, now: i32) {
        for slot in &self.slots[range.start as usize..range.end as usize] {
            assert_eq!(slot.swap(now, Relaxed), then, "a writer beside others");
        }
    }
}

fn live(seed: u64, fast_path: FastPath) {
    let lock = RangeLock::from_raw(SkipRw::builder().fast_path(fast_path).build());
    let slots: Vec<_> = (0..SLOTS).map(|_| AtomicI32::new(0)).collect();
    watched(lock.raw(), || {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let mut worker = Worker {
                    lock: &lock,
                    slots: &slots,
                    random: Random::new(seed * THREADS + thread),
                    long: 0,
                };
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        worker.long = 2 + round / 4;
                        let from = worker.random.below(20);
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
    for seed in 0..setting("SPANLOCK_STRESS_OPS", 1_000_000) / (ROUNDS * THREADS) {
        live(seed, FastPath::Off);
        live(seed, FastPath::On);
    }
}
