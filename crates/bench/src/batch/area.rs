//! The memory that threads write.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in a range (P4 §4.3.1: "for each ranges we will write 1KB").
pub const RANGE_BYTES: usize = 1024;

const WORDS: usize = RANGE_BYTES / size_of::<u64>();

/// One range's memory, on cache lines of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

/// Blocks of 1 KB, all zero at first.
///
/// They are written and read one word after the other by plain stores and loads. To the compiler these are relaxed
/// atomics, so that a run without a lock is a race but not undefined behaviour. The price against the thesis' `memset`
/// is that words are not joined to vectors: the same for all locks.
#[derive(Debug)]
pub struct Area(Box<[Block]>);

impl Area {
    /// An area of so many ranges.
    #[must_use]
    pub fn new(ranges: usize) -> Self {
        let block = |_| Block([const { AtomicU64::new(0) }; WORDS]);
        Self((0..ranges).map(block).collect())
    }

    /// Where a range is.
    #[inline]
    #[must_use]
    pub fn positions(range: usize) -> Range<u64> {
        let start = (range * RANGE_BYTES) as u64;
        start..start + RANGE_BYTES as u64
    }

    /// Fills a range with a thread's pattern.
    #[inline]
    pub fn fill(&self, range: usize, thread: usize) {
        for word in &self.0[range].0 {
            word.store(pattern(thread), Ordering::Relaxed);
        }
    }

    /// Whether a range holds a thread's pattern and nothing else.
    #[inline]
    #[must_use]
    pub fn is_filled(&self, range: usize, thread: usize) -> bool {
        // No early end: the loop is the same work for every range.
        let differing = self.0[range].0.iter().fold(0, |differing, word| {
            differing | (word.load(Ordering::Relaxed) ^ pattern(thread))
        });
        differing == 0
    }

    /// Ranges that hold words of several threads. Nobody may write meanwhile.
    #[must_use]
    pub fn mixed(&self) -> u64 {
        let uniform = |block: &Block| {
            let mut words = block.0.iter().map(|word| word.load(Ordering::Relaxed));
            let first = words.next();
            words.all(|word| Some(word) == first)
        };
        self.0.iter().filter(|block| !uniform(block)).count() as u64
    }
}

/// What a thread writes; every byte pair of it differs from any other thread's and from fresh memory.
const fn pattern(thread: usize) -> u64 {
    (thread as u64 + 1) * 0x0001_0001_0001_0001
}

#[cfg(test)]
mod tests {
    use super::{Area, Ordering, pattern};

    #[test]
    fn a_single_foreign_word_is_seen() {
        let area = Area::new(3);
        assert_eq!(area.mixed(), 0);
        area.fill(1, 4);
        assert!(area.is_filled(1, 4) && !area.is_filled(1, 5) && !area.is_filled(0, 4));
        for word in [0, 77, 127] {
            area.0[1].0[word].store(pattern(5), Ordering::Relaxed);
            assert!(!area.is_filled(1, 4));
            assert_eq!(area.mixed(), 1);
            area.fill(1, 4);
        }
        assert_eq!(area.mixed(), 0);
        assert_eq!(Area::positions(2), 2048..3072);
    }
}
