//! The directory and its chunks: where in the order of the areas a search finds one.

use super::{Life, Node};
use prim::atomic::{AtomicPtr, AtomicU64, Ordering};
use prim::track::Track;
use smallvec::SmallVec;
use std::hint::select_unpredictable;
use std::ptr;

/// The most areas of a chunk: a change of the structure copies one, and a search of one reads a line or two of keys.
pub(super) const CHUNK: usize = prim::sized(32, 2);

/// So many hints are all read and compared: that takes less time than a branch that is predicted wrongly.
const FEW: usize = 8;

/// Some areas that follow each other; at least one. Which they are does not change: a change of the structure puts
/// another chunk in its place.
#[derive(Debug)]
pub(super) struct Chunk {
    len: usize,
    entries: [Entry; CHUNK],
    pub(super) life: Life,
    _track: Track,
}

// SAFETY: the pointers are to areas, which several threads may use, and do not change.
unsafe impl Sync for Chunk {}

// SAFETY: the same.
unsafe impl Send for Chunk {}

/// An area in a chunk.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where it began when somebody looked last: a hint.
    key: AtomicU64,
    pub(super) node: *const Node,
}

impl Entry {
    pub(super) fn new(key: u64, node: *const Node) -> Self {
        let key = AtomicU64::new(key);
        Self { key, node }
    }

    #[inline]
    pub(super) fn key(&self) -> u64 {
        // Relaxed: hints order nothing, and are checked.
        self.key.load(Ordering::Relaxed)
    }
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self::new(self.key(), self.node)
    }
}

impl Chunk {
    /// A chunk of these areas, at most [`CHUNK`].
    pub(super) fn new(entries: &[Entry]) -> Self {
        debug_assert!((1..=CHUNK).contains(&entries.len()));
        let none = || Entry::new(u64::MAX, ptr::null());
        Self {
            len: entries.len(),
            entries: std::array::from_fn(|at| entries.get(at).cloned().unwrap_or_else(none)),
            life: Life::new(),
            _track: Track::new(),
        }
    }

    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[..self.len]
    }

    #[inline]
    fn node(&self, at: usize) -> &Node {
        // SAFETY: whoever has the chunk searches or holds the mutex, so its areas are not freed.
        let node = unsafe { &*self.entries[at].node };
        node.life.met();
        node
    }
}

/// The chunks in order. Which ranges of addresses they stand for does not change: a change of that puts another
/// directory in its place.
#[derive(Debug)]
pub(super) struct Directory {
    /// A single one is here, so that a search in a space of few areas follows a pointer less.
    pub(super) slots: SmallVec<[Slot; 1]>,
    pub(super) life: Life,
    _track: Track,
}

/// A chunk in a directory.
#[derive(Debug)]
pub(super) struct Slot {
    /// Where the first area began when somebody looked last: a hint.
    key: AtomicU64,
    pub(super) chunk: AtomicPtr<Chunk>,
    /// No free range that ends where one of the areas begins is longer, for the holder of the mutex.
    pub(super) room: AtomicU64,
}

impl Slot {
    pub(super) fn new(key: u64, chunk: *mut Chunk, room: u64) -> Self {
        Self {
            key: AtomicU64::new(key),
            chunk: AtomicPtr::new(chunk),
            room: AtomicU64::new(room),
        }
    }
}

/// The same slot in another directory. Relaxed: for the holder of the mutex, who alone changes more than hints.
impl Clone for Slot {
    fn clone(&self) -> Self {
        Self::new(
            self.key.load(Ordering::Relaxed),
            self.chunk.load(Ordering::Relaxed),
            self.room.load(Ordering::Relaxed),
        )
    }
}

impl Directory {
    pub(super) fn new(slots: Vec<Slot>) -> Self {
        Self {
            slots: slots.into_iter().collect(),
            life: Life::new(),
            _track: Track::new(),
        }
    }

    #[inline]
    pub(super) fn chunk(&self, slot: usize) -> &Chunk {
        // [chunk] Acquire: pairs with the Release in `replace`.
        let chunk = self.slots[slot]
            .chunk
            .load(prim::order!("chunk", Ordering::Acquire));
        // SAFETY: the caller searches or holds the mutex, so what it finds is not freed; a slot has a chunk.
        let chunk = unsafe { &*chunk };
        chunk.life.met();
        chunk
    }

