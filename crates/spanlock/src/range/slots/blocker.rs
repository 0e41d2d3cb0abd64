//! What is in the way of a request: an announcement in another slot. The edges cited are the parent module's.

use super::slot::Slot;
use super::state::State;
use crate::range::raw::Mode;
use prim::atomic::Ordering;
use prim::spin::{self, Spin};

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

    /// Whether it is a reader that no writer in place has asked to leave.
    pub(super) fn is_unasked_reader(&self) -> bool {
        let asked = self.state.0 & State::CONTENDED != 0;
        !self.is_rival && !asked && self.state.mode() == Mode::Shared
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
