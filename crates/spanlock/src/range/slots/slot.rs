//! Slots: where threads announce their requests.
//!
//! ```text
//!   line 0, which others read:    state | first and last position | seniority | thread | line of code
//!   line 2, the owner's:          owner | its other slots | the state that it has made last | policy
//! ```
//!
//! Lines 1 and 3 are empty. Processors fetch lines in pairs: whoever looked at line 0 would take line 1 from the owner.
//!
//! A *grant* is what a thread may take again without a look at other slots: the range that was announced, in the mode
//! in which it was announced. What is *held* lies within the grant.

use super::blocker::SlotBlocker;
use super::enter::Entry;
use super::owner::OwnerLine;
use super::state::{Audience, Extent, Seniority, State};
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::range::span::Span;
use prim::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use prim::debug;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// What a look at a slot found, given a request and the grant that it is to leave behind.
pub(super) enum Look {
    /// Nothing is in the way.
    Clear,
    /// The request may be granted, but not all of the grant.
    RulesOutGrant,
    /// What is held is in the way.
    Held(State),
    /// The state has changed meanwhile.
    Changed,
}

/// Where a thread announces one request.
#[repr(C, align(128))] // A pair of cache lines. No other slot has a part of it.
pub(crate) struct Slot {
    pub(super) state: AtomicU64,
    /// The range of the grant.
    start: AtomicU64,
    last: AtomicU64,
    /// What is held, if that is only a part.
    held_start: AtomicU64,
    held_last: AtomicU64,
    seniority: AtomicU64,
    thread: AtomicU32,
    /// The slot's number in its lock. Never changes.
    number: u32,
    /// The line that asked for the range. Kept in debug builds.
    at: AtomicPtr<Location<'static>>,
    pub(super) owner: OwnerLine,
}

