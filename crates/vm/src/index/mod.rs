//! The index: all areas in order of their addresses, in a skip list.
//!
//! Searches take no lock. Changes of the structure are made under a mutex, one at a time; changes in place need none,
//! because they change no link and no order.
//!
//! # Why a search finds its area
//!
//! A search has a *key*, an address in a range that the thread holds. So the area A that contains the key, if there is
//! one, stays in the list, and its boundaries stay on their sides of the key. The search steps only onto areas that
//! start at or before the key. Take any such area X that is not A:
//!
//! - X was in the list at some time during the search: whatever was removed before is not linked any more, or the
//!   removal ended before the range was held.
//! - X comes before A in the list, because areas do not overlap. If X is removed, its link keeps what it was: an area
//!   that is A or comes before A, and of which the same can be said.
//!
//! So the links at the lowest level lead from X to A. An area that starts in the held range and has been removed is not
//! met, because its removal ended before the range was held.
//!
//! A search with a key that the thread does not hold finds some area that was there at some time. That is enough to
//! guess which range to lock.
//!
//! # Edges
//!
//! - **link**: Release by the change that links an area, Acquire by the searches: they see the area's start and its own
//!   links, and not what was in its memory before.
//! - **origin**: where an area's content begins is stated as the offset of the address zero ([`Kind::origin`]), so that
//!   a boundary is one word. The kernel keeps the offset of the area's start, and moves both: two words, which a fault
//!   deep in the area reads without a lock on the boundary (Linux's case 4).
//!
//! The order of the levels does not matter: the links of an area are complete before the first link to it, and stay
//! what they are when it is removed.

mod node;

use crate::plan::{Found, Kind, Piece, Range};
use crate::reclaim::Grace;
pub(crate) use node::Node;
use prim::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use prim::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::ptr;

/// One area in four is in the next level: with so many levels a search meets a few areas in each, up to a million
/// areas.
pub(crate) const LEVELS: usize = prim::sized(10, 2);

/// Random digits for each level.
const DIGITS: u32 = 2;

/// So many removed areas are collected together, because the barrier of a collection interrupts all processors.
fn batch() -> usize {
    prim::stock(64, 1)
}

type Links = [AtomicPtr<Node>; LEVELS];

/// The areas of a space.
#[derive(Debug)]
pub(crate) struct Index {
    head: Links,
    /// The number of structural changes.
    sequence: AtomicU64,
    areas: AtomicU64,
    /// The levels that have ever been used. A search that does not know of the highest is slower, and that is all.
    height: AtomicUsize,
    writer: Mutex<Writer>,
}

/// What only the holder of the mutex may touch.
#[derive(Debug)]
pub(crate) struct Writer {
    random: u64,
    removed: Vec<Removed>,
    sealed: Vec<Removed>,
    grace: Grace,
}

/// An area that is not linked any more.
#[derive(Debug)]
struct Removed(ptr::NonNull<Node>);

// SAFETY: nobody links the area again; it is freed by one thread, which then has it alone.
unsafe impl Send for Removed {}

