//! What the words of a span name, in locks whose words are no positions.
//!
//! A cell is memory with a count of its uses, which holds the two ends of a range: what an end is, [keys](super::keys)
//! know. Its address is the name of the first end, and with a mark that of the second.
//!
//! # Edges
//!
//! - **innocent**: where a thread compares for others, a panic of the comparison is no answer, and not its own.
//! - **last-use**: Release by dropping a use, Acquire by whoever finds that its own is the only one left: the others
//!   have read the content before the next one is written.

use super::span::Span;
use prim::atomic::{AtomicU32, Ordering};
use prim::track::Track;
use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr::{self, NonNull};

/// What cells of all types begin with.
#[repr(C, align(16))] // Room for a mark in the address.
pub(super) struct Header {
    uses: AtomicU32,
    /// Whether its first use waits for a node, which takes it over. Only the thread that asks for the range uses this,
    /// before others know the cell.
    is_offered: Cell<bool>,
    functions: &'static Functions,
    _track: Track,
}

impl Header {
    /// The begin of a cell with one use.
    pub(super) fn new(functions: &'static Functions) -> Self {
        Self {
            uses: AtomicU32::new(1),
            is_offered: Cell::new(false),
            functions,
            _track: Track::new(),
        }
    }

    /// Counts one more use.
    #[inline]
    fn add_use(&self) {
        // Relaxed: who counts has a use, or a pin under which the node keeps its own.
        let before = self.uses.fetch_add(1, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            // So many were leaked. One more may be the first again, and the cell be freed while it is read.
            std::process::abort();
        }
    }
}

/// What depends on the type of the content.
pub(super) struct Functions {
    pub(super) id: fn() -> TypeId,
    /// Frees the cell, which has no users.
    pub(super) free: unsafe fn(NonNull<Header>),
    /// Whether its content is small enough to be kept for the next one.
    pub(super) is_small: unsafe fn(NonNull<Header>) -> bool,
}

/// A use of a cell.
pub(crate) struct Named(NonNull<Header>);

// SAFETY: a cell may be sent and shared, and its content is written only by who is the only user, as `from_raw`
// demands.
unsafe impl Send for Named {}
// SAFETY: the same.
unsafe impl Sync for Named {}

impl Clone for Named {
    #[inline]
    fn clone(&self) -> Self {
        self.header().add_use();
        Self(self.0)
    }
}

impl Drop for Named {
    #[inline]
    fn drop(&mut self) {
        // Release: what this user did with the content comes before it is freed.
        let order = prim::order!("last-use", Ordering::Release); // [last-use]
        if self.header().uses.fetch_sub(1, order) == 1 {
            // Acquire: what the others did comes before. It is a load, since the thread sanitizer does not know fences.
            self.header().uses.load(Ordering::Acquire);
            let (free, cell) = (self.header().functions.free, self.0);
            // Foreign code: a panic of it is nobody's. The memory is freed all the same.
            // SAFETY: its functions are of its type, and this was the last use.
            contained((), || unsafe { free(cell) });
        }
    }
}

impl Named {
    /// # Safety
    /// It is a use of a cell that came from a box, and of which the functions are those of its type. Any thread may
    /// read and free the content, and it is written only by who has the only use.
    pub(super) unsafe fn from_raw(cell: NonNull<Header>) -> Self {
        Self(cell)
    }

    pub(super) fn as_raw(&self) -> NonNull<Header> {
        self.0
    }

    /// Whether the type of its content is that one.
    pub(super) fn is_of(&self, id: TypeId) -> bool {
        (self.header().functions.id)() == id
    }

    fn header(&self) -> &Header {
        // SAFETY: this use keeps it.
        unsafe { self.0.as_ref() }
    }

    /// The range between its ends.
    #[inline]
    pub(in crate::range) fn span(&self) -> Span {
        let address = self.0.as_ptr().expose_provenance() as u64;
        Span::named(address, address | SECOND)
    }

    /// The range between its ends. The node of the request for it takes this use over, so that nothing is counted.
    #[inline]
    pub(in crate::range) fn offer(self) -> Span {
        let span = self.span();
        self.header().is_offered.set(true);
        std::mem::forget(self);
        span
    }

    /// The use that was [offered](Self::offer), or another one of that cell.
    ///
    /// # Safety
    /// The span is a cell's, which is in use, or was offered by this thread.
    #[inline]
    pub(super) unsafe fn take(span: Span) -> Self {
        let header = ptr::with_exposed_provenance_mut::<Header>(span.start() as usize);
        // SAFETY: the name of an end is the address of its cell, with a mark.
        let named = Self(unsafe { NonNull::new_unchecked(header) });
        if !named.header().is_offered.take() {
            named.header().add_use();
        }
        named
    }

    /// The cell whose ends are those of the span, if it is one.
    ///
    /// # Safety
    /// The span names ends of cells that are in use.
    #[inline]
    pub(super) unsafe fn whole(span: Span) -> Option<Self> {
        (span.start() & SECOND == 0 && span.start() | SECOND == span.last()).then(|| {
            let header = ptr::with_exposed_provenance_mut::<Header>(span.start() as usize);
            // SAFETY: the name of an end is the address of its cell, with a mark.
            let header = unsafe { NonNull::new_unchecked(header) };
            // SAFETY: it is in use, as the caller promises.
            unsafe { header.as_ref() }.add_use();
            Self(header)
        })
    }

    /// Whether this is the only use.
    fn is_only_use(&self) -> bool {
        // [last-use] Acquire: what the other users did comes before the next content is written.
        self.header()
            .uses
            .load(prim::order!("last-use", Ordering::Acquire))
            == 1
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Named")
    }
}

/// Marks the name of a cell's second end.
pub(super) const SECOND: u64 = 1;

/// The cells that a thread keeps for its next requests.
#[derive(Default)]
pub(in crate::range) struct Spares(RefCell<Vec<Named>>);

impl Spares {
    /// The most that it keeps.
    const MOST: usize = 16;

    pub(super) fn take(&self) -> Option<Named> {
        self.0.borrow_mut().pop()
    }

    /// Takes over what is not used any more, if that was the last use.
    #[inline]
    pub(super) fn put(&self, named: Named) {
        if !named.is_only_use() {
            return;
        }
        let is_small = named.header().functions.is_small;
        // Foreign code: what cannot be asked is not kept.
        // SAFETY: its functions are of its type.
        if contained(false, || unsafe { is_small(named.0) }) {
            let mut spares = self.0.borrow_mut();
            if spares.len() < Self::MOST {
                spares.push(named);
            }
            // Else it is freed when the borrow is over: that is foreign code.
        }
    }

    /// Frees all. That is foreign code.
    pub(in crate::range) fn clear(&self) {
        drop(self.0.take());
    }
}

/// The answer of a user's code, or another one if that panics.
#[inline]
pub(super) fn contained<R>(otherwise: R, ask: impl FnOnce() -> R) -> R {
    if !prim::intact!("innocent") {
        return ask();
    }
    prim::contain(ask).unwrap_or(otherwise)
}
