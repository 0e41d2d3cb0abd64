//! Ranges and their edges, in the exclusive half that all locks have.

use crate::suite::Scenario;
use crate::support::{Exclusive, elsewhere, panic_message, snapshot};
use spanlock::range::RangeMutex;
use std::ops::Bound;
use std::sync::Barrier;
use std::thread;

const MAX: u64 = u64::MAX;

/// Whether a thread that holds nothing would get the range at once.
fn is_free<L: Exclusive>(
    lock: &RangeMutex<L>,
    range: impl std::ops::RangeBounds<u64> + Send,
) -> bool {
    elsewhere(|| lock.try_lock(range).is_some())
}

fn neighbours_on_both_sides<L: Exclusive>(lock: &RangeMutex<L>) {
    let _middle = lock.lock(10..20);
    let _left = lock.lock(0..10);
    let _right = lock.lock(20..30);
    assert!(!is_free(lock, 9..10));
    assert!(!is_free(lock, 10..11));
    assert!(!is_free(lock, 19..20));
    assert!(!is_free(lock, 20..21));
    assert!(is_free(lock, 30..31));
}

/// Each thread waits inside for the other: neither can be waiting for its neighbour's release.
fn neighbours_in_two_threads<L: Exclusive>(lock: &RangeMutex<L>) {
    let both_inside = Barrier::new(2);
    thread::scope(|scope| {
        for range in [0..10, 10..20] {
            scope.spawn(|| {
                let _held = lock.lock(range);
                both_inside.wait();
            });
        }
    });
}

fn overlap_by_one_position_excludes<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = lock.lock(10..20);
    for range in [0..11, 19..30, 10..11, 19..20, 12..15, 0..30, 10..20] {
        assert!(!is_free(lock, range.clone()), "{range:?}");
    }
}

fn point_locks_and_locks_again<L: Exclusive>(lock: &RangeMutex<L>) {
    for point in [0, 7, MAX] {
        for _ in 0..3 {
            let held = lock.lock(point..=point);
            assert!(!is_free(lock, point..=point));
            drop(held);
            assert!(is_free(lock, point..=point));
        }
    }
}

fn empty_ranges_conflict_with_nothing<L: Exclusive>(lock: &RangeMutex<L>) {
    let _held = lock.lock(10..20);
    for at in [0, 9, 10, 15, 19, 20, MAX] {
        let _here = lock.lock(at..at);
        let _here_again = lock.try_lock(at..at).expect("empty");
        assert!(is_free(lock, at..at));
    }
    let _after_the_end = lock.lock((Bound::Excluded(MAX), Bound::Unbounded));
}

fn held_empty_ranges_exclude_nobody<L: Exclusive>(lock: &RangeMutex<L>) {
    let _empty = [lock.lock(0..0), lock.lock(15..15), lock.lock(MAX..MAX)];
    assert!(is_free(lock, ..));
    assert!(lock.snapshot().holders.is_empty());
}

/// With everything held: a range that is validated only after a wait would never be validated.
fn reversed_range_panics_before_any_wait<L: Exclusive>(lock: &RangeMutex<L>) {
    let _all = lock.lock(..);
    let (start, end) = (531, 246);
    elsewhere(|| {
        for message in [
            panic_message(|| drop(lock.lock(start..end))),
            panic_message(|| drop(lock.try_lock(start..end))),
            panic_message(|| drop(lock.lock_many([0..1, start..end]))),
        ] {
            assert!(message.contains("531"), "{message}");
            assert!(message.contains("246"), "{message}");
        }
    });
}

fn first_position<L: Exclusive>(lock: &RangeMutex<L>) {
    let _first = lock.lock(0..1);
    assert!(!is_free(lock, ..));
    assert!(!is_free(lock, ..=0));
    assert!(is_free(lock, 1..));
}

fn last_position_against_the_full_range<L: Exclusive>(lock: &RangeMutex<L>) {
    let last = lock.lock(MAX..=MAX);
    assert!(!is_free(lock, ..));
    assert!(!is_free(lock, MAX..));
    assert!(is_free(lock, ..MAX));
    drop(last);
    let _full = lock.lock(..);
    assert!(!is_free(lock, MAX..=MAX));
    assert!(!is_free(lock, 0..=0));
}

