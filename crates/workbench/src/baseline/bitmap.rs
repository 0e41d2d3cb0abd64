//! `bitmap`: a lock with one bit for each block of the resource. The bit is set while the block is held.
//!
//! ```text
//!   resource   | block 0 | block 1 | block 2 | block 3 | ...       a request for the units marked *
//!                              * * * * * * *                       touches blocks 1 and 2
//!   word            0         1         1         0      ...       and sets their two bits
//! ```
//!
//! LeanStore's aliasing area originally had a lock of this kind. P4 §4.4.1 says only that it "employs a bitmap and
//! compare-and-swap".
//!
//! A request sets the bits of its range word by word, in ascending order. One compare-exchange sets the bits of one
//! word, and it expects all of them to be clear. If a bit is set already, the request clears the bits that it has set,
//! waits a little and starts over. A release clears the range's bits. There is no queue, so a request for a long range
//! may be overtaken without end.
//!
//! # Granularity
//! Two ranges that touch the same block conflict, even if they are disjoint. A thread that asks for two such ranges
//! waits for itself. The number of blocks is fixed, and the last block extends to `u64::MAX`. A try may fail because
//! another request holds some bits for a moment and is about to roll back.
//!
//! # Memory ordering
//! - **bitmap-clear** / **bitmap-set**: Release by the read-modify-write that clears bits, Acquire by the
//!   compare-exchange that sets them. Two holders of one block use the same word. Later changes of that word continue
//!   the release sequence.
//!
//! # Steps
//! - **bitmap-roll-back**: a request that fails at one word clears the bits that it set in earlier words. So it holds
//!   nothing while it waits.

use super::grid::Grid;
use super::spin_lock::{gives_up, spin_until};
use prim::atomic::{AtomicU64, Ordering};
use spanlock::range::Span;
use spanlock::range::raw::{Ask, RawRangeMutex};

const WORD: u64 = u64::BITS as u64;

/// A lock with one bit for each block of the resource. The source of this module describes its granularity.
///
/// After its construction it allocates nothing.
pub struct Bitmap {
    blocks: Grid,
    words: Box<[AtomicU64]>,
}

/// The token of an acquisition: its first and last block.
#[derive(Debug)]
pub struct BitmapToken {
    first: u64,
    last: u64,
}

impl Bitmap {
    /// A free lock for a resource of so many positions in blocks of so many. Positions beyond the resource belong to
    /// the last block.
    ///
    /// # Panics
    /// When the resource or the block is empty, and when there is not enough memory for the bits.
    #[must_use]
    pub fn new(units: u64, block: u64) -> Self {
        let blocks = Grid::new(units, block);
        let words = 0..=blocks.last() / WORD;
        Self {
            blocks,
            words: words.map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn blocks(&self, span: Span) -> BitmapToken {
        let (first, last) = self.blocks.parts(span);
        BitmapToken { first, last }
    }

    /// The words of a range of blocks, each with the bits of those blocks.
    fn parts(&self, blocks: &BitmapToken) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let &BitmapToken { first, last } = blocks;
        (first / WORD..=last / WORD).map(move |word| {
            let from = first.max(word * WORD) % WORD;
            let to = last.min(word * WORD + (WORD - 1)) % WORD;
            let mask = (u64::MAX << from) & (u64::MAX >> (WORD - 1 - to));
            let at = usize::try_from(word).expect("as many as there is memory for");
            (&self.words[at], mask)
        })
    }

    /// Sets all bits of a range of blocks, or none.
    fn take(&self, blocks: &BitmapToken) -> bool {
        let taken = self
            .parts(blocks)
            .take_while(|(word, mask)| set(word, *mask));
        let taken = taken.count();
        let all = taken == self.parts(blocks).count();
        // [bitmap-roll-back] No other thread clears these bits.
        if !all && prim::intact!("bitmap-roll-back") {
            self.clear(blocks, taken);
        }
        all
    }

    /// Clears the range's bits in its first words, as many as given.
    fn clear(&self, blocks: &BitmapToken, words: usize) {
        for (word, mask) in self.parts(blocks).take(words) {
            // [bitmap-clear] Release: pairs with [bitmap-set].
            word.fetch_and(!mask, prim::order!("bitmap-clear", Ordering::Release));
        }
    }
}

/// Sets bits of a word if all of them are clear; otherwise returns `false`.
fn set(word: &AtomicU64, mask: u64) -> bool {
    // [bitmap-set] Acquire: pairs with [bitmap-clear]. The load is only a first guess.
    let acquire = prim::order!("bitmap-set", Ordering::Acquire);
    let set = |now| (now & mask == 0).then_some(now | mask);
    word.fetch_update(acquire, Ordering::Relaxed, set).is_ok()
}

// SAFETY: a range is granted after a compare-exchange has changed the bits of each of its blocks from clear to set, and
// only its own release clears them. The critical sections of earlier holders of a block are visible by [bitmap-clear].
unsafe impl RawRangeMutex for Bitmap {
    type Token = BitmapToken;

