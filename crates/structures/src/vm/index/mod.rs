//! The index: all areas in order of their addresses, in two levels of arrays.
//!
//! ```text
//!   directory    │ slot │ slot │ slot │          a hint where each chunk begins, and how much room it may have
//!                   │      │      '───────────────┐
//!                   v      v                      v
//!   chunks       │ · · · │ · · · · · │         │ · · │   a hint where each area begins
//!                  │ │ │   │ │ │ │ │             │ │
//!                  v v v   v v v v v             v v
//!   areas         their boundaries and kinds, each in a record of its own
//! ```
//!
//! Searches take no lock. A change of the structure copies the chunk that it changes, or the directory, and puts the
//! copy in the place of the original, under a mutex. Changes in place change neither.
//!
//! # Why a search finds its area
//!
//! A search has a *key*, an address in a range that the thread holds. So the area A that contains the key, if there is
//! one, stays in the index, and its boundaries stay on their sides of the key.
//!
//! - The directory that the search loads, and the chunks that it loads of that, have all areas that stay in the index.
//!   A directory that has been replaced keeps its chunks as they were then.
//! - Which areas come before A in it, and which after, does not change. Each that comes before starts before the key at
//!   all times, since areas do not overlap, and each that comes after starts after the key. This is true also of those
//!   that were removed: they keep their boundaries.
//!
//! So the last area that starts at or before the key is A, wherever the search looks first. That is where the hints
//! lead. They may be old, because areas that move in place do not change them. Then the search steps to the next or to
//! the previous area until it is right, and renews the hints that it passes.
//!
//! A search with a key that the thread does not hold finds some area that was there at some time. That is enough to
//! guess which range to lock.
//!
//! # Edges
//!
//! - **chunk**: Release by the change that puts a chunk in the place of another, Acquire by the searches: they see its
//!   areas, and not what was in its memory before.
//! - **directory**: the same for a directory.
//! - **origin**: where an area's content begins is stated as the offset of the address zero ([`Kind::origin`]), so that
//!   a boundary is one word. The kernel keeps the offset of the area's start, and moves both: two words, which a fault
//!   deep in the area reads without a lock on the boundary (Linux's case 4).
//!
//! [`Kind::origin`]: crate::vm::plan::Kind::origin

mod chunk;
mod node;
mod writer;

use crate::vm::plan::{Found, Piece, Range};
use chunk::{Directory, Place};
pub(crate) use node::Node;
use prim::atomic::{AtomicPtr, AtomicU64, Ordering};
use prim::cell::UnsafeCell;
use prim::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::cell::Cell;
use std::iter;
pub(crate) use writer::{Side, Writer};

prim::local! {
    /// Where the thread's last search ended, in whatever space: slot and place in the chunk. The next search looks
    /// there first.
    static FINGER: Cell<(usize, usize)> = Cell::new((0, 0));
}

/// The areas of a space.
#[derive(Debug)]
pub(crate) struct Index {
    directory: AtomicPtr<Directory>,
    /// The number of changes under the mutex.
    sequence: AtomicU64,
    areas: AtomicU64,
    writer: Mutex<Writer>,
}

/// The areas around a range, and where they are.
pub(crate) struct Around<'a> {
    pub(crate) areas: SmallVec<[Found; 4]>,
    nodes: SmallVec<[&'a Node; 4]>,
    /// An address that is held, in the first of the areas. If there is none: the first that was looked at.
    key: u64,
    /// Areas from here on are not among them.
    end: u64,
}

/// Read by those who meet a record, and written before that is freed: a model checker sees when the two race.
#[derive(Debug)]
struct Life(UnsafeCell<()>);

impl Life {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    #[inline]
    fn met(&self) {
        self.0.with(|_| ());
    }

    fn dead(&self) {
        self.0.with_mut(|_| ());
    }
}

impl Around<'_> {
    /// Nothing was found yet.
    #[inline]
    pub(crate) fn none(range: Range) -> Self {
        let Range { start, end } = range.widened();
        Self {
            areas: SmallVec::new(),
            nodes: SmallVec::new(),
            key: start,
            end,
        }
    }
}

impl Index {
    pub(crate) fn new() -> Self {
        let empty = Directory::new(Vec::new());
        Self {
            directory: AtomicPtr::new(Box::into_raw(Box::new(empty))),
            sequence: AtomicU64::new(0),
            areas: AtomicU64::new(0),
            writer: Mutex::new(Writer::default()),
        }
    }

