//! The blocks of a cache, and how they are found.
//!
//! All of them are in a list, under a mutex. Those that were found lately are in *slots* as well, which are read
//! without it: where a range begins says in which slot it is looked for, and the slot says which positions its block
//! covers.
//!
//! # Why what is found may be used
//! Who looks has the range in the machine's range lock by then, and keeps it while the block is used
//! (**looks-inside**). A block is taken off the list and out of the slots (**newcomers-stopped**) before its whole span
//! is locked (**holders-drained**), and is released and freed only then. So whoever had the range before the drain
//! keeps it waiting, and whoever has it after finds the block no more: the range lock puts one before the other. Until
//! the drain is over the list of those that are *leaving* keeps the block (**leaving-kept**): whoever gives it up may
//! stop in the middle, as futures may be dropped.
//!
//! A slot changes under the mutex only:
//! - **slot-is-odd**: its version is made odd before a word of it changes. Who has read a new word sees another version
//!   when he looks at it again.
//! - **slot-is-whole**: it is made even after the last word has changed. Who has read an even version reads these
//!   words, or later ones.

use crate::token::Gate;
use crate::{Fence, Lost, Mode, Span, Token};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};

/// A token that the threads and tasks of a machine share.
#[derive(Debug)]
pub(crate) struct Block {
    token: Mutex<Option<Token>>,
    pub(crate) span: Span,
    mode: Mode,
    pub(crate) fence: Fence,
    gate: Arc<Gate>,
}

impl Block {
    pub(crate) fn new(token: Token) -> Arc<Self> {
        Arc::new(Self {
            span: token.span(),
            mode: token.mode(),
            fence: token.fence(),
            gate: Arc::clone(&token.gate),
            token: Mutex::new(Some(token)),
        })
    }

    /// Once.
    pub(crate) fn take(&self) -> Option<Token> {
        self.token.lock().expect("no panic while held").take()
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if self.gate.is_open() {
            Ok(())
        } else {
            Err(Lost)
        }
    }

    /// Whether work of this mode may begin under it.
    #[inline]
    fn allows(&self, mode: Mode) -> bool {
        self.gate.is_open() && (mode == Mode::Shared || self.mode == Mode::Exclusive)
    }

    fn covers(&self, span: Span) -> bool {
        self.span.start() <= span.start() && span.last() <= self.span.last()
    }
}

/// A block that was found lately.
#[derive(Debug, Default)]
struct Slot {
    /// Odd while the others change.
    version: AtomicU64,
    start: AtomicU64,
    last: AtomicU64,
    block: AtomicPtr<Block>,
}

impl Slot {
    /// Its block, if that covers the range.
    #[inline]
    fn find(&self, span: Span) -> Option<*const Block> {
        // (slot-is-whole)
        let version = self.version.load(Ordering::Acquire);
        let (start, last) = (
            self.start.load(Ordering::Relaxed),
            self.last.load(Ordering::Relaxed),
        );
        let block = self.block.load(Ordering::Relaxed);
        // (slot-is-odd)
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        let covers = start <= span.start() && span.last() <= last;
        (is_whole && covers && !block.is_null()).then_some(block.cast_const())
    }

    /// By one thread at a time.
    fn set(&self, span: Span, block: *const Block) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // (slot-is-odd)
        fence(Ordering::Release);
        self.start.store(span.start(), Ordering::Relaxed);
        self.last.store(span.last(), Ordering::Relaxed);
        self.block.store(block.cast_mut(), Ordering::Relaxed);
        // (slot-is-whole)
        self.version.store(version + 2, Ordering::Release);
    }
}

/// So many blocks are found without the mutex, unless two of them have the same slot.
const SLOTS: usize = 256;

/// The blocks that a machine has.
#[derive(Debug)]
pub(crate) struct Blocks {
    list: Mutex<List>,
    slots: Box<[Slot; SLOTS]>,
    /// Blocks have up to `2^k` positions.
    pub(crate) k: u32,
}

#[derive(Debug, Default)]
struct List {
    /// Those that may be found.
    known: Vec<Arc<Block>>,
    /// Those that are given up, until their holders have ended.
    leaving: Vec<Arc<Block>>,
}

