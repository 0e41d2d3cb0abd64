//! What owners lock again although they hold it, against counts of each cell.

use super::common::{assert_nothing_held, panic_message, setting};
use super::{CELLS, Cells, cell};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spanlock::range::raw::Mode::{self, Exclusive, Shared};
use spanlock::range::raw::RawOwned;
use spanlock::range::{Owner, RangeLock, Reentrant, Refusal};
use std::time::Duration;

/// How often a cell is locked shared, and alone.
type Counts = [(usize, usize); CELLS];

fn held_as((shared, alone): (usize, usize)) -> Option<Mode> {
    match (shared, alone) {
        (0, 0) => None,
        (_, 0) => Some(Shared),
        _ => Some(Exclusive),
    }
}

/// How the cells are held.
fn held<L: RawOwned>(reentrant: &Reentrant<&RangeLock<L>>) -> [Option<Mode>; CELLS] {
    let mut map = [None; CELLS];
    for (span, mode) in reentrant.holding().pieces() {
        for number in (0..CELLS).filter(|&number| cell(number).overlaps(span)) {
            assert_eq!(cell(number).intersection(span), Some(cell(number)));
            map[number] = Some(mode);
        }
    }
    map
}

/// Locks or unlocks cells, of one of two owners, in a mode.
type Step = (bool, usize, Cells, Mode);

fn step() -> impl Strategy<Value = Step> {
    let cells = (0..CELLS, 0..5_usize).prop_map(|(first, more)| Cells {
        first,
        last: (first + more).min(CELLS - 1),
    });
    let mode = prop_oneof![Just(Shared), Just(Exclusive)];
    (prop::bool::weighted(0.6), 0..2_usize, cells, mode)
}

/// Each lock succeeds if, and only if, the other owner holds nothing in the way, and what is held is as counted.
pub fn agrees<L: RawOwned>(lock: &RangeLock<L>) {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(setting("SPANLOCK_MODEL_CASES", 500) as u32)
    };
    let steps = prop::collection::vec(step(), 1..60);
    let result = TestRunner::new(config).run(&steps, |steps| {
        let owners = [Owner::new(), Owner::new()];
        let mut all = [&owners[0], &owners[1]].map(|owner| lock.by(owner).reentrant());
        let mut counts: [Counts; 2] = [[(0, 0); CELLS]; 2];
        for (locks, who, cells, mode) in steps {
            let count = |(shared, alone): &mut (usize, usize)| match mode {
                Shared => *shared += 1,
                Exclusive => *alone += 1,
            };
            let uncount = |(shared, alone): &mut (usize, usize)| match mode {
                Shared => *shared -= 1,
                Exclusive => *alone -= 1,
            };
            let locked = |&(shared, alone): &(usize, usize)| match mode {
                Shared => shared,
                Exclusive => alone,
            };
            if locks {
                let in_the_way = |cell: usize| {
                    let theirs = held_as(counts[1 - who][cell]);
                    theirs.is_some_and(|theirs| {
                        // What is held alone already need not be shared.
                        let has = held_as(counts[who][cell]);
                        has != Some(Exclusive) && has != Some(mode) && theirs.conflicts(mode)
                    })
                };
                let expected = !cells.each().any(in_the_way);
                let outcome = all[who].try_lock(cells.span(), mode);
                assert_eq!(outcome.is_ok(), expected, "{outcome:?}");
                if expected {
                    cells.each().for_each(|cell| count(&mut counts[who][cell]));
                }
            } else if cells.each().all(|cell| locked(&counts[who][cell]) > 0) {
                all[who].unlock(cells.span(), mode);
                cells
                    .each()
                    .for_each(|cell| uncount(&mut counts[who][cell]));
            }
            for (reentrant, counts) in all.iter().zip(&counts) {
                assert_eq!(held(reentrant), counts.map(held_as));
            }
        }
        drop(all);
        assert_nothing_held(lock.raw());
        Ok(())
    });
    result.unwrap();
}

#[test]
fn it_agrees_with_counts() {
    agrees(&RangeLock::new());
    agrees(&RangeLock::from_raw(super::common::skip()));
    agrees(&RangeLock::from_raw(super::common::slots_at_once()));
}

#[test]
fn what_is_not_locked_is_not_unlocked() {
    let lock = RangeLock::new();
    let owner = Owner::new();
    let mut held = lock.by(&owner).reentrant();
    held.lock(0..10, Shared).expect("it is free");
    held.lock(20..30, Exclusive).expect("it is free");
    for (range, mode) in [
        (0..11, Shared),
        (5..6, Exclusive),
        (0..30, Shared),
        (20..21, Shared),
        (40..50, Exclusive),
    ] {
        let says = panic_message(|| held.unlock(range.clone(), mode));
        assert!(says.contains("is not locked"), "{says}");
    }
    held.unlock(5..5, Exclusive);
    held.unlock(0..10, Shared);
    held.unlock(20..30, Exclusive);
    assert!(held.holding().is_empty());
    assert_eq!(owner.asks_or_holds(), 0);
}

#[test]
fn a_refusal_changes_nothing() {
    let lock = RangeLock::new();
    let (owner, soon) = (Owner::new(), Duration::from_millis(1));
    let mut held = lock.by(&owner).reentrant();
    held.lock(10..20, Exclusive).expect("it is free");
    let writer = lock.write(25..26);
    assert_eq!(held.try_lock(0..30, Shared), Err(Refusal::Busy));
    assert_eq!(
        held.try_lock_for(0..30, Exclusive, soon),
        Err(Refusal::Busy)
    );
    assert!(lock.try_write(0..10).is_some() && lock.try_read(19..20).is_none());
    drop(writer);
    assert_eq!(held.lock(.., Shared), Ok(()));
    held.unlock(10..20, Exclusive);
    assert!(lock.try_read(..).is_some());
    held.unlock(.., Shared);
    assert_nothing_held(lock.raw());
}
