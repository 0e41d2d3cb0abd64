//! The record of one area.

use super::Life;
use crate::vm::PAGE;
use crate::vm::plan::{Kind, Range};
use prim::atomic::{AtomicU64, Ordering};
use prim::cell::UnsafeCell;
use prim::track::Track;

/// The bit in `start`.
const GUARDED: u64 = 1;

// Areas begin at pages.
const _: () = assert!(PAGE.is_multiple_of(2 * GUARDED));

/// The record of an area.
///
/// | field | who may change it | who may rely on it |
/// |---|---|---|
/// | `start` | who holds a page on each side of the old and the new place, and all between | who holds the first page |
/// | `end` | the same | who holds the last page |
/// | `kind` | who holds all of the area | who holds any page of it |
///
/// "Holds" means exclusively to change, in any mode to rely on it. Whoever holds some page of the area may rely on the
/// boundaries to be on their sides of that page.
#[derive(Debug)]
#[repr(align(64))] // One cache line: a boundary that moves disturbs no other area.
pub(crate) struct Node {
    /// Its lowest bit, which an address of a page does not need, is set for good if others keep a gap below the area.
    start: AtomicU64,
    end: AtomicU64,
    kind: UnsafeCell<Kind>,
    pub(super) life: Life,
    _track: Track,
}

// SAFETY: the type's documentation says who may access the cell, and the range lock orders them.
unsafe impl Sync for Node {}

// SAFETY: it contains no thread's own data.
unsafe impl Send for Node {}

impl Node {
    pub(super) fn new(range: Range, kind: Kind) -> Self {
        Self {
            start: AtomicU64::new(range.start | u64::from(kind.is_guarded())),
            end: AtomicU64::new(range.end),
            kind: UnsafeCell::new(kind),
            life: Life::new(),
            _track: Track::new(),
        }
    }

    // Relaxed, here and below: the range lock orders changes of boundaries before those who rely on them.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed) & !GUARDED
    }

    /// Whether others keep a gap below the area.
    pub(crate) fn is_guarded(&self) -> bool {
        self.start.load(Ordering::Relaxed) & GUARDED != 0
    }

    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.start() <= address && address < self.end()
    }

    #[inline]
    pub(crate) fn range(&self) -> Range {
        Range {
            start: self.start(),
            end: self.end(),
        }
    }

    pub(super) fn set_start(&self, start: u64) {
        // Relaxed: nobody else changes it at the same time.
        let guarded = self.start.load(Ordering::Relaxed) & GUARDED;
        self.start.store(start | guarded, Ordering::Relaxed);
    }

    pub(super) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// What the area is. The caller holds a page of it.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        // SAFETY: whoever changes it holds all of the area exclusively, and the caller holds a page.
        self.kind.with(|kind| unsafe { *kind })
    }

    /// Changes what the area is.
    ///
    /// # Safety
    /// The caller holds all of the area exclusively.
    pub(crate) unsafe fn set_kind(&self, kind: Kind) {
        // SAFETY: the caller holds all of the area, so nobody else relies on it.
        self.kind.with_mut(|is| unsafe { *is = kind });
    }
}
