//! How others look at a slot, and what they do there. The edges cited are the parent module's.

use super::request::Seniority;
use super::slot::Slot;
use super::state::State;
use crate::range::id::OwnerId;
use crate::range::inspect::Request;
use crate::range::list::Blocker as NodeBlocker;
use crate::range::mode::Mode;
use crate::range::span::Span;
use prim::atomic::Ordering;
use prim::spin::{self, Spin};
use std::panic::Location;
use std::ptr::NonNull;

/// What a look at a slot found, given a request and the grant that it is to leave behind.
pub(super) enum Look {
    /// The slot is not in the way.
    Clear,
    /// The request may be granted, but not all of the grant.
    RulesOutGrant,
    /// What is held is in the way.
    Held(State),
}

impl Slot {
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
    pub(super) fn load_acquire(&self) -> State {
        // [slot-acquire] Acquire: what the holder did before [slot-release] or [slot-downgrade].
        self.load(prim::order!("slot-acquire", Ordering::Acquire))
    }

    /// Looks at the slot on behalf of a request of another slot, which is announced with `grant`. Revokes a grant that
    /// is kept and in the way of the request; marks one that is in use and whose other parts are. If its owner does
    /// something else meanwhile, it looks again.
    #[inline]
    pub(super) fn look(&self, request: &Request, grant: Span) -> Look {
        let is_larger = grant != request.span;
        loop {
            let state = self.load_acquire();
            if !state.concerns(request.mode) {
                return Look::Clear;
            }
            if !self.grant_overlaps(request.span) {
                // [grant-whole] The grant of the request would overlap this one.
                let rules_out = is_larger && self.grant_overlaps(grant);
                return match rules_out && prim::intact!("grant-whole") {
                    true => Look::RulesOutGrant,
                    false => Look::Clear,
                };
            }
            // [slot-validation]
            let is_in_the_way = state.is_held() && self.hold_conflicts(state, request);
            if is_in_the_way && prim::intact!("slot-validation") {
                return Look::Held(state);
            }
            let now = match state.is_held() {
                // [grant-contended] The holder may not take the grant again after its release.
                true if prim::intact!("grant-contended") => State(state.0 | State::CONTENDED),
                // [grant-revoke] The owner may not take it again.
                false if prim::intact!("grant-revoke") => state.freed(),
                _ => state,
            };
            // Relaxed: the owner's own operations on the word decide, and the look has acquired.
            let relaxed = Ordering::Relaxed;
            let change = || {
                self.state
                    .compare_exchange(state.0, now.0, relaxed, relaxed)
            };
            if now == state || change().is_ok() {
                return match is_larger {
                    true => Look::RulesOutGrant,
                    false => Look::Clear,
                };
            }
        }
    }

    /// The request that the slot announces.
    pub(super) fn request(&self, state: State) -> Request {
        let (start, last) = self.bounds(state);
        // A mixture may be reversed.
        let span = Span::of(start..=last.max(start)).expect("it has positions");
        Request::new(span, state.mode(), self.asked_by())
    }

    /// The request announced, unless it is undecided.
    pub(super) fn holder(&self) -> Option<Request> {
        let state = self.load(Ordering::Acquire);
        let request = self.request(state);
        let is_same = self.load(Ordering::Relaxed).number() == state.number();
        (state.is_held() && is_same && !self.is_undecided()).then_some(request)
    }

    /// Who has asked for what was announced last.
    pub(super) fn asked_by(&self) -> OwnerId {
        OwnerId::of_number(self.asked_by.load(Ordering::Relaxed))
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
        !mine.is_decided() && (seniority, number) < (mine, self.number())
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

/// A request announced in the way of another.
#[derive(Clone, Copy)]
pub(super) struct SlotBlocker<'a> {
    pub(super) slot: &'a Slot,
    pub(super) state: State,
    /// Whether it was undecided.
    pub(super) is_rival: bool,
    /// Whether the request has waited for it in place, in vain.
    pub(super) outlasts_us: bool,
}

impl<'a> SlotBlocker<'a> {
    #[inline]
    pub(super) fn new(slot: &'a Slot, state: State) -> Self {
        Self {
            slot,
            state,
            is_rival: slot.is_undecided(),
            outlasts_us: false,
        }
    }

    /// Whether it is a rival in the way that has become a holder.
    pub(super) fn is_decided(&self) -> bool {
        self.is_rival && !self.slot.is_undecided()
    }

    /// Makes the holder give up its grant when it releases its range, so that it announces its next request.
    pub(super) fn contend(&self) {
        let marked = self.state.0 | State::CONTENDED;
        if marked == self.state.0 {
            return;
        }
        // Relaxed, as the mark in `look`. If the state has changed, the request looks at the slot again after its wait.
        let relaxed = Ordering::Relaxed;
        let _ = self
            .slot
            .state
            .compare_exchange(self.state.0, marked, relaxed, relaxed);
    }

    /// Whether it is still in the way of a request in that mode.
    pub(super) fn is_in_the_way(&self, mode: Mode) -> bool {
        // Relaxed: the next scan acquires.
        self.slot
            .load(Ordering::Relaxed)
            .still_blocks(self.state, mode)
    }

    /// Waits a little until it is decided whether it stays. Returns whether it has left.
    pub(super) fn await_decision(&self, mode: Mode) -> bool {
        let mut spin = Spin::new(spin::ON_DECISION);
        while self.is_in_the_way(mode) && self.slot.is_undecided() && spin.round() {}
        !self.is_in_the_way(mode)
    }

    /// Marks that a request in that mode sleeps behind it. Returns the state, unless it is no longer in the way.
    pub(super) fn mark(&self, mode: Mode) -> Option<State> {
        let slot = self.slot;
        let mut state = slot.load(Ordering::Relaxed);
        loop {
            // [slot-sleeper] The same operation marks the state and sees whether the announcement has ended. Relaxed:
            // both sides change this one word, and the queue's mutex orders the entry.
            if !state.still_blocks(self.state, mode) && prim::intact!("slot-sleeper") {
                return None;
            }
            let marked = state.0 | State::SLEEPER;
            let relaxed = Ordering::Relaxed;
            match slot
                .state
                .compare_exchange(state.0, marked, relaxed, relaxed)
            {
                Ok(_) => return Some(State(marked)),
                Err(now) => state = State(now),
            }
        }
    }
}

/// What is in the way of a request.
pub(super) enum Blocker<'a> {
    Node(NodeBlocker),
    Slot(SlotBlocker<'a>),
}
