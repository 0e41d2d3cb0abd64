//! Slots: where threads announce their requests.
//!
//! ```text
//!   line 0, which others read:    state | first and last position | seniority | who asked | line of code
//!   line 2, the owner's:          owner | its other slots | the state that it has made last | advice
//! ```
//!
//! Lines 1 and 3 are empty. Processors fetch lines in pairs: whoever looked at line 0 would take line 1 from the owner.
//!
//! A *grant* is what a thread may take again without a look at other slots: the range that was announced, in the mode
//! in which it was announced. What is *held* lies within the grant.

use super::advice::ThreadAdvice;
use super::buckets::BucketPlaces;
use super::request::{Entry, Seniority};
use super::state::{Audience, Extent, State};
use crate::range::id::OwnerId;
use crate::range::inspect::Request;
use crate::range::mode::Mode;
use crate::range::span::Span;
use prim::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use prim::cell::UnsafeCell;
use prim::debug;
use std::cell::Cell;
use std::panic::Location;
use std::ptr;

/// Where a thread announces one request.
#[repr(C, align(128))] // A pair of cache lines. No other slot has a part of it.
pub(crate) struct Slot {
    pub(super) state: AtomicU64,
    /// The range of the grant.
    pub(super) start: AtomicU64,
    pub(super) last: AtomicU64,
    /// What is held, if that is only a part.
    pub(super) held_start: AtomicU64,
    pub(super) held_last: AtomicU64,
    pub(super) seniority: AtomicU64,
    pub(super) asked_by: AtomicU32,
    /// The slot's number in its lock. Never changes.
    number: u32,
    /// The line that asked for the range. Kept in debug builds.
    pub(super) at: AtomicPtr<Location<'static>>,
    pub(super) owner: OwnerLine,
}

/// What only the slot's owner uses, and who that is.
#[repr(align(128))] // A pair of cache lines: others, which read the slot's first line, do not fetch this with it.
pub(super) struct OwnerLine {
    /// Who owns the slot: see `home.rs`.
    pub(super) who: AtomicUsize,
    /// In a home slot, the first of its thread's other slots that are free; in one of those, the next.
    pub(super) free: Cell<*const Slot>,
    /// In one of a thread's other slots, the home slot; in a home slot whose thread has had others, that slot itself.
    pub(super) home: Cell<*const Slot>,
    /// In a home slot, how many others its thread has.
    pub(super) others: AtomicU32,
    /// In a lent slot, the thread that has asked for the range. Kept in debug builds.
    pub(super) borrower: AtomicU32,
    /// Where the announcement is listed in buckets.
    places: AtomicU64,
    /// The state as the owner has made it last.
    noted: AtomicU64,
    /// Empty. By it a model checker reports uses of `places` and `noted` that are not ordered [heir] [heir-waits]
    /// [lent].
    race: UnsafeCell<()>,
    /// In a home slot, and in a lent one.
    advice: ThreadAdvice,
}

impl Default for OwnerLine {
    fn default() -> Self {
        Self {
            who: AtomicUsize::new(0),
            free: Cell::new(ptr::null()),
            home: Cell::new(ptr::null()),
            others: AtomicU32::new(0),
            borrower: AtomicU32::new(0),
            places: AtomicU64::new(BucketPlaces::NONE.0),
            noted: AtomicU64::new(0),
            race: UnsafeCell::new(()),
            advice: ThreadAdvice::default(),
        }
    }
}

// SAFETY: all that others access is atomic. The cells are used by the thread whose record is the owner, and by the next
// thread with that record, which `prim::thread` orders after it. In a lent slot nobody uses them: it may have been
// somebody's other slot before, until `give_up`, and `claim` comes after that.
unsafe impl Sync for Slot {}
// SAFETY: as above: a slot belongs to a lock, which any thread may drop.
unsafe impl Send for Slot {}

impl Slot {
    pub(super) fn new(number: u32) -> Self {
        Self {
            state: AtomicU64::new(0),
            start: AtomicU64::new(0),
            last: AtomicU64::new(0),
            held_start: AtomicU64::new(0),
            held_last: AtomicU64::new(0),
            seniority: AtomicU64::new(Seniority::DECIDED.0),
            asked_by: AtomicU32::new(0),
            number,
            at: AtomicPtr::new(ptr::null_mut()),
            owner: OwnerLine::default(),
        }
    }

    /// Identifies the slot among the holders of its lock.
    pub(super) fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// What the owner's thread has learned, if this is a home slot; in a lent one, what its borrowers have.
    #[inline]
    pub(super) fn advice(&self) -> &ThreadAdvice {
        &self.owner.advice
    }

    /// The state as the owner has made it last. Since then others may have marked it, if it is held, or revoked its
    /// grant or taken it off the count, if it is not.
    ///
    /// The owner asks this rather than the state itself: that is on a line that others use, and a load soon after the
    /// owner's own atomic operation would wait for it.
    #[inline]
    pub(super) fn noted_state(&self) -> State {
        self.claim_alone();
        // Relaxed: the owner's.
        State(self.owner.noted.load(Ordering::Relaxed))
    }