/// The areas around a range, and where they are.
pub(crate) struct Around<'a> {
    pub(crate) areas: SmallVec<[Found; 4]>,
    nodes: SmallVec<[&'a Node; 4]>,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            head: prim::array![AtomicPtr::new(ptr::null_mut()); LEVELS],
            sequence: AtomicU64::new(0),
            areas: AtomicU64::new(0),
            height: AtomicUsize::new(1),
            writer: Mutex::new(Writer {
                random: 0x9e37_79b9_7f4a_7c15,
                removed: Vec::new(),
                sealed: Vec::new(),
                grace: Grace::default(),
            }),
        }
    }

    /// How many areas there are.
    pub(crate) fn areas(&self) -> u64 {
        // Relaxed: exact for the holder of the mutex, a hint for others.
        self.areas.load(Ordering::Relaxed)
    }

    /// The number of structural changes so far.
    ///
    /// While it is the same, what a look found is still in the list. It is enough to load it with Relaxed: a change of
    /// what the look found needs a range that conflicts with the look's, so the range lock orders the two.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Holds off structural changes.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    #[inline]
    fn link<'a>(&'a self, of: Option<&'a Node>, level: usize) -> &'a AtomicPtr<Node> {
        match of {
            None => &self.head[level],
            Some(node) => node.link(level),
        }
    }

    #[inline]
    fn next<'a>(&'a self, of: Option<&'a Node>, level: usize) -> Option<&'a Node> {
        // [link] Acquire: pairs with the Release in `insert`.
        let next = self
            .link(of, level)
            .load(prim::order!("link", Ordering::Acquire));
        // SAFETY: the caller searches, so what was linked when the search began, or later, is not freed.
        let next: Option<&'a Node> = unsafe { next.as_ref() };
        next.map(Node::met)
    }

    /// The last area that starts at or before the key.
    #[inline]
    fn floor(&self, key: u64) -> Option<&Node> {
        let mut at = None;
        let mut beyond = ptr::null();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(next) = self.next(at, level) {
                if ptr::eq(next, beyond) {
                    break;
                }
                if next.start() > key {
                    beyond = next;
                    break;
                }
                at = Some(next);
            }
        }
        at
    }

    /// The area that contains the address. The caller searches.
    #[inline]
    pub(crate) fn at(&self, address: u64) -> Option<&Node> {
        self.floor(address).filter(|node| address < node.end())
    }

    /// The first area that starts at or after the address, which is not the first of all. The caller searches.
    pub(crate) fn following(&self, address: u64) -> Option<&Node> {
        self.next(self.floor(address - 1), 0)
    }

    /// The area where a look at those that overlap or touch the range begins; `None`: the first of all. The caller
    /// searches, and holds the range and a page on each side.
    #[inline]
    pub(crate) fn before(&self, range: Range) -> Option<&Node> {
        self.floor(range.widened().start)
    }

    /// The areas that overlap or touch the range. The caller searches, and holds the range and a page on each side.
    pub(crate) fn around(&self, range: Range) -> Around<'_> {
        self.around_from(self.before(range), range)
    }

    /// The same, from an area on that is not after the first of them.
    pub(crate) fn around_from<'a>(&'a self, first: Option<&'a Node>, range: Range) -> Around<'a> {
        let within = range.widened();
        let mut around = Around {
            areas: SmallVec::new(),
            nodes: SmallVec::new(),
        };
        let mut next = first.or_else(|| self.next(None, 0));
        // What lies before the range may come and go.
        while let Some(node) = next.filter(|node| node.end() <= within.start) {
            next = self.next(Some(node), 0);
        }
        while let Some(node) = next.filter(|node| node.start() < within.end) {
            around.areas.push(Found {
                range: node.range(),
                kind: node.kind(),
            });
            around.nodes.push(node);
            next = self.next(Some(node), 0);
        }
        around
    }

    /// All areas, in order. The caller searches.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        let mut at = None;
        std::iter::from_fn(move || {
            at = Some(self.next(at, 0)?);
            at
        })
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

    /// Makes the areas become pieces.
    ///
    /// # Safety
    /// The caller holds what the plan of these pieces needs, exclusively.
    pub(crate) unsafe fn edit(&self, writer: &mut Writer, around: &Around<'_>, pieces: &[Piece]) {
        let mut kept = pieces.iter().filter_map(|piece| piece.record).peekable();
        for (at, node) in around.nodes.iter().enumerate() {
            if kept.next_if_eq(&at).is_none() {
                self.unlink(writer, node);
            }
        }
        // SAFETY: as the caller says.
        unsafe { Self::edit_in_place(around, pieces) };
        for piece in pieces.iter().filter(|piece| piece.record.is_none()) {
            self.insert(writer, piece.range, piece.kind);
        }
        self.sequence.fetch_add(1, Ordering::Relaxed);
    }

    /// The last nodes before the key, at each level.
    fn towers_before(&self, key: u64) -> [Option<&Node>; LEVELS] {
        let mut before = [None; LEVELS];
        let mut at = None;
        for level in (0..LEVELS).rev() {
            while let Some(next) = self.next(at, level).filter(|next| next.start() < key) {
                at = Some(next);
            }
            before[level] = at;
        }
        before
    }

    fn insert(&self, writer: &mut Writer, range: Range, kind: Kind) {
        let height = 1 + (prim::wins(writer.draw(), DIGITS) as usize).min(LEVELS - 1);
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
        let before = self.towers_before(range.start);
        let node = Box::new(Node::new(range, kind, height));
        for (level, &before) in before.iter().enumerate().take(height) {
            // Relaxed: the mutex orders changes of links, and the Release below publishes this one.
            let next = self.link(before, level).load(Ordering::Relaxed);
            node.link(level).store(next, Ordering::Relaxed);
        }
        let node = Box::into_raw(node);
        for (level, &before) in before.iter().enumerate().take(height) {
            // [link] Release: pairs with the Acquire in `next`.
            self.link(before, level)
                .store(node, prim::order!("link", Ordering::Release));
        }
        self.areas.fetch_add(1, Ordering::Relaxed);
    }

    fn unlink(&self, writer: &mut Writer, node: &Node) {
        let before = self.towers_before(node.start());
        for level in (0..node.height()).rev() {
            let next = node.link(level).load(Ordering::Relaxed);
            // Release, as where an area is linked: whoever comes to `next` this way sees what it is.
            self.link(before[level], level)
                .store(next, Ordering::Release);
        }
        self.areas.fetch_sub(1, Ordering::Relaxed);
        writer.removed.push(Removed(ptr::NonNull::from(node)));
        writer.collect();
    }
}

impl Writer {
    fn draw(&mut self) -> u64 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Frees what may be freed, and seals what was removed since.
    fn collect(&mut self) {
        if self.removed.len() < batch() {
            return;
        }
        if !self.sealed.is_empty() && self.grace.is_over() {
            // Taken, and not drained: once in a while the batch is everything.
            std::mem::take(&mut self.sealed)
                .into_iter()
                .for_each(Removed::free);
        }
        if self.sealed.is_empty() {
            self.sealed = std::mem::take(&mut self.removed);
            self.grace.begin();
        }
    }
}

impl Removed {
    fn free(self) {
        // SAFETY: the node comes from a Box. It is not linked, and no search that could have met it goes on.
        let node = unsafe { Box::from_raw(self.0.as_ptr()) };
        node.dead();
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let mut next = self.head[0].load(Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: nobody else has the index any more, and each linked node comes from a Box.
            let node = unsafe { Box::from_raw(next) };
            next = node.link(0).load(Ordering::Acquire);
        }
        let mut writer = self.writer.lock();
        let Writer {
            removed, sealed, ..
        } = &mut *writer;
        removed
            .drain(..)
            .chain(sealed.drain(..))
            .for_each(Removed::free);
    }
}