// SAFETY: all that others access is atomic. The cells are used by the thread whose record is the owner, and by the next
// thread with that record, which `prim::thread` orders after it.
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
            thread: AtomicU32::new(0),
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

    #[inline]
    pub(super) fn load(&self, order: Ordering) -> State {
        State(self.state.load(order))
    }

    /// Whether its owner may announce a request here.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        // [heir] Acquire: pairs with the Release in `leave` and `keep`. The last release here may be that of a thread
        // that has exited, and had this thread's record before. What it has noted on the owner's line comes before.
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
        // [rewrite] Release: pairs with the Acquire in `grant_overlaps`.
        let rewrite = || prim::order!("rewrite", Ordering::Release);
        self.start.store(grant.start(), rewrite());
        self.last.store(grant.last(), rewrite());
        if extent == Extent::Part {
            self.set_part(span);
        }
        // Relaxed: hints and diagnostics.
        self.seniority.store(entry.seniority.0, Ordering::Relaxed);
        self.thread
            .store(entry.request.owner.number(), Ordering::Relaxed);
        self.note(entry.at);
        if audience == Audience::Bucket && before.is_private() {
            // A compare-exchange and the fence of the handshake follow. Release is for listings.
            self.state.store(state.0, Ordering::Release);
            return before;
        }
        // Release is for listings. The handshake needs the fence that follows. A swap, because on x86 it is the fence.
        let swapped = State(self.state.swap(state.0, Ordering::AcqRel));
        // [counted-again] Only the operation that announces shows whether the slot was counted until then.
        if prim::intact!("counted-again") {
            swapped
        } else {
            before
        }
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

    #[inline]
    fn note(&self, at: &'static Location<'static>) {
        if debug::CHECKS {
            let at = ptr::from_ref(at).cast_mut();
            self.at.store(at, Ordering::Relaxed);
        }
    }

    #[inline]
    fn set_part(&self, span: Span) {
        // [rewrite] Release: pairs with the Acquire in `grant_overlaps`.
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
        // [slot-release] Release: pairs with the Acquire in `look`; [heir] and with that in `is_free`.
        let release = prim::order!("slot-release", Ordering::Release);
        let keep = |held: u64| {
            self.state
                .compare_exchange(held, kept.0, release, Ordering::Relaxed)
        };
        // [grant-contended] It fails if there is a mark.
        keep(held.0).is_ok()
            || !prim::intact!("grant-contended") && keep(held.0 | State::CONTENDED).is_ok()
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

    /// Ends the announcement. Returns the state before.
    #[inline]
    pub(super) fn leave(&self) -> State {
        let freed = self.noted_state().freed();
        self.note_state(freed);
        // [slot-release] Release: pairs with the Acquire in `look`; [heir] and with that in `is_free`.
        let before = self
            .state
            .swap(freed.0, prim::order!("slot-release", Ordering::Release));
        debug_assert!(State(before).is_held(), "a range was released twice");
        State(before)
    }

    /// Shares what the owner holds. Returns the state before.
    pub(super) fn downgrade(&self) -> State {
        self.note_state(State(self.noted_state().0 | State::SHARED));
        // [slot-downgrade] Release: pairs with the Acquire in `look`.
        let order = prim::order!("slot-downgrade", Ordering::Release);
        State(self.state.fetch_or(State::SHARED, order))
    }

    /// Notes for the owner's release that a request sleeps behind it.
    pub(super) fn inherit_sleeper(&self) {
        // Relaxed: the owner's own release comes later.
        self.state.fetch_or(State::SLEEPER, Ordering::Relaxed);
    }

    /// Whether a range overlaps the grant; it may be a mixture with one that is about to be announced.
    #[inline]
    fn grant_overlaps(&self, span: Span) -> bool {
        // [rewrite] Acquire: if a word is newer than the state that was seen, the thread comes after the release of
        // what that state stood for.
        let acquire = || prim::order!("rewrite", Ordering::Acquire);
        self.start.load(acquire()) <= span.last() && span.start() <= self.last.load(acquire())
    }

    /// The first and last position of what is held.
    #[inline]
    fn bounds(&self, state: State) -> (u64, u64) {
        // [rewrite] Acquire, as in `grant_overlaps`.
        let acquire = || prim::order!("rewrite", Ordering::Acquire);
        if state.0 & State::PART != 0 {
            (
                self.held_start.load(acquire()),
                self.held_last.load(acquire()),
            )
        } else {
            (self.start.load(acquire()), self.last.load(acquire()))
        }
    }

    /// Whether what is held is in the way of a request.
    #[inline]
    fn hold_conflicts(&self, state: State, request: &Request) -> bool {
        let (start, last) = self.bounds(state);
        state.mode().conflicts(request.mode)
            && start <= request.span.last()
            && request.span.start() <= last
    }

    /// What is announced here, if it is in the way of a request.
    #[inline]
    pub(super) fn blocks(&self, request: &Request) -> Option<SlotBlocker<'_>> {
        // Acquire, to read the range that belongs to it. Nothing is granted by it.
        let state = self.load(Ordering::Acquire);
        let is_in_the_way = state.is_held() && self.hold_conflicts(state, request);
        is_in_the_way.then(|| SlotBlocker::new(self, state))
    }

    /// The state, for a request of another slot.
    #[inline]
    pub(super) fn see(&self) -> State {
        // [slot-acquire] Acquire: what the holder did before [slot-release] or [slot-downgrade].
        self.load(prim::order!("slot-acquire", Ordering::Acquire))
    }

    /// Looks at the slot, which was seen in that state, on behalf of a request of another slot, which is announced with
    /// `grant`. Revokes a grant that is kept and in the way of the request; marks one that is in use and whose other
    /// parts are.
    #[inline]
    pub(super) fn look(&self, state: State, request: &Request, grant: Span) -> Look {
        if !state.concerns(request.mode) {
            return Look::Clear;
        }
        if !self.grant_overlaps(request.span) {
            // [grant-whole] The grant of the request would overlap this one.
            return if grant != request.span
                && self.grant_overlaps(grant)
                && prim::intact!("grant-whole")
            {
                Look::RulesOutGrant
            } else {
                Look::Clear
            };
        }
        // [slot-validation]
        if state.is_held()
            && self.hold_conflicts(state, request)
            && prim::intact!("slot-validation")
        {
            return Look::Held(state);
        }
        let now = if state.is_held() {
            // [grant-contended] The holder may not take the grant again after its release.
            State(state.0 | State::CONTENDED)
        } else if prim::intact!("grant-revoke") {
            // [grant-revoke] The owner may not take it again.
            state.freed()
        } else {
            return Look::Clear;
        };
        // Relaxed: the owner's own operations on the word decide, and the look has acquired.
        let relaxed = Ordering::Relaxed;
        let changed = now != state
            && self
                .state
                .compare_exchange(state.0, now.0, relaxed, relaxed)
                .is_err();
        match changed {
            true => Look::Changed,
            false if grant != request.span => Look::RulesOutGrant,
            false => Look::Clear,
        }
    }

    /// The request that the slot announces.
    pub(super) fn request(&self, state: State) -> Request {
        let (start, last) = self.bounds(state);
        // A mixture may be reversed.
        let span = Span::of(start..=last.max(start)).expect("it has positions");
        Request::new(span, state.mode(), self.thread())
    }

    /// The request announced, unless it is undecided.
    pub(super) fn holder(&self) -> Option<Request> {
        let state = self.load(Ordering::Acquire);
        let request = self.request(state);
        let is_same = self.load(Ordering::Relaxed).number() == state.number();
        (state.is_held() && is_same && !self.is_undecided()).then_some(request)
    }

    pub(super) fn thread(&self) -> u32 {
        self.thread.load(Ordering::Relaxed)
    }

    /// The line that asked for the range, in debug builds.
    pub(super) fn at(&self) -> &'static Location<'static> {
        let at = NonNull::new(self.at.load(Ordering::Relaxed));
        // SAFETY: each location that is stored lives as long as the program.
        at.map_or(Location::caller(), |at| unsafe { at.as_ref() })
    }

    /// Whether the request announced is undecided, and junior to another one.
    #[inline]
    pub(super) fn is_junior_to(&self, seniority: Seniority, number: u32) -> bool {
        let mine = self.seniority();
        !mine.is_decided() && (seniority, number) < (mine, self.number)
    }

    #[inline]
    pub(super) fn seniority(&self) -> Seniority {
        // Relaxed: a hint.
        Seniority(self.seniority.load(Ordering::Relaxed))
    }

    pub(super) fn is_undecided(&self) -> bool {
        !self.seniority().is_decided()
    }
}
