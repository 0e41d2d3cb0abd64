//! What only a slot's owner uses, on a cache line of its own, and who owns the slot.

use super::buckets::Places;
use super::policy::Policy;
use super::slot::Slot;
use super::state::State;
use crate::range::thread::ThreadRecord;
use prim::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use prim::cell::UnsafeCell;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// What only the slot's owner uses, and who claims a slot.
#[repr(align(128))] // A pair of cache lines: others, which read the slot's first line, do not fetch this with it.
pub(super) struct OwnerLine {
    /// [`NOBODY`](Slot::NOBODY), [`GUEST`](Slot::GUEST), or the address of the owner's thread record; plus one, if it
    /// is the owner's home slot.
    who: AtomicUsize,
    /// In a home slot, the first of its thread's other slots that are free; in one of those, the next.
    free: Cell<*const Slot>,
    /// In one of a thread's other slots, the home slot; in a home slot whose thread has had others, that slot itself.
    home: Cell<*const Slot>,
    /// In a home slot, how many others its thread has.
    others: AtomicU32,
    /// Where the announcement is listed in buckets.
    places: AtomicU64,
    /// The state as the owner has made it last.
    made: AtomicU64,
    /// Nothing. A model checker reports uses of `places` and `made` that are not ordered [heir] [heir-waits].
    turn: UnsafeCell<()>,
    policy: Policy,
}

impl Default for OwnerLine {
    fn default() -> Self {
        Self {
            who: AtomicUsize::new(Slot::NOBODY),
            free: Cell::new(ptr::null()),
            home: Cell::new(ptr::null()),
            others: AtomicU32::new(0),
            places: AtomicU64::new(Places::NONE.0),
            made: AtomicU64::new(0),
            turn: UnsafeCell::new(()),
            policy: Policy::default(),
        }
    }
}

impl Slot {
    /// Nobody owns the slot.
    const NOBODY: usize = 0;
    /// A thread that is exiting owns it, for one acquisition.
    const GUEST: usize = 1;

    /// When the owner keeps its grant, if this is a home slot.
    #[inline]
    pub(super) fn policy(&self) -> &Policy {
        &self.owner.policy
    }

    /// The state as the owner has made it last. Since then others may have marked it, if it is held, or revoked its
    /// grant or taken it off the count, if it is not.
    ///
    /// The owner asks this rather than the state itself: that is on a line that others use, and a load soon after the
    /// owner's own atomic operation would wait for it.
    #[inline]
    pub(super) fn noted_state(&self) -> State {
        self.has_turn();
        // Relaxed: the owner's.
        State(self.owner.made.load(Ordering::Relaxed))
    }

    /// Notes the state that the owner makes. It does so before it makes that state: after a release, another thread may
    /// have got the record of one that is exiting, and with it the slot.
    ///
    /// So until that state is made, the owner's thread alone may use the slot. A release on another thread than the
    /// acquisition, which the contract of the lock rules out, might end what the owner announces meanwhile. And a
    /// signal handler must not acquire ranges of a lock that the thread it interrupts is using: in the midst of a
    /// release it would take a held slot for free, and the release would end what the handler holds.
    #[inline]
    pub(super) fn note_state(&self, state: State) {
        self.has_turn();
        self.owner.made.store(state.0, Ordering::Relaxed);
    }

    /// Whoever calls this is the only one that uses what the owner alone uses.
    #[inline]
    fn has_turn(&self) {
        self.owner.turn.with_mut(|_| ());
    }

    /// Notes where the announcement is listed.
    #[inline]
    pub(super) fn set_places(&self, places: Places) {
        self.has_turn();
        // Relaxed: the owner's.
        self.owner.places.store(places.0, Ordering::Relaxed);
    }

    /// Where the announcement is listed. Forgets it.
    ///
    /// Called while the slot is held: after that, another thread may have got the record of one that is exiting, and
    /// with it the slot.
    #[inline]
    pub(super) fn take_places(&self) -> Places {
        self.has_turn();
        let places = Places(self.owner.places.load(Ordering::Relaxed));
        if places != Places::NONE {
            self.set_places(Places::NONE);
        }
        places
    }

    /// Makes the slot a thread's, or a guest's, if it is nobody's.
    pub(super) fn claim(&self, owner: Owner) -> bool {
        // Acquire: pairs with the Release in `abandon`.
        self.owner
            .who
            .compare_exchange(
                Self::NOBODY,
                owner.word(),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Makes it nobody's. It is free.
    pub(super) fn abandon(&self) {
        // SAFETY: null, or a slot of the same lock, whose slots live as long as the lock.
        if let Some(home) = unsafe { self.owner.home.replace(ptr::null()).as_ref() } {
            // Relaxed: as in `add_other`.
            home.owner.others.fetch_sub(1, Ordering::Relaxed);
        }
        self.owner.who.store(Self::NOBODY, Ordering::Release);
    }

    pub(super) fn is_owned_by(&self, owner: Owner) -> bool {
        // Relaxed: a thread that finds its own record has written it, or comes after the thread that did.
        self.owner.who.load(Ordering::Relaxed) == owner.word()
    }

    /// Whether the announcement is listed in buckets.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.has_turn();
        self.owner.places.load(Ordering::Relaxed) != Places::NONE.0
    }

    /// Takes one of the free slots that a thread has besides its home slot, which this is.
    pub(super) fn take_other(&self) -> Option<NonNull<Self>> {
        let other = NonNull::new(self.owner.free.get().cast_mut())?;
        // A slot in no list has no successor: it may be abandoned, and become the home slot of another thread.
        // SAFETY: the slots of a lock live as long as the lock, and this is one of them.
        let next = unsafe { other.as_ref() }.owner.free.replace(ptr::null());
        self.owner.free.set(next);
        Some(other)
    }

    /// Counts one more slot for the thread whose home slot this is, if it has fewer than `most` others.
    pub(super) fn add_other(&self, most: usize) -> bool {
        // Relaxed: a hint. Another thread takes one off when it releases late what a thread held that has exited.
        let may = (self.owner.others.load(Ordering::Relaxed) as usize) < most;
        if may {
            self.owner.others.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// Attaches one of a thread's slots to its home slot.
    pub(super) fn attach(&self, home: &Self) {
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
        let is_ours = record != Self::GUEST && crate::range::thread::is_here(record);
        let Some(home) = NonNull::new(self.owner.home.get().cast_mut()).filter(|_| is_ours) else {
            return false;
        };
        // SAFETY: as in `take_other`.
        let home = unsafe { home.as_ref() };
        self.owner.free.set(home.owner.free.get());
        home.owner.free.set(self);
        true
    }
}

// Whether it is the home slot is in the address of the record.
const _: () = assert!(align_of::<ThreadRecord>() > Slot::GUEST);

/// Who owns a slot.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// The thread with the record at that address, as its home slot.
    Home(usize),
    /// The thread with the record at that address, as one of its other slots.
    Other(usize),
    /// A thread that is exiting, for one acquisition.
    Guest,
}

impl Owner {
    fn word(self) -> usize {
        match self {
            Self::Home(record) => record + 1,
            Self::Other(record) => record,
            Self::Guest => Slot::GUEST,
        }
    }
}
