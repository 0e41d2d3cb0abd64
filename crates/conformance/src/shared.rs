//! Readers beside writers, and writers that become readers.

use crate::suite::Scenario;
use crate::support::{Shared, await_sleepers, elsewhere};
use spanlock::range::RangeLock;
use spanlock::range::raw::Mode;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

fn may_read<L: Shared>(lock: &RangeLock<L>, range: Range<u64>) -> bool {
    elsewhere(|| lock.try_read(range).is_some())
}

fn may_write<L: Shared>(lock: &RangeLock<L>, range: Range<u64>) -> bool {
    elsewhere(|| lock.try_write(range).is_some())
}

fn neighbours_in_either_mode<L: Shared>(lock: &RangeLock<L>) {
    let _reader = lock.read(10..20);
    let _writers = [lock.write(0..10), lock.write(20..30)];
    let _readers = [lock.read(30..40), lock.read(40..50)];
    assert!(may_read(lock, 10..20));
    for taken in [9..11, 19..21, 29..31, 0..50] {
        assert!(!may_read(lock, taken.clone()), "{taken:?}");
    }
}

fn overlapping_unequal_readers_coexist<L: Shared>(lock: &RangeLock<L>) {
    let ranges = [10..20, 0..100, 5..15, 19..30, 12..13, 10..20, 0..11];
    let all_inside = Barrier::new(ranges.len());
    thread::scope(|scope| {
        for range in ranges {
            let all_inside = &all_inside;
            scope.spawn(move || {
                let _held = lock.read(range);
                all_inside.wait();
            });
        }
    });
}

fn writer_between_readers<L: Shared>(lock: &RangeLock<L>) {
    let _readers = [lock.read(0..10), lock.read(20..30)];
    let between = lock.try_write(10..20).expect("nobody is there");
    assert!(!may_read(lock, 5..15));
    drop(between);
    for taken in [5..15, 9..20, 10..21, 0..30] {
        assert!(!may_write(lock, taken.clone()), "{taken:?}");
        assert!(may_read(lock, taken));
    }
}

/// The shortest of several readers that begin together is not the one that decides.
fn writer_against_each_of_nested_readers<L: Shared>(lock: &RangeLock<L>) {
    let long = lock.read(0..100);
    let short = lock.read(10..20);
    let later = lock.read(50..60);
    assert!(!may_write(lock, 90..95));
    drop(long);
    assert!(may_write(lock, 90..95));
    assert!(!may_write(lock, 19..21));
    drop(short);
    assert!(may_write(lock, 19..21));
    assert!(!may_write(lock, 0..100));
    drop(later);
    assert!(may_write(lock, 0..100));
}

/// A writer must not begin its walk beyond the start of a conflicting range, on whichever path that range was granted.
fn writer_against_a_long_reader_behind_short_ones<L: Shared>(lock: &RangeLock<L>) {
    // From now on the thread is warm, and the next request takes the fast path if there is one.
    drop(lock.write(0..1));
    let _long = lock.read(0..100);
    let _short: Vec<_> = (1..30).map(|at| lock.read(2 * at..=2 * at)).collect();
    for at in 60..70 {
        assert!(!may_write(lock, at..at + 1));
    }
}

fn readers_of_the_extremes<L: Shared>(lock: &RangeLock<L>) {
    let _all = lock.read(..);
    let _last = lock.read(u64::MAX..);
    let _first = lock.read(..=0);
    assert!(lock.try_write(u64::MAX..=u64::MAX).is_none());
    assert!(lock.try_write(0..=0).is_none());
}

fn empty_ranges_in_either_mode<L: Shared>(lock: &RangeLock<L>) {
    let _writer = lock.write(10..20);
    for at in [0, 10, 15, 20, u64::MAX] {
        let _empty = (lock.read(at..at), lock.write(at..at).downgrade());
        assert!(may_read(lock, at..at));
    }
}

fn downgrade_lets_readers_in_and_keeps_writers_out<L: Shared>(lock: &RangeLock<L>) {
    let writer = lock.write(10..20);
    assert!(!may_read(lock, 15..16));
    let reader = writer.downgrade();
    assert!(may_read(lock, 15..16));
    assert!(may_read(lock, 0..30));
    assert!(!may_write(lock, 15..16));
    assert!(may_write(lock, 20..30));
    drop(reader);
    assert!(may_write(lock, 10..20));
}

fn downgrade_wakes_sleeping_readers<L: Shared>(lock: &RangeLock<L>) {
    let writer = lock.write(10..20);
    let both_inside = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _held = lock.read(0..15);
            both_inside.wait();
        });
        await_sleepers(lock.raw(), 1);
        let _reader = writer.downgrade();
        both_inside.wait();
    });
}

fn downgrade_does_not_let_a_sleeping_writer_in<L: Shared>(lock: &RangeLock<L>) {
    let writer = lock.write(10..20);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| drop(lock.write(15..30)));
        await_sleepers(lock.raw(), 1);
        let reader = writer.downgrade();
        assert!(!sleeper.is_finished());
        drop(reader);
    });
}

fn downgraded_ranges_may_overlap_what_comes_after<L: Shared>(lock: &RangeLock<L>) {
    let first = lock.write(0..100).downgrade();
    let _inside = [lock.read(10..20), lock.read(50..200)];
    assert!(!may_write(lock, 150..160));
    drop(first);
    assert!(may_write(lock, 0..10));
    assert!(!may_write(lock, 19..20));
}

/// What a writer did stays as it is for the reader that it becomes, and is there for the next writer.
fn writers_and_readers_see_each_others_work<L: Shared>(lock: &RangeLock<L>) {
    const ROUNDS: u64 = 2_000;
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let writer = lock.write(5..15);
                    let mine = counter.load(Ordering::Relaxed) + 1;
                    counter.store(mine, Ordering::Relaxed);
                    let _reader = writer.downgrade();
                    assert_eq!(counter.load(Ordering::Relaxed), mine);
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), 3 * ROUNDS);
}

fn listing_tells_a_downgrade<L: Shared>(lock: &RangeLock<L>) {
    let writer = lock.write(10..20);
    assert_eq!(lock.snapshot().holders[0].mode, Mode::Exclusive);
    let _reader = writer.downgrade();
    assert_eq!(lock.snapshot().holders[0].mode, Mode::Shared);
}

fn listing_tells_modes_in_order<L: Shared>(lock: &RangeLock<L>) {
    let _held = (lock.read(20..30), lock.write(0..10), lock.read(5..5));
    let holders = lock.snapshot().holders;
    let told: Vec<_> = holders
        .iter()
        .map(|held| (held.span.start(), held.span.last(), held.mode))
        .collect();
    assert_eq!(told, [(0, 9, Mode::Exclusive), (20, 29, Mode::Shared)]);
}

/// The scenarios of this file.
pub fn scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        neighbours_in_either_mode,
        overlapping_unequal_readers_coexist,
        writer_between_readers,
        writer_against_each_of_nested_readers,
        writer_against_a_long_reader_behind_short_ones,
        readers_of_the_extremes,
        empty_ranges_in_either_mode,
        downgrade_lets_readers_in_and_keeps_writers_out,
        downgrade_wakes_sleeping_readers,
        downgrade_does_not_let_a_sleeping_writer_in,
        downgraded_ranges_may_overlap_what_comes_after,
        writers_and_readers_see_each_others_work,
        listing_tells_a_downgrade needs Listing,
        listing_tells_modes_in_order needs Listing,
    ]
}