    fn lock_exclusive(&self, ask: Ask<'_, BitmapToken>) -> Option<BitmapToken> {
        let blocks = self.blocks(ask.span);
        let mut granted = false;
        spin_until(|| {
            granted = self.take(&blocks);
            granted || gives_up(ask.wait)
        });
        granted.then_some(blocks)
    }

    unsafe fn unlock(&self, token: BitmapToken) {
        self.clear(&token, usize::MAX);
    }

    fn granule(&self, span: Span) -> Span {
        self.blocks.granule(span)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bitmap, Ordering};
    use proptest::prelude::*;
    use spanlock::range::{RangeMutex, Span};

    proptest! {
        #[test]
        fn agrees_with_a_vector_of_blocks(
            units in 1..1000_u64,
            block in 1..9_u64,
            ops in prop::collection::vec((any::<bool>(), 0..1100_u64, 0..300_u64, 0..100_usize), 0..120),
        ) {
            let lock = RangeMutex::from_raw(Bitmap::new(units, block));
            let mut model = Vec::new();
            let number = |position: u64| (position / block).min((units - 1) / block);
            for (acquire, start, more, at) in ops {
                if acquire {
                    let (first, last) = (number(start), number(start + more));
                    let free = model.iter().all(|&(a, b, _)| last < a || b < first);
                    let guard = lock.try_lock(start..=start + more);
                    prop_assert_eq!(guard.is_some(), free, "{}..={}", start, start + more);
                    model.extend(guard.map(|guard| (first, last, guard)));
                } else if !model.is_empty() {
                    let _released = model.swap_remove(at % model.len());
                }
            }
            drop(model);
            let clear = lock.raw().words.iter().all(|word| word.load(Ordering::Relaxed) == 0);
            prop_assert!(clear, "nothing is left behind");
        }
    }

    #[test]
    fn a_conflict_in_a_later_word_leaves_nothing_in_the_earlier_ones() {
        let lock = RangeMutex::from_raw(Bitmap::new(256, 1));
        let late = lock.try_lock(200..201).unwrap();
        assert!(lock.try_lock(10..=200).is_none());
        let early = lock.try_lock(0..200);
        assert!(early.is_some());
        drop((late, early));
        assert!(lock.try_lock(..).is_some());
    }

    #[test]
    fn blocks_decide_and_the_last_one_has_the_rest() {
        let lock = Bitmap::new(100, 10);
        let blocks = |a, b| {
            let token = lock.blocks(Span::of(a..=b).unwrap());
            (token.first, token.last)
        };
        assert_eq!(blocks(0, 9), (0, 0));
        assert_eq!(blocks(9, 10), (0, 1));
        assert_eq!(blocks(99, 100), (9, 9));
        assert_eq!(blocks(0, u64::MAX), (0, 9));
    }
}
