//! Free pages: a bitmap for all under a mutex, and stocks that threads take from.
//!
//! A thread takes pages from the stock that is its own, or that it shares with few others. It goes to the bitmap once
//! for many pages.

use crate::store::error::{Error, Result};
use crate::store::format::Block;
use prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use prim::sync::Mutex;
use smallvec::SmallVec;
use std::cell::Cell;

/// The pages of one write: usually one.
pub(crate) type Blocks = SmallVec<[Block; 4]>;

/// Pages that a stock takes from the bitmap at a time: as many as a word has bits.
const BATCH: usize = 64;

/// Slots that a log page has for entries, at least: 64, but for its header and what is left at its end.
const SLOTS_IN_USE: usize = 56;

/// What pages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// New data, and what a store can do without. It leaves the reserve alone.
    Data,
    /// Pages of the logs that inodes lead to, and what a truncation needs. So a full store can still be emptied, and
    /// opened.
    Upkeep,
}

/// On cache lines of its own: what operations write, apart from what all of them read.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Lines<T>(pub(crate) T);

type Stock = Lines<Mutex<Vec<Block>>>;

/// The free pages of a store.
#[derive(Debug)]
pub(crate) struct Allocator {
    stocks: Box<[Stock]>,
    pool: Mutex<Pool>,
    /// Free pages that only upkeep may use.
    reserve: usize,
    /// Whether the reserve is not whole. What comes back then goes there first.
    is_short: AtomicBool,
}

#[derive(Debug)]
struct Pool {
    /// A bit is set while its page is free and in no stock.
    free: Vec<u64>,
    count: usize,
    /// The word where the next search begins.
    next: usize,
}

impl Allocator {
    /// All pages are free, except those whose bits are set. The store has so many inodes.
    pub(crate) fn new(used: &Bitmap, inodes: u64, stocks: usize) -> Self {
        let blocks = used.blocks;
        let mut free: Vec<u64> = used.words.iter().map(|word| !word).collect();
        if let Some(last) = free.last_mut()
            && !blocks.is_multiple_of(64)
        {
            *last &= (1 << (blocks % 64)) - 1;
        }
        let count = free.iter().map(|word| word.count_ones() as usize).sum();
        // What it takes to rewrite the longest log: that of a file with an entry for each page, or that of directories
        // with eight slots for each inode, its longest name and its attributes. At least what a short log takes.
        let slots = blocks.max(8 * inodes as usize);
        let reserve = slots.div_ceil(SLOTS_IN_USE).max(4);
        Self {
            stocks: (0..stocks.max(1))
                .map(|_| Lines(Mutex::new(Vec::new())))
                .collect(),
            pool: Mutex::new(Pool {
                free,
                count,
                next: 0,
            }),
            reserve,
            is_short: AtomicBool::new(count < reserve),
        }
    }

    /// Whether some of the reserve is in use.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Takes so many pages.
    ///
    /// # Errors
    /// [`Error::NoSpace`], and then it has taken none.
    pub(crate) fn take(&self, count: usize, purpose: Purpose) -> Result<Blocks> {
        let mut taken = Blocks::new();
        let own = self.group();
        {
            let mut stock = self.stocks[own].0.lock();
            if stock.len() < count {
                self.refill(&mut stock, count);
            }
            let rest = stock.len().saturating_sub(count);
            taken.extend(stock.drain(rest..).rev());
        }
        self.take_elsewhere(&mut taken, count);
        if purpose == Purpose::Upkeep && taken.len() < count {
            self.take_reserve(&mut taken, count);
        }
        if taken.len() == count {
            return Ok(taken);
        }
        self.give_back(&taken);
        Err(Error::NoSpace)
    }

    #[cold]
    fn refill(&self, stock: &mut Vec<Block>, count: usize) {
        let mut pool = self.pool.lock();
        let wanted = (count + BATCH).min(pool.count.saturating_sub(self.reserve));
        let mut fresh = Vec::with_capacity(wanted);
        pool.take(wanted, &mut fresh);
        // The last is taken first: ascending pages for successive writes.
        fresh.reverse();
        fresh.append(stock);
        *stock = fresh;
    }

    /// Takes what is missing from other threads' stocks.
    fn take_elsewhere(&self, taken: &mut Blocks, count: usize) {
        for stock in &self.stocks {
            if taken.len() >= count {
                return;
            }
            let mut stock = stock.0.lock();
            let rest = stock.len().saturating_sub(count - taken.len());
            taken.extend(stock.drain(rest..));
        }
    }

