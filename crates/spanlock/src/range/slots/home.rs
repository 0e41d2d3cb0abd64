//! Whose a slot is, and how the running thread gets one. The edges cited are the parent module's.

use super::board::Board;
use super::slot::Slot;
use crate::range::id::OwnerId;
use crate::range::thread::{self, ThreadRecord};
use prim::atomic::Ordering;
use prim::thread as threads;
use std::ptr::{self, NonNull};

/// A slot to announce a request in.
#[derive(Clone, Copy)]
pub(super) struct FreeSlot<'a> {
    pub(super) slot: &'a Slot,
    /// The thread's home slot, unless the slot is lent.
    pub(super) home: Option<&'a Slot>,
}

impl<'a> FreeSlot<'a> {
    pub(super) fn lent(slot: &'a Slot) -> Self {
        Self { slot, home: None }
    }

    pub(super) fn is_home(&self) -> bool {
        self.home.is_some_and(|home| ptr::eq(home, self.slot))
    }

    /// The slot whose advice the request follows.
    pub(super) fn adviser(&self) -> &'a Slot {
        self.home.unwrap_or(self.slot)
    }
}

/// Who owns a slot.
#[derive(Clone, Copy)]
enum Owner {
    /// The thread with the record at that address, as its home slot.
    Home(usize),
    /// The thread with the record at that address, as one of its other slots.
    Other(usize),
    /// One acquisition, of an owner or of a thread that is exiting.
    Borrower,
}

// Whether it is the home slot is in the address of the record.
const _: () = assert!(align_of::<ThreadRecord>() > Owner::LENDABLE);

/// How many slots are lent to owners, for each processor: to as many owners as run at a time, and to as many again that
/// wait for something else while they hold a range.
const LENT_A_PROCESSOR: u32 = 2;

impl Owner {
    const NOBODY: usize = 0;
    /// It is lent to one acquisition.
    const BORROWER: usize = 1;
    /// It is lent to nobody just now.
    const LENDABLE: usize = 2;

    /// The address of the thread's record; plus one, if it is the home slot.
    fn word(self) -> usize {
        match self {
            Self::Home(record) => record + 1,
            Self::Other(record) => record,
            Self::Borrower => Self::BORROWER,
        }
    }
}

/// This thread's home slot on a board, if the thread used it lately.
#[inline]
pub(super) fn known(board: &Board) -> Option<&Slot> {
    let home = thread::with_local(|local| local.seats.slot_on(board.id()))?;
    // SAFETY: the slots of a board live as long as the board.
    Some(unsafe { home.as_ref() })
}