    /// The place of the first area of a slot.
    #[inline]
    pub(super) fn first_of(&self, slot: usize) -> Place<'_> {
        let chunk = self.chunk(slot);
        Place {
            directory: self,
            slot,
            chunk,
            at: 0,
        }
    }

    /// The place of the last.
    pub(super) fn last_of(&self, slot: usize) -> Place<'_> {
        let first = self.first_of(slot);
        let at = first.chunk.len - 1;
        Place { at, ..first }
    }

    /// The place of an area, if there are so many.
    #[inline]
    pub(super) fn place(&self, slot: usize, at: usize) -> Option<Place<'_>> {
        if slot >= self.slots.len() {
            return None;
        }
        let place = Place {
            at,
            ..self.first_of(slot)
        };
        (at < place.chunk.len).then_some(place)
    }

    /// The place of the first area of all.
    pub(super) fn first(&self) -> Option<Place<'_>> {
        (!self.slots.is_empty()).then(|| self.first_of(0))
    }

    /// The places of a slot.
    pub(super) fn places(&self, slot: usize) -> impl DoubleEndedIterator<Item = Place<'_>> {
        let first = self.first_of(slot);
        (0..first.chunk.len).map(move |at| Place { at, ..first })
    }

    /// The last area that starts at or before the key. In a long directory it looks first in a slot where that may be.
    #[inline]
    pub(super) fn floor(&self, key: u64, near: usize) -> Option<Place<'_>> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = if self.slots.len() > CHUNK && self.begins_in(near, key) {
            near
        } else {
            last_at_or_before(&self.slots, |slot| &slot.key, key)
        };
        let chunk = self.chunk(slot);
        let at = last_at_or_before(chunk.entries(), |entry| &entry.key, key);
        let place = Place {
            directory: self,
            slot,
            chunk,
            at,
        };
        if place.node().contains(key) {
            return Some(place);
        }
        let (slot, chunk, at) = self.settle(slot, chunk, at, key)?;
        Some(Place {
            directory: self,
            slot,
            chunk,
            at,
        })
    }

    /// Whether hints say that the last area that starts at or before the key is in this slot.
    #[inline]
    fn begins_in(&self, slot: usize, key: u64) -> bool {
        // Relaxed: hints order nothing, and are checked.
        let is_beyond = |of: &Slot| of.key.load(Ordering::Relaxed) > key;
        let both = self.slots.get(slot).zip(self.slots.get(slot + 1));
        both.is_some_and(|(of, next)| !is_beyond(of) & is_beyond(next))
    }

    /// The place of the last area that starts at or before the key, beginning nearby: hints may be old.
    // The parts of a `Place`, which would have to be in memory for this. The chunk is among them: there may be another
    // in the slot by now.
    #[cold] // Hints are seldom old.
    fn settle<'a>(
        &'a self,
        slot: usize,
        chunk: &'a Chunk,
        at: usize,
        key: u64,
    ) -> Option<(usize, &'a Chunk, usize)> {
        let mut place = Place {
            directory: self,
            slot,
            chunk,
            at,
        };
        while place.node().start() > key {
            place.renew_hint();
            place = place.previous()?;
        }
        while key >= place.node().end()
            && let Some(next) = place.next().filter(|next| next.node().start() <= key)
        {
            place = next;
            place.renew_hint();
        }
        Some((place.slot, place.chunk, place.at))
    }
}

/// The place of the last of some hints in order that is at or before the key; the first, if none is.
///
/// It halves a long directory without branches on hints, which a processor could not predict. It reads as many as a
/// chunk has one after the other, and stops at the first beyond the key: one branch for the processor to predict, and
/// none that what follows has to wait for if the thread does the same again. If they are [few](FEW), it reads them all.
#[inline]
fn last_at_or_before<T>(all: &[T], hint: impl Fn(&T) -> &AtomicU64, key: u64) -> usize {
    // Relaxed: hints order nothing, and are checked.
    let is_beyond = |of: &T| hint(of).load(Ordering::Relaxed) > key;
    let mut rest = all;
    let mut first = 0;
    while rest.len() > CHUNK {
        let (low, high) = rest.split_at(rest.len() / 2);
        let is_low = is_beyond(&high[0]);
        first = select_unpredictable(is_low, first, first + low.len());
        // As long as the longer one: what is before and after does no harm.
        rest = &all[first..first + high.len()];
    }
    let end = if rest.len() <= FEW {
        rest.iter().filter(|of| !is_beyond(of)).count()
    } else {
        rest.iter().position(is_beyond).unwrap_or(rest.len())
    };
    first + end.saturating_sub(1)
}

/// Where an area is: in a chunk of a directory.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) directory: &'a Directory,
    pub(super) slot: usize,
    pub(super) chunk: &'a Chunk,
    pub(super) at: usize,
}

impl<'a> Place<'a> {
    #[inline]
    pub(super) fn node(self) -> &'a Node {
        self.chunk.node(self.at)
    }

    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        if self.at + 1 < self.chunk.len {
            return Some(Self {
                at: self.at + 1,
                ..self
            });
        }
        let slot = self.slot + 1;
        (slot < self.directory.slots.len()).then(|| self.directory.first_of(slot))
    }

    pub(super) fn previous(self) -> Option<Self> {
        if self.at > 0 {
            return Some(Self {
                at: self.at - 1,
                ..self
            });
        }
        Some(self.directory.last_of(self.slot.checked_sub(1)?))
    }

    /// Where the free range before the area begins.
    pub(super) fn room_start(self) -> u64 {
        self.previous().map_or(0, |before| before.node().end())
    }

    /// The length of that range.
    pub(super) fn room(self) -> u64 {
        self.node().start().saturating_sub(self.room_start())
    }

    /// Relaxed: hints order nothing, and are checked.
    fn renew_hint(self) {
        let start = self.node().start();
        self.chunk.entries[self.at]
            .key
            .store(start, Ordering::Relaxed);
        if self.at == 0 {
            self.directory.slots[self.slot]
                .key
                .store(start, Ordering::Relaxed);
        }
    }
}