    /// Takes what is missing from the reserve, and no more.
    #[cold]
    fn take_reserve(&self, taken: &mut Blocks, count: usize) {
        let mut pool = self.pool.lock();
        let missing = (count - taken.len()).min(pool.count);
        let mut fresh = Vec::with_capacity(missing);
        pool.take(missing, &mut fresh);
        taken.extend(fresh);
        self.is_short.store(true, Ordering::Relaxed);
    }

    /// Fills the reserve up, and returns the pages that it has no need of.
    #[cold]
    fn restore<'a>(&self, blocks: &'a [Block]) -> &'a [Block] {
        let mut pool = self.pool.lock();
        let missing = self.reserve.saturating_sub(pool.count);
        let (back, others) = blocks.split_at(missing.min(blocks.len()));
        back.iter().for_each(|&block| pool.put(block));
        // The pool's mutex orders it.
        self.is_short
            .store(pool.count < self.reserve, Ordering::Relaxed);
        others
    }

    /// These pages are free again.
    pub(crate) fn give_back(&self, mut blocks: &[Block]) {
        // Relaxed: a page that goes to a stock instead can be taken from there.
        if self.is_short() {
            blocks = self.restore(blocks);
        }
        if blocks.is_empty() {
            return;
        }
        let mut stock = self.stocks[self.group()].0.lock();
        stock.extend_from_slice(blocks);
        if stock.len() > 2 * BATCH {
            let surplus = stock.len() - BATCH;
            let mut pool = self.pool.lock();
            stock.drain(..surplus).for_each(|block| pool.put(block));
        }
    }

    /// Free pages.
    pub(crate) fn free(&self) -> usize {
        let stocks: usize = self.stocks.iter().map(|stock| stock.0.lock().len()).sum();
        stocks + self.pool.lock().count
    }

    /// The number of this thread's group, which has a stock.
    pub(crate) fn group(&self) -> usize {
        prim::global! {
            static THREADS: AtomicUsize = AtomicUsize::new(0);
        }
        prim::local! {
            static NUMBER: Cell<usize> = Cell::new(usize::MAX);
        }
        let number = NUMBER.with(|number| {
            if number.get() == usize::MAX {
                number.set(THREADS.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        });
        number % self.stocks.len()
    }
}

impl Pool {
    fn take(&mut self, count: usize, into: &mut Vec<Block>) {
        let words = self.free.len();
        for _ in 0..=words {
            let word = &mut self.free[self.next];
            while *word != 0 && into.len() < count {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                into.push(Block::try_from(self.next * 64).expect("a block's number") + bit);
            }
            if into.len() == count {
                break;
            }
            self.next = (self.next + 1) % words;
        }
        self.count -= into.len();
    }

    fn put(&mut self, block: Block) {
        self.free[block as usize / 64] |= 1 << (block % 64);
        self.count += 1;
    }
}

/// A bit for each page of a store.
#[derive(Debug, Clone)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    blocks: usize,
}

impl Bitmap {
    /// All bits are clear.
    pub(crate) fn new(blocks: usize) -> Self {
        let words = vec![0; blocks.div_ceil(64)];
        Self { words, blocks }
    }

    /// Sets a bit; whether it was clear.
    pub(crate) fn set(&mut self, block: Block) -> bool {
        let word = &mut self.words[block as usize / 64];
        let bit = 1 << (block % 64);
        let was_clear = *word & bit == 0;
        *word |= bit;
        was_clear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(blocks: usize, used: &[Block]) -> Allocator {
        let mut bitmap = Bitmap::new(blocks);
        for &block in used {
            assert!(bitmap.set(block));
        }
        Allocator::new(&bitmap, 16, 2)
    }

    #[test]
    fn every_free_page_is_given_once_and_comes_back() {
        let pages = allocator(130, &[0, 1, 64, 129]);
        assert_eq!(pages.free(), 126);
        let mut all = pages.take(126, Purpose::Upkeep).expect("they are free");
        assert!(pages.take(1, Purpose::Upkeep).is_err());
        all.sort_unstable();
        assert!(all.iter().copied().eq((2..64).chain(65..129)));
        pages.give_back(&all);
        assert_eq!(pages.free(), 126);
    }

    #[test]
    fn data_leaves_a_reserve() {
        let pages = allocator(64, &[]);
        assert!(pages.take(61, Purpose::Data).is_err());
        let data = pages.take(60, Purpose::Data).expect("all but the reserve");
        assert!(pages.take(1, Purpose::Data).is_err());
        let log = pages.take(4, Purpose::Upkeep).expect("the reserve");
        assert_eq!(data.len() + log.len(), 64);
    }
}
