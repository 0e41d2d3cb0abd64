//! The time that a lock takes; and what stands in its place where there is none.

use spanlock_structures::blob::raw::Ranges;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::time::{Duration, Instant};

thread_local! {
    /// What this thread's acquisitions and releases took since it asked.
    static TOOK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What the calling thread's acquisitions and releases took since it last asked.
pub(super) fn took() -> Duration {
    TOOK.take()
}

fn timed<T>(what: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = what();
    TOOK.set(TOOK.get() + begun.elapsed());
    done
}

/// A lock whose acquisitions and releases are timed.
pub(super) struct Timed<R>(pub(super) R);

/// Its guard.
pub(super) struct TimedHeld<H>(ManuallyDrop<H>);

impl<H> Drop for TimedHeld<H> {
    fn drop(&mut self) {
        // SAFETY: dropped here, and only here.
        timed(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

// SAFETY: the lock keeps the trait's promises, and its guard lives as long as this one's.
unsafe impl<R: Ranges> Ranges for Timed<R> {
    type Held<'a>
        = TimedHeld<R::Held<'a>>
    where
        Self: 'a;

    fn try_take(&self, range: Range<u64>) -> Option<Self::Held<'_>> {
        let held = timed(|| self.0.try_take(range));
        held.map(|held| TimedHeld(ManuallyDrop::new(held)))
    }
}

/// Whether a thread holds anything of an area of its own. No other thread has it.
#[derive(Default)]
pub(super) struct Alone(Cell<bool>);

/// Its guard.
pub(super) struct AloneHeld<'a>(&'a Alone);

impl Drop for AloneHeld<'_> {
    fn drop(&mut self) {
        self.0.0.set(false);
    }
}

// SAFETY: it gives out one range at a time, and a cell stays on its thread.
unsafe impl Ranges for Alone {
    type Held<'a> = AloneHeld<'a>;

    fn try_take(&self, _: Range<u64>) -> Option<AloneHeld<'_>> {
        (!self.0.replace(true)).then_some(AloneHeld(self))
    }
}
