//! Who can be inside together is.

use crate::suite::Scenario;
use crate::support::{Exclusive, Shared};
use spanlock::range::{RangeLock, RangeMutex};
use std::sync::Barrier;
use std::thread;

/// Twelve threads meet while each holds its range, so no thread waited for another.
fn are_inside_together<G>(hold: impl Fn(u64) -> G + Sync) {
    const HOLDERS: u8 = 12;
    let all_inside = &Barrier::new(usize::from(HOLDERS));
    let hold = &hold;
    thread::scope(|scope| {
        for holder in 0..HOLDERS {
            scope.spawn(move || {
                for _ in 0..100 {
                    let _held = hold(u64::from(holder));
                    all_inside.wait();
                }
            });
        }
    });
}

fn disjoint_holders_are_inside_together<L: Exclusive>(lock: &RangeMutex<L>) {
    are_inside_together(|at| lock.lock(10 * at..10 * at + 10));
}

fn overlapping_readers_are_inside_together<L: Shared>(lock: &RangeLock<L>) {
    are_inside_together(|at| lock.read(at % 5..100 - at));
}

/// Readers and writers of alternating ranges, all inside, again and again.
fn compatible_readers_and_writers_are_inside_together<L: Shared>(lock: &RangeLock<L>) {
    const PAIRS: usize = 5;
    let all_inside = Barrier::new(3 * PAIRS);
    let meet = |at: u64| {
        for _ in 0..100 {
            if at.is_multiple_of(3) {
                let _held = lock.write(at..at + 1);
                all_inside.wait();
            } else {
                let last = at - at % 3 + 2;
                let _held = lock.read(at..=last);
                all_inside.wait();
            }
        }
    };
    let meet = &meet;
    thread::scope(|scope| {
        for at in 0..3 * PAIRS as u64 {
            scope.spawn(move || meet(at));
        }
    });
}

/// The scenarios of this file, exclusive ranges.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![disjoint_holders_are_inside_together]
}

/// The scenarios of this file that have readers.
pub fn shared_scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        overlapping_readers_are_inside_together,
        compatible_readers_and_writers_are_inside_together,
    ]
}
