//! The board of a lock: all its slots.

use super::annex::Annex;
use super::buckets::{Buckets, Places};
use super::home::{self, Share};
use super::owner::Owner;
use super::slot::Slot;
use crate::range::list::{AtomicLink, Link};
use crate::range::thread::{self, ThreadRecord};
use prim::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use prim::track::Track;
use std::ptr;

/// The slots of the first chunk. Each further chunk has twice as many as the one before it.
const FIRST_CHUNK: usize = prim::sized(4, 2);

/// Enough for some slots more than [`MANY`](crate::range::list::MANY) of each thread that a program can have.
const CHUNKS: usize = 24;

/// The slots of one lock, in chunks that never move.
// The residue comes first, so that a pointer to the board leads to it. The alignment makes room for a link's mark.
#[repr(C, align(16))]
pub(crate) struct Board {
    /// The list of the lock, with what was held in it when the lock moved to slots. Nothing enters it any more.
    residue: AtomicLink,
    /// Null until a thread holds many ranges.
    pub(super) annex: AtomicPtr<Annex>,
    /// How many [shares](Share) there are.
    pub(super) shares: AtomicUsize,
    /// How many slots there are.
    len: AtomicU32,
    /// How many of them are nobody's. While a slot becomes somebody's, it may count wrongly, even below zero.
    vacant: AtomicU32,
    chunks: [AtomicPtr<Slot>; CHUNKS],
    /// Until there are buckets: how many [looks](super::policy::MANY) at slots were for requests far apart.
    pub(super) looks: AtomicU32,
    /// Which slots are [counted](Counted).
    pub(super) counted: AtomicU64,
    /// Null until narrow requests are far apart.
    buckets: AtomicPtr<Buckets>,
    _track: Track,
}

/// Which slots are counted: those with announcements that are not listed in buckets, and some that are idle.
///
/// It is the sum of a number of each, which is one in the upper half and the slot's number in the lower half. So if
/// one slot is counted, it says which.
#[derive(Clone, Copy)]
pub(super) struct Counted(pub(super) u64);

impl Counted {
    /// The count when this slot alone is counted.
    pub(super) fn of(slot: &Slot) -> Self {
        Self(1 << u32::BITS | u64::from(slot.number()))
    }

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

/// A slot to announce a request in.
#[derive(Clone, Copy)]
pub(super) struct FreeSlot<'a> {
    pub(super) slot: &'a Slot,
    /// The home slot, if the thread has one.
    pub(super) home: Option<&'a Slot>,
}

impl FreeSlot<'_> {
    pub(super) fn is_home(&self) -> bool {
        self.home.is_some_and(|home| ptr::eq(home, self.slot))
    }
}

impl Board {
    /// How many slots the first chunk has.
    pub(super) const FEW: usize = FIRST_CHUNK;