    /// Notes the state that the owner makes. It does so before it makes that state: after a release, another thread may
    /// have got the record of one that is exiting, and with it the slot.
    ///
    /// So until that state is made, the owner's thread alone may use the slot. A release on another thread than the
    /// acquisition, which the contract of the lock rules out but for lent slots, might end what the owner announces
    /// meanwhile. And a
    /// signal handler must not acquire ranges of a lock that the thread it interrupts is using: in the midst of a
    /// release it would take a held slot for free, and the release would end what the handler holds.
    #[inline]
    fn note_state(&self, state: State) {
        self.claim_alone();
        self.owner.noted.store(state.0, Ordering::Relaxed);
    }

    /// Tells a model checker that the caller is the only one that uses what the owner alone uses.
    #[inline]
    fn claim_alone(&self) {
        self.owner.race.with_mut(|_| ());
    }

    /// Notes where the announcement is listed.
    #[inline]
    pub(super) fn set_places(&self, places: BucketPlaces) {
        self.claim_alone();
        // Relaxed: the owner's.
        self.owner.places.store(places.0, Ordering::Relaxed);
    }

    /// Whether the announcement is listed in buckets.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.claim_alone();
        self.owner.places.load(Ordering::Relaxed) != BucketPlaces::NONE.0
    }

    /// Where the announcement is listed. Forgets it.
    ///
    /// Called while the slot is held: after that, another thread may have got the record of one that is exiting, and
    /// with it the slot.
    #[inline]
    pub(super) fn take_places(&self) -> BucketPlaces {
        self.claim_alone();
        let places = BucketPlaces(self.owner.places.load(Ordering::Relaxed));
        if places != BucketPlaces::NONE {
            self.set_places(BucketPlaces::NONE);
        }
        places
    }

    #[inline]
    pub(super) fn load(&self, order: Ordering) -> State {
        State(self.state.load(order))
    }

    /// Whether its owner may announce a request here.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        // [heir] Acquire: pairs with the Release in `end` and `keep`. The last release here may be that of a thread
        // that has exited, and had this thread's record before, or of what was held in a lent slot. What it has noted
        // on the owner's line comes before.
        !self.load(prim::order!("heir", Ordering::Acquire)).is_held()
    }

    /// Announces a request of the slot's owner, which has made the state `before` last. If it is granted, so is
    /// `grant`, in the mode of the request. Returns the state before.
    #[inline]
    pub(super) fn announce(&self, before: State, entry: &Entry<'_>, audience: Audience) -> State {
        let Request { span, mode, .. } = entry.request;
        let grant = entry.grant;
        let extent = Extent::of(span, grant);
        let state = before.next(mode, extent, audience);
        self.note_state(state);
        // [rewrite] Release: pairs with the Acquire in `look.rs`.
        let rewrite = || prim::order!("rewrite", Ordering::Release);
        self.start.store(grant.start(), rewrite());
        self.last.store(grant.last(), rewrite());
        if extent == Extent::Part {
            self.set_part(span);
        }
        // Relaxed: hints and diagnostics.
        self.seniority.store(entry.seniority.0, Ordering::Relaxed);
        self.note_asker(entry.request.owner);
        self.note(entry.at);
        if audience == Audience::Bucket && before.is_private() {
            // A compare-exchange and the fence of the handshake follow. Release: a snapshot that loads the state sees
            // the range.
            self.state.store(state.0, Ordering::Release);
            return before;
        }
        // Release is for listings. The handshake needs the fence that follows. A swap, because on x86 it is the fence.
        let swapped = State(self.state.swap(state.0, Ordering::AcqRel));
        // [counted-again] Only the operation that announces shows whether the slot was counted until then.
        prim::order!("counted-again", swapped, before)
    }

    /// Counts the slot, whose owner has announced a request in it.
    #[cold] // A bucket is full.
    pub(super) fn set_counted(&self) {
        self.note_state(State(self.noted_state().0 | State::COUNTED));
        // Relaxed: the fence of the handshake follows.
        self.state.fetch_or(State::COUNTED, Ordering::Relaxed);
    }

    /// Ends that the slot is counted, if nothing is held in it. A kept grant is revoked. Returns whether it was
    /// counted.
    pub(super) fn clear_counted_if_idle(&self) -> bool {
        let state = self.load(Ordering::Relaxed);
        // [uncount-idle] A range that is held is not listed in buckets.
        let is_idle = !state.is_held() || !prim::intact!("uncount-idle");
        // Acquire: what the owner did before its release comes before [uncount].
        state.is_counted()
            && is_idle
            && self
                .state
                .compare_exchange(
                    state.0,
                    State(state.0 & !(State::COUNTED | State::KEPT)).0,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Notes who asks for what is announced, or for what is announced next.
    #[inline]
    pub(super) fn note_asker(&self, asker: OwnerId) {
        // Relaxed: a diagnostic.
        self.asked_by.store(asker.number(), Ordering::Relaxed);
    }

    #[inline]
    fn note(&self, at: &'static Location<'static>) {
        if debug::CHECKS {
            let at = ptr::from_ref(at).cast_mut();
            self.at.store(at, Ordering::Relaxed);
        }
    }

    #[inline]
    fn set_part(&self, span: Span) {
        // [rewrite] Release: pairs with the Acquire in `look.rs`.
        let rewrite = || prim::order!("rewrite", Ordering::Release);
        self.held_start.store(span.start(), rewrite());
        self.held_last.store(span.last(), rewrite());
    }

    /// Takes the grant again, if it is kept and covers the request. No other slot need be looked at.
    #[inline]
    pub(super) fn take_again(
        &self,
        state: State,
        span: Span,
        mode: Mode,
        at: &'static Location<'static>,
    ) -> bool {
        if !state.is_kept() {
            return false;
        }
        // [grant-mode] A shared grant does not do for a writer.
        let allows = mode == Mode::Shared
            || state.grant_mode() == Mode::Exclusive
            || !prim::intact!("grant-mode");
        if !allows {
            return false;
        }
        let extent = if self.announces(span) {
            Extent::Whole
        } else {
            let (start, last) = self.announced();
            if span.start() < start || last < span.last() {
                return false;
            }
            self.set_part(span);
            Extent::Part
        };
        self.note(at);
        let taken = state.taken_again(mode, extent);
        self.note_state(taken);
        // [grant-part] Release: pairs with the Acquire of the state in `look`. No fence follows.
        let order = prim::order!("grant-part", Ordering::Release);
        let outcome = self
            .state
            .compare_exchange(state.0, taken.0, order, Ordering::Relaxed);
        outcome
            .inspect_err(|&now| self.note_state(State(now)))
            .is_ok()
    }

    /// Ends what is held, and keeps the grant. Not, if a request sleeps behind it or the grant is contended.
    #[inline]
    pub(super) fn keep(&self) -> bool {
        let held = self.noted_state();
        debug_assert!(
            held.is_counted(),
            "a grant is kept in a slot that is counted"
        );
        let kept = held.kept();
        self.note_state(kept);
        // [slot-release] Release: pairs with the Acquire in `load_acquire`; [heir] and with that in `is_free`.
        let release = prim::order!("slot-release", Ordering::Release);
        // [grant-contended] It fails if there is a mark.
        self.state
            .compare_exchange(held.0, kept.0, release, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether the owner's grant is still kept, where that is the state that it has made last.
    #[inline]
    pub(super) fn keeps(&self, made: State) -> bool {
        // Relaxed: it decides nothing about who holds what.
        made.is_kept() && self.load(Ordering::Relaxed).is_kept()
    }

    /// The first and last position of the last grant.
    #[inline]
    pub(super) fn announced(&self) -> (u64, u64) {
        // Relaxed: the owner wrote it.
        let relaxed = Ordering::Relaxed;
        (self.start.load(relaxed), self.last.load(relaxed))
    }

    /// Whether the last announcement was of this very range.
    #[inline]
    pub(super) fn announces(&self, span: Span) -> bool {
        self.announced() == (span.start(), span.last())
    }

    /// The request stays: it is no rival any more.
    #[inline]
    pub(super) fn decide(&self) {
        // Relaxed: a hint.
        self.seniority
            .store(Seniority::DECIDED.0, Ordering::Relaxed);
    }

    /// The request stays, as after [`decide`](Self::decide). Notes on which node its thread runs, and when the turn of
    /// that node began.
    pub(super) fn decide_on(&self, node: usize, turn: u64) {
        let decided = Seniority::decided_on(node, turn);
        // Relaxed: a hint.
        self.seniority.store(decided.0, Ordering::Relaxed);
    }

    /// Notes that the announcement is about to end. Returns the state after it.
    #[inline]
    pub(super) fn note_end(&self) -> State {
        let freed = self.noted_state().freed();
        self.note_state(freed);
        freed
    }

    /// Ends the announcement, after which the state is that one. Returns the state before.
    #[inline]
    pub(super) fn end(&self, freed: State) -> State {
        // [slot-release] Release: pairs with the Acquire in `load_acquire`; [heir] and with that in `is_free`.
        let before = self
            .state
            .swap(freed.0, prim::order!("slot-release", Ordering::Release));
        debug_assert!(State(before).is_held(), "a range was released twice");
        State(before)
    }

    /// Shares what the owner holds. Returns the state before.
    pub(super) fn downgrade(&self) -> State {
        self.note_state(State(self.noted_state().0 | State::SHARED));
        // [slot-downgrade] Release: pairs with the Acquire in `load_acquire`.
        let order = prim::order!("slot-downgrade", Ordering::Release);
        State(self.state.fetch_or(State::SHARED, order))
    }

    /// Notes for the owner's release that a request sleeps behind it.
    pub(super) fn inherit_sleeper(&self) {
        // Relaxed: the owner's own release comes later.
        self.state.fetch_or(State::SLEEPER, Ordering::Relaxed);
    }
}
