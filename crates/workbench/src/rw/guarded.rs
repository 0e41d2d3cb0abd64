//! The data that locks guard: they show lost updates and torn reads.

use prim::atomic::{AtomicU64, Ordering::Relaxed};

/// Two counters, equal but while somebody writes: one is written first in a critical section, the other last.
///
/// They are no more than loads and stores, so that two writers at once lose an update, and atomic, so that a lock that
/// does not exclude is found out and does no worse. Relaxed, all: the lock is to order them.
#[derive(Debug, Default)]
#[repr(align(128))] // not on a line with the lock
pub struct Guarded {
    first: AtomicU64,
    last: AtomicU64,
}

impl Guarded {
    /// A writer calls this, with its work inside.
    #[inline]
    pub fn write(&self, work: impl FnOnce()) {
        let add = |counter: &AtomicU64| counter.store(counter.load(Relaxed) + 1, Relaxed);
        add(&self.first);
        work();
        add(&self.last);
    }

    /// A reader calls this, with its work inside; 1 if a writer was there, and else 0.
    #[inline]
    pub fn read(&self, work: impl FnOnce()) -> u64 {
        let seen = self.first.load(Relaxed);
        work();
        u64::from(self.last.load(Relaxed) != seen)
    }

    /// Of so many writes, those that are missing.
    pub fn lost(&self, wrote: u64) -> u64 {
        let of = |counter: &AtomicU64| wrote.abs_diff(counter.load(Relaxed));
        of(&self.first).max(of(&self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::Guarded;

    #[test]
    fn a_writer_inside_a_writer_is_lost_and_inside_a_reader_tears() {
        let data = Guarded::default();
        data.write(|| assert_eq!(data.read(|| ()), 1));
        assert_eq!(data.read(|| ()), 0);
        assert_eq!((data.lost(1), data.lost(2)), (0, 1));
        assert_eq!(data.read(|| data.write(|| ())), 1);
    }
}