impl Blocks {
    pub(crate) fn new(k: u32) -> Self {
        Self {
            list: Mutex::default(),
            slots: Box::new(std::array::from_fn(|_| Slot::default())),
            k: k.min(63),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().expect("no panic while held")
    }

    /// All, also those that are being given up: whoever began that may have stopped.
    pub(crate) fn all(&self) -> Vec<Arc<Block>> {
        let list = self.list();
        list.known.iter().chain(&list.leaving).cloned().collect()
    }

    /// How many may be found.
    pub(crate) fn count(&self) -> usize {
        self.list().known.len()
    }

    /// A block that covers the range and allows the mode. It lives as long as the range is held.
    ///
    /// # Safety
    /// Some of the range has been held in the machine's lock since before the call (looks-inside).
    #[inline]
    pub(crate) unsafe fn find(&self, span: Span, mode: Mode) -> Option<*const Block> {
        let slot = self.slot(span);
        // SAFETY: it covers what is held, so its drain waits for us, or was before us and had emptied the slot.
        let is_good = |block: &*const Block| unsafe { (**block).allows(mode) };
        match slot.find(span).filter(is_good) {
            None => self.find_in_list(span, mode, slot),
            found => found,
        }
    }

    #[inline]
    fn slot(&self, span: Span) -> &Slot {
        // What is cut off has no influence on the rest.
        &self.slots[(span.start() >> self.k) as usize % SLOTS]
    }

    /// And has it found without the list from now on.
    #[cold]
    fn find_in_list(&self, span: Span, mode: Mode, slot: &Slot) -> Option<*const Block> {
        let list = self.list();
        let block = list
            .known
            .iter()
            .find(|block| block.covers(span) && block.allows(mode))?;
        let found = Arc::as_ptr(block);
        slot.set(block.span, found);
        Some(found)
    }

    /// Whether [`find`](Self::find) would find one.
    pub(crate) fn has(&self, span: Span, mode: Mode) -> bool {
        let is_good = |block: &Arc<Block>| block.covers(span) && block.allows(mode);
        self.list().known.iter().any(is_good)
    }

    pub(crate) fn add(&self, block: Arc<Block>) {
        self.list().known.push(block);
    }

    /// It is found no more. (newcomers-stopped)
    pub(crate) fn remove(&self, block: &Arc<Block>) {
        let mut list = self.list();
        let List { known, leaving } = &mut *list;
        // (leaving-kept)
        leaving.extend(known.extract_if(.., |other| Arc::ptr_eq(other, block)));
        let holds = |slot: &&Slot| ptr::eq(slot.block.load(Ordering::Relaxed), Arc::as_ptr(block));
        for slot in self.slots.iter().filter(holds) {
            slot.set(block.span, ptr::null());
        }
    }

    /// Those who held parts of it when it was removed have ended.
    pub(crate) fn drained(&self, block: &Arc<Block>) {
        self.list()
            .leaving
            .retain(|other| !Arc::ptr_eq(other, block));
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Slot};
    use crate::Span;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// What a slot says belongs together, also while it changes. The pointers are numbers here.
    #[test]
    fn who_reads_a_slot_reads_the_words_of_one_block() {
        let (slot, ends) = (Slot::default(), AtomicBool::new(false));
        let span = |number: usize| {
            let start = 4 * number as u64;
            Span::inclusive(start, start + 3).expect("in order")
        };
        let pointer = |number: usize| ptr::without_provenance::<Block>(64 * (number + 1));
        slot.set(span(0), pointer(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut found = [0_u32; 4];
                while found.iter().any(|&times| times < 1000) && !ends.load(Ordering::Relaxed) {
                    for (number, times) in found.iter_mut().enumerate() {
                        if let Some(block) = slot.find(span(number)) {
                            assert_eq!(block, pointer(number));
                            *times += 1;
                        }
                    }
                }
                ends.store(true, Ordering::Relaxed);
            });
            for number in (0..4).cycle().take(40_000_000) {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                slot.set(span(number), pointer(number));
            }
            ends.store(true, Ordering::Relaxed);
        });
    }
}
