//! Who is in each unit of the resource, and what is there.

use super::Fault;
use crate::setting::Resource;
use spanlock::range::raw::Mode;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// One unit.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    /// So many readers; or a writer, as minus its number less one.
    holders: AtomicI32,
    /// What writers raise by one, in this order.
    numbers: [AtomicU64; 2],
}

/// A slot for each unit.
///
/// All accesses are relaxed. The numbers are read and written by plain loads and stores: the lock alone orders them.
#[derive(Debug)]
pub struct Slots(Box<[Slot]>);

impl Slots {
    /// For a resource of which nobody holds anything.
    #[must_use]
    pub fn new(resource: Resource) -> Self {
        Self((0..resource.units).map(|_| Slot::default()).collect())
    }

    fn of(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, &Slot)> {
        let at = |unit: u64| usize::try_from(unit).expect("as many as there is memory for");
        range.clone().zip(&self.0[at(range.start)..at(range.end)])
    }

    /// A thread begins to hold a range.
    ///
    /// # Errors
    /// When somebody holds some of it that it excludes.
    pub fn enter(&self, thread: usize, range: &Range<u64>, mode: Mode) -> Result<(), Fault> {
        let me = -(thread as i32) - 1;
        for (unit, slot) in self.of(range) {
            let (before, allowed) = match mode {
                Mode::Shared => (slot.holders.fetch_add(1, Ordering::Relaxed), 0..=i32::MAX),
                Mode::Exclusive => (slot.holders.swap(me, Ordering::Relaxed), 0..=0),
            };
            if !allowed.contains(&before) {
                let verb = match mode {
                    Mode::Shared => "reads",
                    Mode::Exclusive => "writes",
                };
                let other = match before {
                    1.. => format!("{before} readers are"),
                    _ => format!("thread {} is, which writes", -(before + 1)),
                };
                let what = format!("thread {thread} {verb} {range:?}, and in {unit} {other}");
                return Err(Fault::Met(what));
            }
        }
        Ok(())
    }

    /// A thread is about to release what it holds.
    pub fn leave(&self, range: &Range<u64>, mode: Mode) {
        for (_, slot) in self.of(range) {
            match mode {
                Mode::Shared => slot.holders.fetch_sub(1, Ordering::Relaxed),
                Mode::Exclusive => slot.holders.swap(0, Ordering::Relaxed),
            };
        }
    }

    /// Looks at what a holder sees.
    ///
    /// # Errors
    /// When somebody has not finished to write it.
    pub fn read(&self, range: &Range<u64>) -> Result<(), Fault> {
        for (unit, slot) in self.of(range) {
            let [first, second] = slot.numbers.each_ref().map(|n| n.load(Ordering::Relaxed));
            if first != second {
                let what = format!("a holder of {range:?} finds {first} and {second} in {unit}");
                return Err(Fault::Met(what));
            }
        }
        Ok(())
    }

    /// Raises all numbers, the first of each unit and then the second ones; calls `between` in between.
    pub fn write(&self, range: &Range<u64>, between: impl Fn()) {
        for which in [0, 1] {
            for (_, slot) in self.of(range) {
                let number = &slot.numbers[which];
                number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            if which == 0 {
                between();
            }
        }
    }

    /// The sum of all that was raised.
    #[must_use]
    pub fn total(&self) -> u64 {
        let numbers = self.0.iter().flat_map(|slot| &slot.numbers);
        numbers.map(|number| number.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Mode, Slots};
    use crate::soak::RESOURCE;

    #[test]
    fn meetings_are_named() {
        let slots = Slots::new(RESOURCE);
        let met = |thread, range, mode| match slots.enter(thread, &range, mode) {
            Err(Fault::Met(what)) => what,
            other => panic!("{other:?}"),
        };
        slots.enter(4, &(0..4), Mode::Shared).unwrap();
        slots.enter(5, &(2..8), Mode::Shared).unwrap();
        slots.enter(6, &(8..9), Mode::Exclusive).unwrap();
        let what = met(7, 3..4, Mode::Exclusive);
        assert_eq!(what, "thread 7 writes 3..4, and in 3 2 readers are");
        let what = met(7, 8..20, Mode::Shared);
        assert_eq!(
            what,
            "thread 7 reads 8..20, and in 8 thread 6 is, which writes"
        );
    }

    #[test]
    fn holders_that_left_are_in_nobodys_way() {
        let slots = Slots::new(RESOURCE);
        for mode in [Mode::Exclusive, Mode::Shared, Mode::Exclusive] {
            slots.enter(0, &(0..256), mode).unwrap();
            slots.leave(&(0..256), mode);
        }
    }

    #[test]
    fn what_is_half_written_is_seen() {
        let slots = Slots::new(RESOURCE);
        slots.write(&(3..5), || {
            assert_eq!(slots.total(), 2);
            assert_eq!(slots.read(&(0..3)), Ok(()));
            assert!(slots.read(&(0..4)).is_err());
        });
        assert_eq!(slots.read(&(0..256)), Ok(()));
        assert_eq!(slots.total(), 4);
    }
}
