//! The record of one area.

use super::LEVELS;
use crate::plan::{Kind, Range};
use prim::atomic::{AtomicPtr, AtomicU64, Ordering};
use prim::cell::UnsafeCell;
use prim::track::Track;
use std::ptr;

/// The bit in `start`.
const GUARDED: u64 = 1;

/// An area in the index. One cache line; one in four has links of higher levels elsewhere.
///
/// | field | who may change it | who may rely on it |
/// |---|---|---|
/// | `start` | who holds a page on each side of the old and the new place, and all between | who holds the first page |
/// | `end` | the same | who holds the last page |
/// | `kind` | who holds all of the area | who holds any page of it |
/// | links | who holds the index's mutex | see the parent module |
///
/// "Holds" means exclusively to change, in any mode to rely on it. Whoever holds some page of the area may rely on the
/// boundaries to be on their sides of that page.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its lowest bit, which an address of a page does not need, is set for good if others keep a gap below the area.
    start: AtomicU64,
    end: AtomicU64,
    next: AtomicPtr<Node>,
    kind: UnsafeCell<Kind>,
    upper: Box<[AtomicPtr<Node>]>,
    /// Read by those who meet the area, and written before it is freed: a model checker sees when the two race.
    life: UnsafeCell<()>,
    _track: Track,
}

// SAFETY: the type's documentation says who may access the cell, and the range lock orders them.
unsafe impl Sync for Node {}

// SAFETY: it contains no thread's own data.
unsafe impl Send for Node {}

impl Node {
    pub(super) fn new(range: Range, kind: Kind, height: usize) -> Self {
        debug_assert!((1..=LEVELS).contains(&height));
        Self {
            start: AtomicU64::new(range.start | u64::from(kind.is_guarded())),
            end: AtomicU64::new(range.end),
            next: AtomicPtr::new(ptr::null_mut()),
            kind: UnsafeCell::new(kind),
            upper: (1..height)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
            life: UnsafeCell::new(()),
            _track: Track::new(),
        }
    }

    /// A search has come to this area.
    #[inline]
    pub(super) fn met(&self) -> &Self {
        self.life.with(|_| ());
        self
    }

    /// Nobody comes to this area any more.
    pub(super) fn dead(&self) {
        self.life.with_mut(|_| ());
    }

    pub(super) fn height(&self) -> usize {
        1 + self.upper.len()
    }

    #[inline]
    pub(super) fn link(&self, level: usize) -> &AtomicPtr<Self> {
        match level.checked_sub(1) {
            None => &self.next,
            Some(upper) => &self.upper[upper],
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
