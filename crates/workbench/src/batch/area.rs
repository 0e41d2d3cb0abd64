//! The memory that threads write.

use super::RANGE_BYTES;
use crate::lines::Lines;
use prim::cost;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cycles of writing a line and of reading one on a simulated machine. Assumptions: a word a cycle, two words a
/// cycle.
const WRITE: u64 = 8;
const READ: u64 = 4;

/// A cache line of words.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; 8]);

const LINES: usize = RANGE_BYTES / size_of::<Line>();

/// One range's memory.
#[derive(Debug, Default)]
pub struct Block([Line; LINES]);

impl Block {
    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter().flat_map(|Line(words)| words)
    }
}

/// Blocks of 1 KB, all zero at first.
///
/// They are written and read one word after the other by plain stores and loads. To the compiler these are relaxed
/// atomics, so that a run without a lock is a race but not undefined behaviour. The price against the thesis' `memset`
/// is that words are not joined to vectors: the same for all locks. A simulated machine charges each line as plain
/// memory.
pub type Area = Lines<Block>;

impl Area {
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
        for line in &self.0[range].0 {
            cost::write(line);
            cost::work(WRITE);
            for word in &line.0 {
                word.store(pattern(thread), Ordering::Relaxed);
            }
        }
    }

    /// Whether a range holds a thread's pattern and nothing else.
    #[inline]
    #[must_use]
    pub fn is_filled(&self, range: usize, thread: usize) -> bool {
        // No early end: the loop is the same work for every range.
        let mut differing = 0;
        for line in &self.0[range].0 {
            cost::read(line);
            cost::work(READ);
            for word in &line.0 {
                differing |= word.load(Ordering::Relaxed) ^ pattern(thread);
            }
        }
        differing == 0
    }

    /// Ranges that hold words of several threads. Nobody may write meanwhile.
    #[must_use]
    pub fn mixed(&self) -> u64 {
        let uniform = |block: &Block| {
            let mut words = block.words().map(|word| word.load(Ordering::Relaxed));
            let first = words.next();
            words.all(|word| Some(word) == first)
        };
        self.0.iter().filter(|block| !uniform(block)).count() as u64
    }
}

/// The pattern that a thread writes; every byte pair of it differs from any other thread's and from fresh memory.
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
            let foreign = area.0[1].words().nth(word).unwrap();
            foreign.store(pattern(5), Ordering::Relaxed);
            assert!(!area.is_filled(1, 4));
            assert_eq!(area.mixed(), 1);
            area.fill(1, 4);
        }
        assert_eq!(area.mixed(), 0);
        assert_eq!(Area::positions(2), 2048..3072);
    }
}
