//! Changes of the structure, under the mutex.

use super::chunk::{CHUNK, Chunk, Directory, Entry, Place, Slot};
use super::{Around, Index, Node};
use crate::vm::plan::{Piece, Plan};
use crate::vm::reclaim::Grace;
use prim::atomic::Ordering;
use smallvec::SmallVec;
use std::ops::Range;
use std::ptr;

/// So many records are collected together, because the barrier of a collection interrupts all processors.
fn batch() -> usize {
    prim::stock(64, 1)
}

/// A chunk with fewer areas is joined with the next.
const FEW: usize = CHUNK / 4;

/// Where a search for a free range begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// At the highest address.
    Top,
    /// At the lowest.
    Bottom,
}

/// What only the holder of the mutex may touch.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    retired: Vec<Retired>,
    sealed: Vec<Retired>,
    grace: Grace,
}

/// What searches do not come to any more, except those under way.
#[derive(Debug)]
enum Retired {
    Node(*mut Node),
    Chunk(*mut Chunk),
    Directory(*mut Directory),
}

// SAFETY: nobody links it again; it is freed by one thread, which then has it alone.
unsafe impl Send for Retired {}

impl Retired {
    fn free(self) {
        // SAFETY, of all three: it comes from a Box. Nothing leads to it, and no search that could have met it goes on.
        match self {
            // SAFETY: see above.
            Self::Node(node) => unsafe { Box::from_raw(node) }.life.dead(),
            // SAFETY: see above.
            Self::Chunk(chunk) => unsafe { Box::from_raw(chunk) }.life.dead(),
            // SAFETY: see above.
            Self::Directory(directory) => unsafe { Box::from_raw(directory) }.life.dead(),
        }
    }
}

impl Writer {
    fn retire(&mut self, what: Retired) {
        self.retired.push(what);
        if self.retired.len() < batch() {
            return;
        }
        if !self.sealed.is_empty() && self.grace.is_over() {
            // Taken, and not drained: once in a while the batch is everything.
            std::mem::take(&mut self.sealed)
                .into_iter()
                .for_each(Retired::free);
        }
    }

    /// Seals what was retired. What it was replaced by is there for searches to find.
    fn seal(&mut self) {
        if self.sealed.is_empty() && self.retired.len() >= batch() {
            self.sealed = std::mem::take(&mut self.retired);
            self.grace.begin();
        }
    }

    /// Frees everything, when nobody searches any more.
    pub(super) fn clear(&mut self) {
        let all = self.retired.drain(..).chain(self.sealed.drain(..));
        all.for_each(Retired::free);
    }
}

