//! Waiting, as far as it is the segments' own: how a word is looked at and marked, and what an arrival inherits.
//!
//! The queue's *holder* is a segment's word here.

use super::RawSegments;
use super::acquire::{Blocked, Segments};
use super::store::Store;
use crate::local::Local;
use crate::range::inspect::Claim;
use crate::range::raw::{Mode, Wait};
use crate::range::waiting::{Contender, Refused};
use prim::spin::{self, Spin};

impl<S: Store> RawSegments<S> {
    /// Tries and waits until all segments are entered, or the request may wait no longer.
    pub(super) fn contend(
        &self,
        contender: &mut Contender,
        segments: Segments,
        blocked: Option<Blocked>,
    ) -> Result<(), Refused> {
        let mut blocked = blocked;
        loop {
            if let Some(blocked) = blocked {
                self.await_segment(contender, segments, blocked)?;
            }
            let local = contender.local();
            self.room.gate(contender, || self.held_by(local))?;
            match self.attempt(segments) {
                Ok(()) => return Ok(()),
                Err(again) => blocked = Some(again),
            }
        }
    }

    /// What the thread holds in this lock. (What it holds by guards of a thread-local that is being destroyed may be
    /// missing.)
    fn held_by(&self, local: &Local) -> Vec<Claim> {
        local.segments_of(self.id, |held| {
            Claim::new(self.span(held), held.mode, local.thread())
        })
    }

    /// Waits until the segment may be entered, as far as the request may wait.
    fn await_segment(
        &self,
        contender: &mut Contender,
        segments: Segments,
        blocked: Blocked,
    ) -> Result<(), Refused> {
        if contender.wait() == Wait::Never {
            return Err(Refused::NoTime);
        }
        let Blocked(segment) = blocked;
        let mode = segments.mode;
        let word = &self.store.words_from(segment)[0];
        let mut spin = Spin::new(spin::ON_HOLDER);
        while spin.round() {
            if word.state().admits(mode) {
                return self.room.hurry(contender);
            }
        }
        if cfg!(debug_assertions)
            && contender.wait() == Wait::Forever
            && contender.local().holds_segment(self.id, segments, segment)
        {
            return Err(Refused::WaitsForItself);
        }
        let ticket = self.room.enter(contender, || {
            // [mark-sleeper] Marked and looked at by one read-modify-write.
            let state = word.mark_sleeper();
            if state.admits(mode) && prim::intact!("mark-sleeper") {
                return None;
            }
            let only = Segments {
                first: segment,
                last: segment,
                mode,
            };
            let held = state.held().unwrap_or(Mode::Exclusive);
            Some((word.id(), Claim::new(self.span(only), held, 0)))
        });
        self.room.rest(contender, ticket)
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind a segment that it holds.
    pub(super) fn arrive(&self, contender: &Contender, segments: Segments) {
        self.room.arrive(contender, |sleeper| {
            // The first segment that both ask for: they conflict, so there is one.
            let segment = self.segment(sleeper.span.start()).max(segments.first);
            let word = &self.store.words_from(segment)[0];
            // [mark-inherited] As if the sleeper had marked it. Our own release comes later.
            if prim::intact!("mark-inherited") {
                word.mark_sleeper();
            }
            word.id()
        });
    }
}