impl Board {
    /// A free slot for a request of the running thread. `None`: the thread holds as many ranges as `most_others`
    /// besides the one in its home slot, so the request belongs in the annex.
    pub(super) fn free_slot(
        &self,
        record: &ThreadRecord,
        most_others: usize,
    ) -> Option<FreeSlot<'_>> {
        let record = ptr::from_ref(record).addr();
        if !thread::is_here(record) {
            return self.find_lendable(u32::MAX).map(FreeSlot::lent);
        }
        let home = self.home(record);
        let slot = if home.is_free() {
            home
        } else {
            let other = self.take_other(home);
            let other = other.or_else(|| {
                home.add_other(most_others)
                    .then(|| self.claim(Owner::Other(record)))
            })?;
            other.attach(home);
            other
        };
        Some(FreeSlot {
            slot,
            home: Some(home),
        })
    }

    /// A free slot of the thread whose home slot that is.
    #[inline]
    pub(super) fn take_other(&self, home: &Slot) -> Option<&Slot> {
        let other = home.take_other()?;
        // SAFETY: the slots of a board live as long as the board, and a thread's slots are all in one lock.
        Some(unsafe { other.as_ref() })
    }

    /// The home slot of the running thread, whose record is at that address.
    fn home(&self, record: usize) -> &Slot {
        if let Some(home) = known(self) {
            return home;
        }
        let owner = Owner::Home(record);
        // Relaxed: a thread that finds its own record has written it, or comes after the thread that did.
        let is_ours = |slot: &Slot| slot.owner.who.load(Ordering::Relaxed) == owner.word();
        let known = self.find(|slot| is_ours(slot).then_some(slot));
        let home = known.unwrap_or_else(|| self.claim(owner));
        if !home.is_free() && prim::intact!("heir-waits") {
            // [heir-waits] A thread that has exited, and had this thread's record before, holds something there. It may
            // be in the midst of the release, so what it has noted on the owner's line is not to be relied on yet.
            return home;
        }
        // Its requests take their name from there.
        home.note_asker(OwnerId::of_thread(thread::id()));
        thread::with_local(|local| local.seats.remember(self.id(), home));
        home
    }

    /// A slot that was nobody's, or a new one.
    #[cold] // A thread's first acquisition, and when it holds more ranges than ever before.
    fn claim(&self, owner: Owner) -> &Slot {
        // Acquire: pairs with the Release in `give_up`.
        let claim = |slot: &Slot| {
            slot.owner
                .who
                .compare_exchange(
                    Owner::NOBODY,
                    owner.word(),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
        };
        // Relaxed: a count that is wrong costs a search, or a slot more.
        if self.vacant.load(Ordering::Relaxed) != 0
            && let Some(slot) = self.find(|slot| claim(slot).then_some(slot))
        {
            self.vacant.fetch_sub(1, Ordering::Relaxed);
            return slot;
        }
        loop {
            let slot = self.add_slot();
            if claim(slot) {
                return slot;
            }
            // Another thread found it while it searched, and has taken it off the count.
            self.vacant.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A slot for what an owner is to hold by one acquisition. `None`: so much is held for owners that the request
    /// belongs in the annex.
    #[inline]
    pub(super) fn lend(&self) -> Option<&Slot> {
        let last = thread::with_local(|local| local.lent.slot_on(self.id()));
        // SAFETY: the slots of a board live as long as the board, and no other board has its number.
        let last = last.map(|slot| unsafe { slot.as_ref() });
        last.filter(|last| last.borrow())
            .or_else(|| self.lend_another())
    }

    #[cold] // The thread's first acquisition for an owner, or what it got the last time is still held.
    fn lend_another(&self) -> Option<&Slot> {
        // Before the thread has a slot: there is a panic, if there are too many threads.
        thread::with_record(|_| ());
        let slot = self.find_lendable(LENT_A_PROCESSOR * threads::processors() as u32)?;
        thread::with_local(|local| local.lent.change(self.id(), slot));
        Some(slot)
    }

    /// A slot to lend. A new one, if none is free and the board has fewer than `most`.
    fn find_lendable(&self, most: u32) -> Option<&Slot> {
        // Relaxed: a look at the line that all look at, which spares that of the owner of a slot in use.
        let is_in_use = |slot: &Slot| slot.load(Ordering::Relaxed).is_held();
        let found = self.find(|slot| (!is_in_use(slot) && slot.borrow()).then_some(slot));
        found.or_else(|| {
            let one_more = |lendable| (lendable < most).then_some(lendable + 1);
            // Relaxed: it only counts.
            let relaxed = Ordering::Relaxed;
            let counted = self.lendable.fetch_update(relaxed, relaxed, one_more);
            counted.is_ok().then(|| self.claim(Owner::Borrower))
        })
    }

    /// Returns a free slot that is not a home slot: a lent one to those that are lent, another one to its thread, or
    /// to nobody.
    pub(super) fn give_back(&self, slot: &Slot) {
        if slot.is_borrowed() {
            slot.give_back();
        } else if !slot.return_to_owner() {
            self.give_up(slot);
        }
    }

    /// Leaves a free slot to nobody.
    pub(super) fn give_up(&self, slot: &Slot) {
        // SAFETY: null, or a slot of the same lock, whose slots live as long as the lock.
        if let Some(home) = unsafe { slot.owner.home.replace(ptr::null()).as_ref() } {
            // Relaxed: as in `add_other`.
            home.owner.others.fetch_sub(1, Ordering::Relaxed);
        }
        slot.owner.who.store(Owner::NOBODY, Ordering::Release);
        self.vacant.fetch_add(1, Ordering::Relaxed);
    }
}

impl Slot {
    /// Whether the running thread, which has announced something here, has it as its home slot.
    pub(super) fn is_home(&self) -> bool {
        let home = self.owner.home.get();
        !self.is_borrowed() && (home.is_null() || ptr::eq(home, self))
    }

    /// Takes the slot for one acquisition, if it is one of those that are lent, and is free.
    #[inline]
    fn borrow(&self) -> bool {
        let who = &self.owner.who;
        // [lent] Acquire: pairs with the Release in `give_back`. What was announced last is seen here, or its end.
        let acquire = prim::order!("lent", Ordering::Acquire);
        let (lendable, borrower) = (Owner::LENDABLE, Owner::BORROWER);
        // Relaxed: a look that spares the line of a slot that is lent.
        let is_taken = who.load(Ordering::Relaxed) == lendable
            && who
                .compare_exchange(lendable, borrower, acquire, Ordering::Relaxed)
                .is_ok();
        // [lent-waits] The release that has given it back may not have ended what was announced.
        if is_taken && !self.is_free() && prim::intact!("lent-waits") {
            self.give_back();
            return false;
        }
        is_taken
    }

    /// Whether the slot is lent to an acquisition.
    #[inline]
    pub(super) fn is_borrowed(&self) -> bool {
        // Relaxed: who releases what is held in it asks, and comes after the acquisition; or the answer is a hint.
        self.owner.who.load(Ordering::Relaxed) == Owner::BORROWER
    }

    /// Notes which thread has asked for what is announced in a lent slot.
    pub(super) fn note_borrower(&self, thread: u32) {
        // Relaxed: for a report.
        self.owner.borrower.store(thread, Ordering::Relaxed);
    }

    /// Whether that thread has asked for what is announced and decided here. Known in debug builds.
    pub(super) fn is_of(&self, thread: u32) -> bool {
        let asked_by = if self.is_borrowed() {
            OwnerId::of_thread(self.owner.borrower.load(Ordering::Relaxed))
        } else {
            self.asked_by()
        };
        asked_by == OwnerId::of_thread(thread) && !self.is_undecided()
    }

    /// Gives a lent slot back, whose announcement ends by the next step, or has ended.
    #[inline]
    pub(super) fn give_back(&self) {
        // [lent] Release: pairs with the Acquire in `borrow`.
        let release = prim::order!("lent", Ordering::Release);
        self.owner.who.store(Owner::LENDABLE, release);
    }

    /// Takes one of the free slots that a thread has besides its home slot, which this is.
    #[inline]
    fn take_other(&self) -> Option<NonNull<Self>> {
        let other = NonNull::new(self.owner.free.get().cast_mut())?;
        // A slot in no list has no successor: it may be given up, and become the home slot of another thread.
        // SAFETY: the slots of a lock live as long as the lock, and this is one of them.
        let next = unsafe { other.as_ref() }.owner.free.replace(ptr::null());
        self.owner.free.set(next);
        Some(other)
    }

    /// Counts one more slot for the thread whose home slot this is, if it has fewer than `most` others.
    fn add_other(&self, most: usize) -> bool {
        // Relaxed: a hint. Another thread takes one off when it releases late what a thread held that has exited.
        let may = (self.owner.others.load(Ordering::Relaxed) as usize) < most;
        if may {
            self.owner.others.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// Attaches one of a thread's slots to its home slot.
    fn attach(&self, home: &Self) {
        self.owner.home.set(home);
        home.owner.home.set(home);
    }

    /// Whether the thread, whose home slot this is, may have other slots.
    pub(super) fn has_others(&self) -> bool {
        !self.owner.home.get().is_null()
    }

    /// Puts a slot that is not a home slot into the list of the running thread's free slots, if it is that thread's. It
    /// is free, or the thread frees it before it does anything else in this lock.
    #[inline]
    pub(super) fn return_to_owner(&self) -> bool {
        let record = self.owner.who.load(Ordering::Relaxed);
        let home = NonNull::new(self.owner.home.get().cast_mut());
        let Some(home) = home.filter(|_| thread::is_here(record)) else {
            return false;
        };
        // SAFETY: as in `take_other`.
        let home = unsafe { home.as_ref() };
        self.owner.free.set(home.owner.free.get());
        home.owner.free.set(self);
        true
    }
}
