//! The array, and the ranges of it that threads lock.

use super::Variant;
use crate::lines::Lines;
use fastrand::Rng;
use prim::cost;
use spanlock_records::trial::setting::SLOTS;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cache line with a number in it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Slot(AtomicU64);

/// Numbers, each on a cache line of its own, all zero at first.
///
/// They are read and written one after the other by plain loads and stores. To the compiler these are relaxed
/// atomics, so that a run without a lock is a race but not undefined behaviour; no instruction differs by that. A
/// simulated machine charges them as plain memory.
pub type Array = Lines<Slot>;

impl Array {
    /// The number in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> u64 {
        let slot = &self.0[slot];
        cost::read(slot);
        slot.0.load(Ordering::Relaxed)
    }

    /// The sum of a range of slots.
    #[inline]
    #[must_use]
    pub fn sum(&self, range: Range<usize>) -> u64 {
        let work = cost::steps().slot_read;
        let load = |slot: &Slot| {
            cost::read(slot);
            cost::work(work);
            slot.0.load(Ordering::Relaxed)
        };
        self.0[range].iter().map(load).fold(0, u64::wrapping_add)
    }

    /// Adds one to each slot of a range. The caller holds the range alone: updates are lost otherwise.
    #[inline]
    pub fn increment(&self, range: Range<usize>) {
        let work = cost::steps().slot_write;
        for slot in &self.0[range] {
            let number = slot.0.load(Ordering::Relaxed);
            cost::write(slot);
            cost::work(work);
            slot.0.store(number + 1, Ordering::Relaxed);
        }
    }

    /// The sum of all slots, when the run is over: charged to nobody.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .map(|slot| slot.0.load(Ordering::Relaxed))
            .sum()
    }
}

/// The ranges that one thread locks, and how often it traverses each.
#[derive(Debug, Clone)]
pub enum Ranges {
    /// The same each time, traversed so often.
    Fixed(Range<usize>, usize),
    /// Between two random slots, traversed once.
    Random,
}

impl Ranges {
    /// Those of one of so many threads.
    #[must_use]
    pub fn of(variant: Variant, thread: usize, threads: usize) -> Self {
        match variant {
            Variant::Full => Self::Fixed(0..SLOTS, 1),
            Variant::Disjoint => {
                let part = |number| number * SLOTS / threads;
                Self::Fixed(part(thread)..part(thread + 1), threads)
            }
            Variant::Random => Self::Random,
        }
    }

    /// The next one, and how often it is traversed.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> (Range<usize>, usize) {
        match self {
            Self::Fixed(range, passes) => (range.clone(), *passes),
            Self::Random => {
                let (a, b) = (rng.usize(..SLOTS), rng.usize(..SLOTS));
                (a.min(b)..a.max(b) + 1, 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Array, Ranges, SLOTS, Variant};
    use fastrand::Rng;

    #[test]
    fn parts_cover_the_array_without_overlap_for_any_number_of_threads() {
        for threads in 1..=SLOTS {
            let mut next = 0;
            for thread in 0..threads {
                let ranges = Ranges::of(Variant::Disjoint, thread, threads);
                let (range, passes) = ranges.next(&mut Rng::with_seed(0));
                assert_eq!((range.start, passes), (next, threads));
                assert!(!range.is_empty());
                next = range.end;
            }
            assert_eq!(next, SLOTS);
        }
    }

    #[test]
    fn random_ranges_reach_both_ends_and_are_not_empty() {
        let mut rng = Rng::with_seed(1);
        let ranges = Ranges::of(Variant::Random, 0, 1);
        let drawn: Vec<_> = (0..20_000).map(|_| ranges.next(&mut rng).0).collect();
        assert!(
            drawn
                .iter()
                .all(|range| range.start < range.end && range.end <= SLOTS)
        );
        assert!(drawn.iter().any(|range| range.start == 0));
        assert!(drawn.iter().any(|range| range.end == SLOTS));
        assert!(drawn.iter().any(|range| range.len() == 1));
    }

    #[test]
    fn an_array_adds_up() {
        let array = Array::new(SLOTS);
        array.increment(0..SLOTS);
        array.increment(3..5);
        assert_eq!(array.total(), 258);
        assert_eq!(array.sum(2..4), 3);
        assert_eq!([array.get(2), array.get(3)], [1, 2]);
    }
}