    /// How many areas there are.
    pub(crate) fn areas(&self) -> u64 {
        // Relaxed: exact for the holder of the mutex, a hint for others.
        self.areas.load(Ordering::Relaxed)
    }

    /// The number of changes under the mutex so far. Relaxed: it orders nothing.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Holds off changes of the structure.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    #[inline]
    fn directory(&self) -> &Directory {
        // [directory] Acquire: pairs with the Release in `replace`.
        let order = prim::order!("directory", Ordering::Acquire);
        // SAFETY: the caller searches or holds the mutex, so what it finds is not freed.
        let directory = unsafe { &*self.directory.load(order) };
        directory.life.met();
        directory
    }

    /// The last area that starts at or before the key: first where the thread's last search ended.
    #[inline]
    fn floor(&self, key: u64) -> Option<Place<'_>> {
        let directory = self.directory();
        let (slot, at) = FINGER.with(Cell::get);
        if let Some(place) = directory.place(slot, at)
            && place.node().contains(key)
        {
            return Some(place);
        }
        let place = directory.floor(key, slot)?;
        FINGER.with(|finger| finger.set((place.slot, place.at)));
        Some(place)
    }

    /// The area that contains the address. The caller searches.
    #[inline]
    pub(crate) fn at(&self, address: u64) -> Option<&Node> {
        let node = self.floor(address)?.node();
        node.contains(address).then_some(node)
    }

    /// The last area that starts before the address, which is not zero. The caller searches.
    pub(crate) fn preceding(&self, address: u64) -> Option<&Node> {
        self.directory().floor(address - 1, 0).map(Place::node)
    }

    /// The first area that starts at or after the address, which is not zero. The caller searches.
    pub(crate) fn following(&self, address: u64) -> Option<&Node> {
        let directory = self.directory();
        let before = directory.floor(address - 1, 0);
        let next = before.map_or_else(|| directory.first(), Place::next);
        next.map(Place::node)
    }

    /// The areas that overlap or touch the range. The caller searches, and holds the range and a page on each side.
    pub(crate) fn around(&self, range: Range) -> Around<'_> {
        let mut around = Around::none(range);
        self.look_around(&mut around);
        around
    }

    /// The same, where it is to be: to move it would take a call. It is new.
    pub(crate) fn look_around<'a>(&'a self, around: &mut Around<'a>) {
        let (start, end) = (around.key, around.end);
        let directory = self.directory();
        let mut next = self.floor(start).or_else(|| directory.first());
        while let Some(place) = next {
            let node = place.node();
            let range = node.range();
            if range.start >= end {
                break;
            }
            // What lies before the range may come and go.
            if range.end > start {
                let kind = node.kind();
                around.areas.push(Found { range, kind });
                around.nodes.push(node);
            }
            next = place.next();
        }
        if let Some(first) = around.areas.first() {
            around.key = first.range.start.max(start);
        }
    }

    /// All areas, in order. The caller searches.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        let places = iter::successors(self.directory().first(), |place| place.next());
        places.map(Place::node)
    }

    /// Makes the areas become pieces by moving boundaries and rewriting kinds alone.
    ///
    /// # Safety
    /// The caller holds what the plan of these pieces needs, exclusively.
    #[inline]
    pub(crate) unsafe fn edit_in_place(around: &Around<'_>, pieces: &[Piece]) {
        let kept = pieces
            .iter()
            .filter_map(|piece| Some((piece, piece.record?)));
        for (piece, record) in kept {
            let (node, Found { range, kind }) = (around.nodes[record], around.areas[record]);
            if range.start != piece.range.start {
                node.set_start(piece.range.start);
                // [origin] The mutant rewrites the offset along with the start.
                if !prim::intact!("origin") {
                    // SAFETY: none, as it is the mutant.
                    unsafe { node.set_kind(node.kind()) };
                }
            }
            if range.end != piece.range.end {
                node.set_end(piece.range.end);
            }
            if kind != piece.kind {
                // SAFETY: the caller holds all of the area.
                unsafe { node.set_kind(piece.kind) };
            }
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // SAFETY: nobody else has the index any more, and each record comes from a Box.
        let directory = unsafe { Box::from_raw(self.directory.load(Ordering::Acquire)) };
        for slot in &directory.slots {
            // SAFETY: the same.
            let chunk = unsafe { Box::from_raw(slot.chunk.load(Ordering::Acquire)) };
            for entry in chunk.entries() {
                // SAFETY: the same.
                drop(unsafe { Box::from_raw(entry.node.cast_mut()) });
            }
        }
        self.writer.lock().clear();
    }
}
