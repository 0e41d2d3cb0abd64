//! A block that was found lately, as it is read without the mutex.
//!
//! A slot changes under the mutex of the list.
//! - **slot-is-odd** / **slot-odd-seen**: its version is made odd before a word of it changes. Who has read a new word
//!   sees another version when he looks at it again.
//! - **slot-odd-refused**: who has read an odd version has read words of two changes, whatever he sees then.
//! - **slot-is-whole** / **slot-whole-seen**: it is made even after the last word has changed. Who has read an even
//!   version reads these words, or later ones.

use prim::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use spanlock::range::Span;
use std::ptr;

/// Where a block of type `B` lies, and which positions it has.
#[derive(Debug)]
pub(super) struct Slot<B> {
    /// Odd while the others change.
    version: AtomicU64,
    start: AtomicU64,
    last: AtomicU64,
    block: AtomicPtr<B>,
}

impl<B> Slot<B> {
    prim::const_fn! {
        /// Without a block.
        pub(super) const fn new() -> Self {
            Self {
                version: AtomicU64::new(0),
                start: AtomicU64::new(0),
                last: AtomicU64::new(0),
                block: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Its block, if that covers the range.
    #[inline]
    pub(super) fn find(&self, span: Span) -> Option<*const B> {
        // [slot-whole-seen] Acquire: pairs with [slot-is-whole].
        let version = self
            .version
            .load(prim::order!("slot-whole-seen", Ordering::Acquire));
        // Relaxed: if they are of another version, the second look finds that.
        let (start, last) = (
            self.start.load(Ordering::Relaxed),
            self.last.load(Ordering::Relaxed),
        );
        let block = self.block.load(Ordering::Relaxed);
        // [slot-odd-seen] Acquire: pairs with [slot-is-odd].
        if prim::intact!("slot-odd-seen") {
            fence(Ordering::Acquire);
        }
        // [slot-odd-refused]
        let is_even = version.is_multiple_of(2) || !prim::intact!("slot-odd-refused");
        let is_whole = is_even && self.version.load(Ordering::Relaxed) == version;
        let covers = start <= span.start() && span.last() <= last;
        (is_whole && covers && !block.is_null()).then_some(block.cast_const())
    }

    /// Changes it. By one thread at a time.
    pub(super) fn set(&self, span: Span, block: *const B) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // [slot-is-odd] Release: pairs with [slot-odd-seen].
        if prim::intact!("slot-is-odd") {
            fence(Ordering::Release);
        }
        self.start.store(span.start(), Ordering::Relaxed);
        self.last.store(span.last(), Ordering::Relaxed);
        self.block.store(block.cast_mut(), Ordering::Relaxed);
        // [slot-is-whole] Release: pairs with [slot-whole-seen].
        let whole = prim::order!("slot-is-whole", Ordering::Release);
        self.version.store(version + 2, whole);
    }

    /// Whether it has this block. By who may change it.
    pub(super) fn has(&self, block: *const B) -> bool {
        ptr::eq(self.block.load(Ordering::Relaxed), block)
    }
}