impl Index {
    /// Makes the areas become pieces.
    ///
    /// # Safety
    /// The caller searches, and holds what the plan of these pieces needs, exclusively.
    pub(crate) unsafe fn edit(&self, writer: &mut Writer, around: &Around<'_>, plan: &Plan) {
        // Where the areas around are, or the area that new ones come behind: the mutex holds off changes of the order.
        let place = self.directory().floor(around.key, 0);
        // SAFETY: as the caller says.
        unsafe { Self::edit_in_place(around, &plan.pieces) };
        if plan.is_structural {
            self.splice(writer, place, around, &plan.pieces);
        }
        self.raise_rooms(around);
        self.sequence.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts the records of the pieces in the place of those around.
    fn splice(
        &self,
        writer: &mut Writer,
        place: Option<Place<'_>>,
        around: &Around<'_>,
        pieces: &[Piece],
    ) {
        let directory = self.directory();
        let lost = around.areas.len();
        // The slots that change, and the areas that they get.
        let (mut slots, at) = match place {
            Some(place) => (place.slot..place.slot, place.at + usize::from(lost == 0)),
            None => (0..0, 0),
        };
        let mut entries = Vec::new();
        while slots.end < directory.slots.len()
            && (slots.is_empty()
                || entries.len() < at + lost
                || entries.len() + pieces.len() < lost + FEW)
        {
            entries.extend_from_slice(directory.chunk(slots.end).entries());
            slots.end += 1;
        }
        let records = pieces.iter().map(|piece| {
            let node: *const Node = match piece.record {
                Some(record) => around.nodes[record],
                None => Box::into_raw(Box::new(Node::new(piece.range, piece.kind))),
            };
            Entry::new(piece.range.start, node)
        });
        entries.splice(at..at + lost, records);
        self.replace(writer, slots, &entries);
        let mut kept = pieces.iter().filter_map(|piece| piece.record).peekable();
        for (at, &node) in around.nodes.iter().enumerate() {
            if kept.next_if_eq(&at).is_none() {
                writer.retire(Retired::Node(ptr::from_ref(node).cast_mut()));
            }
        }
        writer.seal();
        let areas = self.areas() + pieces.len() as u64 - lost as u64;
        self.areas.store(areas, Ordering::Relaxed);
    }

    /// Puts chunks of these areas in the place of some slots.
    fn replace(&self, writer: &mut Writer, slots: Range<usize>, entries: &[Entry]) {
        let directory = self.directory();
        let old = &directory.slots[slots.clone()];
        let rooms = old.iter().map(|slot| slot.room.load(Ordering::Relaxed));
        let room = rooms.max().unwrap_or(0);
        let chunks = entries.len().div_ceil(CHUNK);
        let share = entries.len().div_ceil(chunks.max(1)).max(1);
        let fresh = |entries| Box::into_raw(Box::new(Chunk::new(entries)));
        let retired = old.iter().map(|slot| slot.chunk.load(Ordering::Relaxed));
        let retired: SmallVec<[_; 4]> = retired.collect();
        match (old, chunks) {
            ([old], 1) => {
                // [chunk] Release: pairs with the Acquire of searches.
                let order = prim::order!("chunk", Ordering::Release);
                old.chunk.store(fresh(entries), order);
            }
            _ => {
                let before = directory.slots[..slots.start].iter().cloned();
                let after = directory.slots[slots.end..].iter().cloned();
                let shares = entries.chunks(share);
                let fresh = shares.map(|share| Slot::new(share[0].key(), fresh(share), room));
                let new = Directory::new(before.chain(fresh).chain(after).collect());
                // [directory] Release: pairs with the Acquire of searches.
                let order = prim::order!("directory", Ordering::Release);
                let old = self.directory.load(Ordering::Relaxed);
                self.directory.store(Box::into_raw(Box::new(new)), order);
                writer.retire(Retired::Directory(old));
            }
        }
        for chunk in retired {
            writer.retire(Retired::Chunk(chunk));
        }
    }

    /// Notes the free ranges beside areas that have changed.
    fn raise_rooms(&self, around: &Around<'_>) {
        let directory = self.directory();
        let first = directory.floor(around.key, 0);
        let mut next = first.or_else(|| directory.first());
        while let Some(place) = next {
            let room = &directory.slots[place.slot].room;
            let longest = room.load(Ordering::Relaxed).max(place.room());
            room.store(longest, Ordering::Relaxed);
            next = place.next().filter(|_| place.node().start() < around.end);
        }
    }

    /// The highest or lowest free range of at least this length that `fits` accepts.
    ///
    /// It looks at one number for each chunk, and at the areas of chunks that may have such a range. Certain for the
    /// holder of the mutex, who notes what was looked at in vain.
    pub(crate) fn find_room(
        &self,
        writer: Option<&Writer>,
        from: Side,
        length: u64,
        fits: impl Fn(u64, Option<&Node>) -> Option<u64>,
    ) -> Option<u64> {
        let directory = self.directory();
        let after_all = || {
            let last = directory.slots.len().checked_sub(1)?;
            Some(directory.last_of(last).node().end())
        };
        let above = || fits(after_all().unwrap_or(0), None);
        let within = |slot: usize| {
            let room = &directory.slots[slot].room;
            if room.load(Ordering::Relaxed) < length {
                return None;
            }
            let places = directory.places(slot);
            let try_one = |place: Place<'_>| fits(place.room_start(), Some(place.node()));
            let found = match from {
                Side::Top => places.rev().find_map(try_one),
                Side::Bottom => places.into_iter().find_map(try_one),
            };
            if found.is_none() && writer.is_some() {
                let longest = directory.places(slot).map(Place::room).max();
                room.store(longest.unwrap_or(0), Ordering::Relaxed);
            }
            found
        };
        let mut slots = 0..directory.slots.len();
        match from {
            Side::Top => above().or_else(|| slots.rev().find_map(within)),
            Side::Bottom => slots.find_map(within).or_else(above),
        }
    }
}
