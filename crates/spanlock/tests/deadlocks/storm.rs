//! Threads, owners and tasks that wait a lot and never for each other in a ring: nothing is told.

use super::pool::block_on;
use super::{TOLD, begin, common};
use spanlock::deadlock::{Deadlocks, Report};
use spanlock::range::list::ListRw;
use spanlock::range::segment::SrlArray;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Owner, RangeLock};
use std::ops::Range;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

const OFTEN: Deadlocks = Deadlocks::report().every(Duration::from_millis(1));

struct Locks {
    slots: RangeLock,
    list: RangeLock<ListRw>,
    words: RangeLock<SrlArray>,
}

fn range(random: &mut fastrand::Rng, from: u64) -> Range<u64> {
    let start = from + random.u64(0..8);
    start..start + random.u64(1..4)
}

/// Each locks a low range, then a high one, then one in the next lock: so there is no ring.
fn work(locks: &Locks, random: &mut fastrand::Rng) {
    let owner = Owner::new();
    match random.u32(0..4) {
        0 => {
            let _low = locks.slots.write(range(random, 0));
            let _high = locks.slots.read(range(random, 100));
            let _next = locks.list.write(range(random, 0));
            drop(locks.words.write(range(random, 0)));
        }
        1 => {
            let _word = locks.words.read(range(random, 0));
            thread::sleep(Duration::from_micros(random.u64(0..200)));
            drop(locks.words.write(range(random, 16)));
        }
        2 => {
            let by = locks.slots.by(&owner);
            let _low = by.read(range(random, 0)).expect("nobody cancels it");
            let _high = by.write(range(random, 100)).expect("nobody cancels it");
            drop(locks.list.by(&owner).write(range(random, 50)));
        }
        _ => {
            let by = locks.list.by(&owner);
            let _low = block_on(by.write_async(range(random, 0))).expect("nobody cancels it");
            drop(block_on(by.read_async(range(random, 50))).expect("nobody cancels it"));
        }
    }
}

#[test]
fn a_storm_without_rings() {
    begin();
    let locks = &Locks {
        slots: RangeLock::from_raw(RawSlots::builder().deadlocks(OFTEN).build()),
        list: RangeLock::from_raw(ListRw::builder().deadlocks(OFTEN).build()),
        words: RangeLock::from_raw(SrlArray::builder().segments(32).deadlocks(OFTEN).build()),
    };
    let operations = common::setting("SPANLOCK_STRESS_OPS", 20_000) / 40;
    common::watched_silently(|| {
        thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    (0..operations).for_each(|_| work(locks, &mut random));
                });
            }
        });
    });
    let told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for report in &*told {
        if let Report::Deadlock(ring) = report {
            let is_here = ring.steps.iter().any(|step| step.place.file() == file!());
            assert!(!is_here, "{ring}");
        }
    }
}