/// `..MAX` does not cover the last position, `..=MAX` does.
fn ends_at_the_maximum<L: Exclusive>(lock: &RangeMutex<L>) {
    let all_but_last = lock.lock(..MAX);
    assert!(is_free(lock, MAX..));
    assert!(!is_free(lock, MAX - 1..));
    drop(all_but_last);
    let _tail = lock.lock(5..=MAX);
    assert!(!is_free(lock, MAX..));
    assert!(is_free(lock, ..5));
}

fn try_in_a_hole<L: Exclusive>(lock: &RangeMutex<L>) {
    let _around = [lock.lock(0..10), lock.lock(20..30)];
    for range in [9..11, 19..21, 10..21, 9..20, 9..21] {
        assert!(!is_free(lock, range.clone()), "{range:?}");
    }
    assert!(is_free(lock, 10..20));
    assert!(is_free(lock, 12..13));
    let _in_the_hole = lock.try_lock(10..20).expect("the hole is free");
}

/// Releases go by what was acquired, in whatever order.
fn releases_free_exactly_their_own_range<L: Exclusive>(lock: &RangeMutex<L>) {
    let mut held: Vec<_> = (0..5).map(|at| Some(lock.lock(at..=at))).collect();
    let mut is_held = [true; 5];
    for at in [2, 0, 4, 1, 3] {
        held[at] = None;
        is_held[at] = false;
        for (position, is_held) in (0..).zip(is_held) {
            assert_eq!(is_free(lock, position..=position), !is_held);
        }
    }
}

/// More than a thread keeps nodes for.
fn many_nested_holds<L: Exclusive>(lock: &RangeMutex<L>) {
    for _ in 0..3 {
        let held: Vec<_> = (0..500).map(|at| lock.lock(2 * at..=2 * at)).collect();
        assert!(!is_free(lock, 998..=998));
        assert!(is_free(lock, 999..=999));
        drop(held);
    }
}

fn the_listing_counts_holders<L: Exclusive>(lock: &RangeMutex<L>) {
    let held: Vec<_> = (0..500).map(|at| lock.lock(2 * at..=2 * at)).collect();
    assert_eq!(snapshot(lock.raw()).holders.len(), held.len());
}

/// Whatever becomes of a fast acquisition while other threads read its node, its release is a release.
fn held_alone_then_among_others<L: Exclusive>(lock: &RangeMutex<L>) {
    for _ in 0..300 {
        let alone = lock.lock(10..20);
        let other = lock.lock(30..40);
        drop(alone);
        assert!(lock.try_lock(10..20).is_some());
        assert!(lock.try_lock(39..40).is_none());
        drop(other);
    }
}

/// Keys shifted by a bit would confuse the two halves.
fn the_highest_bit_counts<L: Exclusive>(lock: &RangeMutex<L>) {
    let _upper = lock.lock(1 << 63..);
    assert!(is_free(lock, ..1 << 63));
    assert!(!is_free(lock, ..=1 << 63));
    let _lower = lock.lock(..1 << 63);
    assert!(!is_free(lock, 0..1));
}

/// The scenarios of this file.
pub fn scenarios<L: Exclusive>() -> Vec<Scenario<RangeMutex<L>>> {
    scenarios![
        neighbours_on_both_sides,
        neighbours_in_two_threads,
        overlap_by_one_position_excludes,
        point_locks_and_locks_again,
        empty_ranges_conflict_with_nothing,
        held_empty_ranges_exclude_nobody,
        reversed_range_panics_before_any_wait,
        first_position,
        try_in_a_hole,
        releases_free_exactly_their_own_range,
        many_nested_holds,
        held_alone_then_among_others,
        the_listing_counts_holders needs Listing,
        the_highest_bit_counts needs Exact,
        last_position_against_the_full_range needs Exact,
        ends_at_the_maximum needs Exact,
    ]
}