    /// A board without slots.
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            residue: AtomicLink::new(),
            annex: AtomicPtr::new(ptr::null_mut()),
            // The lock's.
            shares: AtomicUsize::new(1),
            len: AtomicU32::new(0),
            vacant: AtomicU32::new(0),
            chunks: prim::array![AtomicPtr::new(ptr::null_mut()); CHUNKS],
            looks: AtomicU32::new(0),
            counted: AtomicU64::new(0),
            buckets: AtomicPtr::new(ptr::null_mut()),
            _track: Track::new(),
        })
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

    /// A free slot for a request of the running thread. `None`: the thread holds as many ranges as `most_others`
    /// besides the one in its home slot, so the request belongs in the annex. A thread that is new to the board
    /// takes a share.
    pub(super) fn free_slot(
        &self,
        record: &ThreadRecord,
        share: impl FnOnce() -> Share,
        most_others: usize,
    ) -> Option<FreeSlot<'_>> {
        let record = ptr::from_ref(record).addr();
        if !thread::is_here(record) {
            let slot = self.claim(Owner::Guest);
            return Some(FreeSlot { slot, home: None });
        }
        let home = self.home(record, share);
        let slot = if home.is_free() {
            home
        } else {
            let other = self.take_other(home);
            let other = other.or_else(|| self.claim_other(record, home, most_others))?;
            other.attach(home);
            other
        };
        Some(FreeSlot {
            slot,
            home: Some(home),
        })
    }

    /// A slot for the thread with the record at that address, besides those that it has. `None`: it has `most` already.
    fn claim_other(&self, record: usize, home: &Slot, most: usize) -> Option<&Slot> {
        home.add_other(most)
            .then(|| self.claim(Owner::Other(record)))
    }

    /// A free slot of the thread whose home slot that is.
    #[inline]
    pub(super) fn take_other(&self, home: &Slot) -> Option<&Slot> {
        let other = home.take_other()?;
        // SAFETY: the slots of a board live as long as the board, and a thread's slots are all in one lock.
        Some(unsafe { other.as_ref() })
    }

    /// The buckets, if there are any.
    #[inline]
    pub(super) fn buckets(&self) -> Option<&Buckets> {
        // [buckets] Acquire: pairs with the Release in `make_buckets`.
        let buckets = self
            .buckets
            .load(prim::order!("buckets", Ordering::Acquire));
        // SAFETY: buckets that were published live as long as the board.
        unsafe { buckets.as_ref() }
    }

    /// Makes buckets for ranges of up to `2^digits` positions, if there are none.
    #[cold] // Once for a board.
    pub(super) fn make_buckets(&self, digits: u32) {
        let fresh = Box::into_raw(Buckets::new(digits));
        // [buckets] Release: pairs with the Acquire in `buckets`.
        let published = self.buckets.compare_exchange(
            ptr::null_mut(),
            fresh,
            prim::order!("buckets", Ordering::Release),
            Ordering::Relaxed,
        );
        if published.is_err() {
            // SAFETY: it comes from the box above and was not published.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }

    /// The home slot of the running thread, whose record is at that address.
    fn home(&self, record: usize, share: impl FnOnce() -> Share) -> &Slot {
        if let Some(home) = home::known(self) {
            // SAFETY: the slots of a board live as long as the board.
            return unsafe { home.as_ref() };
        }
        let owner = Owner::Home(record);
        let known = self.find(|slot| slot.is_owned_by(owner).then_some(slot));
        let home = known.unwrap_or_else(|| self.claim(owner));
        if !home.is_free() && prim::intact!("heir-waits") {
            // [heir-waits] A thread that has exited, and had this thread's record before, holds something there. It may
            // be in the midst of the release, so what it has noted on the owner's line is not to be relied on yet.
            return home;
        }
        home::remember(share(), home);
        home
    }

    /// A slot that was nobody's, or a new one.
    #[cold] // A thread's first acquisition, and when it holds more ranges than ever before.
    fn claim(&self, owner: Owner) -> &Slot {
        // Relaxed: a count that is wrong costs a search, or a slot more.
        if self.vacant.load(Ordering::Relaxed) != 0
            && let Some(slot) = self.find(|slot| slot.claim(owner).then_some(slot))
        {
            self.vacant.fetch_sub(1, Ordering::Relaxed);
            return slot;
        }
        loop {
            // [registry] Counted before it is announced in: so a scan after a later fence meets it. Relaxed: the fence
            // of the handshake orders it.
            let number = self.len.fetch_add(1, Ordering::Relaxed);
            let slot = self.make(number as usize);
            if slot.claim(owner) {
                return slot;
            }
            // Another thread found it while it searched, and has taken it off the count.
            self.vacant.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a free slot that is not a home slot to its thread, or leaves it to nobody.
    pub(super) fn give_back(&self, slot: &Slot) {
        if !slot.return_to_owner() {
            self.give_up(slot);
        }
    }

    /// Leaves a free slot to nobody.
    pub(super) fn give_up(&self, slot: &Slot) {
        slot.abandon();
        self.vacant.fetch_add(1, Ordering::Relaxed);
    }

    /// The slot with that number. Makes its chunk, if need be.
    fn make(&self, number: usize) -> &Slot {
        let (at, within) = place(number);
        let chunk = &self.chunks[at];
        // [chunk] Acquire: pairs with the Release below.
        let mut first = chunk.load(prim::order!("chunk", Ordering::Acquire));
        if first.is_null() {
            let slots = (0..chunk_len(at)).map(|slot| Slot::new((number - within + slot) as u32));
            let slots: Box<[Slot]> = slots.collect();
            let fresh = Box::into_raw(slots).cast::<Slot>();
            let published = chunk.compare_exchange(
                ptr::null_mut(),
                fresh,
                prim::order!("chunk", Ordering::Release),
                prim::order!("chunk", Ordering::Acquire),
            );
            first = match published {
                Ok(_) => fresh,
                Err(theirs) => {
                    // SAFETY: `fresh` comes from the box above and was not published.
                    drop(unsafe { chunk_at(fresh, at) });
                    theirs
                }
            };
        }
        // SAFETY: a chunk that was published has so many slots.
        let slot = unsafe { first.add(within) };
        // SAFETY: it lives as long as the board.
        unsafe { &*slot }
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
        // [chunk] Acquire: pairs with the Release in `make`.
        let first = self.chunks[at].load(prim::order!("chunk", Ordering::Acquire));
        if first.is_null() {
            // Nothing is announced there: a slot is counted before its chunk is made.
            return None;
        }
        for slot in 0..count {
            // SAFETY: a chunk that was published has so many slots.
            let slot = unsafe { first.add(slot) };
            // SAFETY: it lives as long as the board.
            let found = f(unsafe { &*slot });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Strikes an announcement that is about to end off the buckets.
    #[inline]
    pub(super) fn strike(&self, places: Places) {
        if places != Places::NONE
            && let Some(buckets) = self.buckets()
        {
            buckets.strike(places);
        }
    }

    /// The slot with that number, if there is one.
    pub(super) fn slot(&self, number: u32) -> Option<&Slot> {
        let (at, within) = place(number as usize);
        // [chunk] Acquire: pairs with the Release in `make`. Null: a word was seen, but not what came before it. Then
        // the other request's fence is second [slot-handshake].
        let first = self.chunks[at].load(prim::order!("chunk", Ordering::Acquire));
        if first.is_null() {
            return None;
        }
        // SAFETY: a chunk that was published has so many slots.
        let slot = unsafe { first.add(within) };
        // SAFETY: it lives as long as the board.
        Some(unsafe { &*slot })
    }
}

impl Board {
    /// Frees the slots, the buckets and the annex.
    ///
    /// # Safety
    /// The lock is being dropped, so nobody uses them any more. Threads may still have shares.
    pub(super) unsafe fn clear(&self) {
        // Relaxed: shares order it before the end of the board.
        let buckets = self.buckets.load(Ordering::Relaxed);
        if !buckets.is_null() {
            self.buckets.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: it comes from a box, and nobody uses it, by the caller's promise.
            drop(unsafe { Box::from_raw(buckets) });
        }
        let annex = self.annex.load(Ordering::Relaxed);
        if !annex.is_null() {
            self.annex.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: as for the buckets.
            drop(unsafe { Box::from_raw(annex) });
        }
        for (at, chunk) in self.chunks.iter().enumerate() {
            let first = chunk.load(Ordering::Relaxed);
            if !first.is_null() {
                chunk.store(ptr::null_mut(), Ordering::Relaxed);
                // SAFETY: the chunk comes from a box of so many slots, and nobody uses it, by the caller's promise.
                drop(unsafe { chunk_at(first, at) });
            }
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: nobody uses a board that is dropped.
        unsafe { self.clear() };
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
unsafe fn chunk_at(first: *mut Slot, at: usize) -> Box<[Slot]> {
    let all = ptr::slice_from_raw_parts_mut(first, chunk_len(at));
    // SAFETY: the caller promises it.
    unsafe { Box::from_raw(all) }
}
