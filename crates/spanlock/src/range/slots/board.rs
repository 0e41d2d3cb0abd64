//! The board of a lock: all its slots, and what goes with them. The edges cited are the parent module's.

use super::advice::{LINES_A_PROCESSOR, LockAdvice};
use super::buckets::{BucketPlaces, Buckets};
use super::lazy::Lazy;
use super::slot::Slot;
use crate::range::list::{AtomicLink, Link, List, Policy, SharedExclusive, SkipIndex};
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use prim::thread;
use prim::track::Track;
use std::ptr::{self, NonNull};

/// The slots of the first chunk. Each further chunk has twice as many as the one before it.
const FIRST_CHUNK: usize = prim::sized(4, 2);

/// Enough for some slots more than [`MANY`](crate::range::list::MANY) of each thread that a program can have.
const CHUNKS: usize = 23;

/// A skip list, whose requests wait in the lock's queue.
pub(super) type Annex = List<SharedExclusive, SkipIndex>;

prim::global! {
    static BOARDS: AtomicU64 = AtomicU64::new(0);
}

/// The slots of one lock, in chunks that never move.
// The residue comes first, so that a pointer to the board leads to it. The alignment makes room for a link's mark.
#[repr(C, align(16))]
pub(super) struct Board {
    /// The list of the lock, with what was held in it when the lock moved to slots. Nothing enters it any more.
    residue: AtomicLink,
    /// Made when a thread holds many ranges.
    annex: Lazy<Annex>,
    /// The board's number, from one. No other board of the process has it.
    id: u64,
    /// How many slots there are.
    len: AtomicU32,
    /// How many of them are nobody's. While a slot becomes somebody's, it may count wrongly, even below zero.
    pub(super) vacant: AtomicU32,
    /// How many of them are there to be lent. They are never a thread's again.
    pub(super) lendable: AtomicU32,
    chunks: [Lazy<Slot>; CHUNKS],
    /// Which slots are [counted](Counted).
    counted: AtomicU64,
    /// Made when narrow requests are far apart.
    buckets: Lazy<Buckets>,
    pub(super) advice: LockAdvice,
    _track: Track,
}

/// Which slots are counted: those with announcements that are not listed in buckets, and some that are idle.
///
/// The upper half is how many they are, and the lower half the sum of their numbers: if one slot is counted, its
/// number.
#[derive(Clone, Copy)]
pub(super) struct Counted(u64);

impl Counted {
    /// The count when this slot alone is counted.
    fn of(slot: &Slot) -> Self {
        Self(1 << u32::BITS | u64::from(slot.number()))
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The number of the slot, if one alone is counted.
    pub(super) fn only(self) -> Option<u32> {
        // [counted-only] The numbers of several add up to that of another slot.
        let is_one = self.0 >> u32::BITS == 1 || !prim::intact!("counted-only");
        is_one.then_some(self.0 as u32)
    }
}

impl Board {
    /// How many slots the first chunk has.
    pub(super) const FEW: usize = FIRST_CHUNK;

