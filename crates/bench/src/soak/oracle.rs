//! The holders of each unit of the resource, and its content.

use super::Fault;
use spanlock::range::raw::Mode;
use spanlock_records::trial::setting::Resource;
use spanlock_testkit::exclusion::{Found, Holder, Place};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// One unit.
#[derive(Debug, Default)]
struct Slot {
    holders: Place,
    /// Each writer raises both by one, in this order.
    numbers: [AtomicU64; 2],
}

fn holder(thread: usize, mode: Mode) -> Holder {
    match mode {
        Mode::Shared => Holder::Reader,
        Mode::Exclusive => Holder::Writer(u32::try_from(thread).expect("few threads")),
    }
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
        for (unit, slot) in self.of(range) {
            if let Err(conflict) = slot.holders.enter(holder(thread, mode)) {
                let verb = match mode {
                    Mode::Shared => "reads",
                    Mode::Exclusive => "writes",
                };
                let other = match conflict.found {
                    Found::Nobody => "nobody is".to_owned(),
                    Found::Readers(count) => format!("{count} readers are"),
                    Found::Writer(number) => format!("thread {number} is, which writes"),
                };
                let what = format!("thread {thread} {verb} {range:?}, and in {unit} {other}");
                return Err(Fault::Met(what));
            }
        }
        Ok(())
    }

    /// A thread is about to release what it holds. A holder that entered meanwhile has reported the conflict.
    pub fn leave(&self, thread: usize, range: &Range<u64>, mode: Mode) {
        for (_, slot) in self.of(range) {
            let _reported = slot.holders.leave(holder(thread, mode));
        }
    }

    /// Checks a holder's units.
    ///
    /// # Errors
    /// When a writer has not finished writing one of them.
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