    /// A board without slots.
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            residue: AtomicLink::new(),
            annex: Lazy::new(),
            // Relaxed: each number is handed out once, and nothing else matters.
            id: BOARDS.fetch_add(1, Ordering::Relaxed) + 1,
            len: AtomicU32::new(0),
            vacant: AtomicU32::new(0),
            lendable: AtomicU32::new(0),
            chunks: prim::array![Lazy::new(); CHUNKS],
            counted: AtomicU64::new(0),
            buckets: Lazy::new(),
            advice: LockAdvice::default(),
            _track: Track::new(),
        })
    }

    #[inline]
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The list with what was held before the lock moved here.
    #[inline]
    pub(super) fn residue(&self) -> &AtomicLink {
        &self.residue
    }

    /// Whether nothing is left in that list. It stays empty.
    #[inline]
    pub(super) fn residue_is_empty(&self) -> bool {
        // Acquire: what was held in it comes before.
        self.residue.load(Ordering::Acquire) == Link::NULL
    }

    /// How many slots there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // Relaxed: the fence of the handshake orders it [registry].
        self.len.load(Ordering::Relaxed) as usize
    }

    /// One slot more.
    pub(super) fn add_slot(&self) -> &Slot {
        // [registry] Counted before it is announced in: so a scan after a later fence meets it. Relaxed: the fence of
        // the handshake orders it.
        let number = self.len.fetch_add(1, Ordering::Relaxed);
        let (at, within) = place(number as usize);
        let chunk = &self.chunks[at];
        let first = chunk.get().unwrap_or_else(|| {
            let first = number - within as u32;
            let slots = (0..chunk_len(at)).map(|slot| Slot::new(first + slot as u32));
            let slots: Box<[Slot]> = slots.collect();
            let fresh = NonNull::from(Box::leak(slots)).cast::<Slot>();
            match chunk.publish(fresh) {
                Ok(()) => fresh,
                Err(theirs) => {
                    // SAFETY: `fresh` comes from the box above and was not published.
                    drop(unsafe { chunk_at(fresh, at) });
                    theirs
                }
            }
        });
        // SAFETY: a chunk that was published has so many slots.
        let slot = unsafe { first.add(within) };
        // SAFETY: it lives as long as the board.
        unsafe { slot.as_ref() }
    }

    /// The slot with that number, if there is one.
    pub(super) fn slot(&self, number: u32) -> Option<&Slot> {
        let (at, within) = place(number as usize);
        // `None`: a word was seen, but not what came before it. Then the other request's fence is second
        // [slot-handshake].
        let first = self.chunks[at].get()?;
        // SAFETY: a chunk that was published has so many slots.
        let slot = unsafe { first.add(within) };
        // SAFETY: it lives as long as the board.
        Some(unsafe { slot.as_ref() })
    }

    /// What `f` returns for the first slot for which it returns anything.
    #[inline]
    pub(super) fn find<'a, R>(&'a self, mut f: impl FnMut(&'a Slot) -> Option<R>) -> Option<R> {
        self.find_from(0, self.len(), &mut f)
    }

    /// What `f` returns for the first slot, from chunk `at` on and among the first `len` slots of the board, for which
    /// it returns anything.
    #[inline]
    pub(super) fn find_from<'a, R>(
        &'a self,
        at: usize,
        len: usize,
        f: &mut impl FnMut(&'a Slot) -> Option<R>,
    ) -> Option<R> {
        let mut left = len.saturating_sub(first_of(at));
        for at in at..CHUNKS {
            if left == 0 {
                break;
            }
            let count = left.min(chunk_len(at));
            left -= count;
            let found = self.find_in(at, count, f);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// What `f` returns for the first of the first `count` slots of chunk `at` for which it returns anything.
    #[inline]
    pub(super) fn find_in<'a, R>(
        &'a self,
        at: usize,
        count: usize,
        f: &mut impl FnMut(&'a Slot) -> Option<R>,
    ) -> Option<R> {
        // `None`: nothing is announced there, for a slot is counted before its chunk is made.
        let first = self.chunks[at].get()?;
        for slot in 0..count {
            // SAFETY: a chunk that was published has so many slots.
            let slot = unsafe { first.add(slot) };
            // SAFETY: it lives as long as the board.
            let found = f(unsafe { slot.as_ref() });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The buckets, if there are any.
    #[inline]
    pub(super) fn buckets(&self) -> Option<&Buckets> {
        // SAFETY: buckets that were published live as long as the board.
        self.buckets
            .get()
            .map(|buckets| unsafe { buckets.as_ref() })
    }

    /// Makes buckets for ranges of up to `2^digits` positions, if there are none.
    #[cold] // Once for a board.
    pub(super) fn make_buckets(&self, digits: u32) {
        let lines = LINES_A_PROCESSOR * thread::processors();
        let fresh = NonNull::from(Box::leak(Buckets::new(digits, lines)));
        if self.buckets.publish(fresh).is_err() {
            // SAFETY: it comes from the box above and was not published.
            drop(unsafe { Box::from_raw(fresh.as_ptr()) });
        }
    }

    /// Strikes an announcement that is about to end off the buckets.
    #[inline]
    pub(super) fn strike(&self, places: BucketPlaces) {
        if places != BucketPlaces::NONE
            && let Some(buckets) = self.buckets()
        {
            buckets.strike(places);
        }
    }

    /// The annex, if there is one.
    #[inline]
    pub(super) fn annex(&self) -> Option<&Annex> {
        // SAFETY: an annex that was published lives as long as the board.
        self.annex.get().map(|annex| unsafe { annex.as_ref() })
    }

    /// The annex. Makes it, if need be.
    pub(super) fn annex_or_new(&self) -> &Annex {
        self.annex().unwrap_or_else(|| self.make_annex())
    }

    #[cold] // Once for a board.
    fn make_annex(&self) -> &Annex {
        let fresh = List::new(Policy::INDEXED, SkipIndex::of_many());
        let fresh = NonNull::from(Box::leak(Box::new(fresh)));
        let annex = match self.annex.publish(fresh) {
            Ok(()) => fresh,
            Err(theirs) => {
                // SAFETY: it comes from the box above and was not published.
                drop(unsafe { Box::from_raw(fresh.as_ptr()) });
                theirs
            }
        };
        // SAFETY: an annex that was published lives as long as the board.
        unsafe { annex.as_ref() }
    }

    /// Which slots are counted.
    #[inline]
    pub(super) fn counted(&self) -> Counted {
        // [uncount-acquire] Acquire: pairs with [uncount], for what was held in slots that are no longer counted.
        let acquire = prim::order!("uncount-acquire", Ordering::Acquire);
        Counted(self.counted.load(acquire))
    }

    /// Adds a slot to the count, before the fence of the request that it is for.
    #[inline]
    pub(super) fn add_to_count(&self, slot: &Slot) {
        // [counted] Relaxed: the fence orders it.
        if prim::intact!("counted") {
            self.counted
                .fetch_add(Counted::of(slot).0, Ordering::Relaxed);
        }
    }

    /// Takes a slot off the count.
    pub(super) fn take_off_count(&self, slot: &Slot) {
        // [uncount] Release: pairs with [uncount-acquire]. What was held in the slot was released before.
        let release = prim::order!("uncount", Ordering::Release);
        self.counted.fetch_sub(Counted::of(slot).0, release);
    }

    /// Takes the slots off the count that are idle.
    #[cold]
    pub(super) fn tidy(&self) {
        self.find(|slot| {
            if slot.clear_counted_if_idle() {
                self.take_off_count(slot);
            }
            None::<()>
        });
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(buckets) = self.buckets.last() {
            // SAFETY: it comes from a box, and nobody uses a board that is dropped.
            drop(unsafe { Box::from_raw(buckets.as_ptr()) });
        }
        if let Some(annex) = self.annex.last() {
            // SAFETY: as for the buckets.
            drop(unsafe { Box::from_raw(annex.as_ptr()) });
        }
        for (at, chunk) in self.chunks.iter_mut().enumerate() {
            if let Some(first) = chunk.last() {
                // SAFETY: the chunk comes from a box of so many slots, and nobody uses it any more.
                drop(unsafe { chunk_at(first, at) });
            }
        }
    }
}

/// How many slots a chunk has.
const fn chunk_len(at: usize) -> usize {
    FIRST_CHUNK << at
}

/// The chunk of a slot, and where in the chunk the slot is.
fn place(number: usize) -> (usize, usize) {
    let at = (number / FIRST_CHUNK + 1).ilog2() as usize;
    (at, number - first_of(at))
}

/// The number of a chunk's first slot.
const fn first_of(at: usize) -> usize {
    FIRST_CHUNK * ((1 << at) - 1)
}

/// The box of a chunk.
///
/// # Safety
/// `first` comes from the box of the chunk at that place, and nobody else has it.
unsafe fn chunk_at(first: NonNull<Slot>, at: usize) -> Box<[Slot]> {
    let all = ptr::slice_from_raw_parts_mut(first.as_ptr(), chunk_len(at));
    // SAFETY: the caller promises it.
    unsafe { Box::from_raw(all) }
}
