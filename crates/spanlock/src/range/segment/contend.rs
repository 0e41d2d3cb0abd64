//! Waiting: giving way, sleeping behind a segment, and what a request owes to others when it goes on.
//!
//! As in the list locks, whose queue this uses: a *holder* there is a segment's word here.

use super::RawSegments;
use super::acquire::{Blocked, Segments};
use super::store::Store;
use crate::local::Local;
use crate::range::inspect::Claim;
use crate::range::queue::{Queue, Request, Stage};
use crate::range::raw::{Mode, Wait};
use crate::wait::{Ticket, Wakeups};
use prim::atomic::Ordering;
use prim::clock::{Duration, Instant};
use prim::spin::{self, Spin};

/// Whether a thread is entered in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Newcomer,
    Queued,
}

/// Why a request ends without its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    NoTime,
    WaitsForItself,
}

impl Refused {
    pub(super) fn waits_for_itself(self) -> bool {
        self == Self::WaitsForItself
    }
}

/// A request that did not get its segments at once.
pub(super) struct Contender {
    local: &'static Local,
    /// What is asked for, in whole segments.
    claim: Claim,
    segments: Segments,
    wait: Wait,
    standing: Standing,
    /// Whether newcomers are to give way.
    has_claim: bool,
    /// When it first waited.
    since: Option<Instant>,
}

impl Contender {
    pub(super) fn new(local: &'static Local, claim: Claim, segments: Segments, wait: Wait) -> Self {
        Self {
            local,
            claim,
            segments,
            wait,
            standing: Standing::Newcomer,
            has_claim: false,
            since: None,
        }
    }

    fn waits(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Its entry in the queue.
    fn request(&self, stage: Stage, behind: Claim) -> Request {
        Request {
            id: self.local.parker.id(),
            claim: self.claim,
            parker: &self.local.parker,
            is_holder: self.local.holds_any(),
            has_claim: self.has_claim,
            stage,
            behind,
        }
    }
}

impl<S: Store> RawSegments<S> {
    /// Tries and waits until all segments are entered, or the request may wait no longer.
    pub(super) fn contend(
        &self,
        contender: &mut Contender,
        blocked: Option<Blocked>,
    ) -> Result<(), Refused> {
        let mut blocked = blocked;
        loop {
            if let Some(blocked) = blocked {
                self.await_segment(contender, blocked)?;
            }
            self.gate(contender)?;
            match self.attempt(contender.segments) {
                Ok(()) => return Ok(()),
                Err(again) => blocked = Some(again),
            }
        }
    }

    /// [gate] Gives way to those who have waited too long.
    fn gate(&self, contender: &mut Contender) -> Result<(), Refused> {
        if contender.standing == Standing::Queued
            || self.claims.load(Ordering::Relaxed) == 0
            // [gate-bypass] Those who have waited too long may be waiting for this thread.
            || (contender.local.holds_any() && prim::intact!("gate-bypass"))
        {
            return Ok(());
        }
        let ticket = self.with_queue(|queue, wakeups| {
            let first = queue.claim_against(&contender.claim);
            let Some(first) = first.filter(|_| prim::intact!("gate")) else {
                return Ok(None);
            };
            if contender.wait == Wait::Never {
                return Err(Refused::NoTime);
            }
            let ticket = contender.local.parker.ticket();
            let request = contender.request(Stage::BehindRequest(first.id), first.claim);
            queue.sleep(request, wakeups);
            Ok(Some(ticket))
        })?;
        match ticket {
            None => Ok(()),
            Some(ticket) => self.park(contender, ticket),
        }
    }

    /// Waits until the segment may be entered, as far as the request may wait.
    fn await_segment(&self, contender: &mut Contender, blocked: Blocked) -> Result<(), Refused> {
        if contender.wait == Wait::Never {
            return Err(Refused::NoTime);
        }
        let Blocked(segment) = blocked;
        let Segments { mode, .. } = contender.segments;
        let word = &self.store.words_from(segment)[0];
        let mut spin = Spin::new(spin::ON_HOLDER);
        while spin.round() {
            if word.state().admits(mode) {
                return self.hurry(contender);
            }
        }
        if cfg!(debug_assertions)
            && contender.wait == Wait::Forever
            && contender
                .local
                .holds_segment(self.id, contender.segments, segment)
        {
            return Err(Refused::WaitsForItself);
        }
        contender.waits();
        contender.has_claim |= self.is_claim_due(contender);
        let ticket = contender.local.parker.ticket();
        let asleep = self.with_queue(|queue, wakeups| {
            // [mark-sleeper] Marked and looked at by one read-modify-write.
            let state = word.mark_sleeper();
            if state.admits(mode) && prim::intact!("mark-sleeper") {
                return false;
            }
            let only = Segments {
                first: segment,
                last: segment,
                mode,
            };
            let held = state.held().unwrap_or(Mode::Exclusive);
            let behind = Claim::new(self.span(only), held, 0);
            queue.sleep(
                contender.request(Stage::BehindHolder(word.id()), behind),
                wakeups,
            );
            true
        });
        if asleep {
            self.park(contender, ticket)
        } else {
            self.hurry(contender)
        }
    }

    /// Goes on after a wait too short to sleep: with a claim, if that is due.
    fn hurry(&self, contender: &mut Contender) -> Result<(), Refused> {
        if let Wait::Until(deadline) = contender.wait
            && Instant::now() >= deadline
        {
            return Err(Refused::NoTime);
        }
        contender.waits();
        contender.has_claim |= self.is_claim_due(contender);
        if contender.has_claim {
            contender.standing = Standing::Queued;
            let request = contender.request(Stage::Awake, contender.claim);
            self.with_queue(|queue, _| queue.claim(request));
        }
        Ok(())
    }

    fn is_claim_due(&self, contender: &Contender) -> bool {
        let waited = contender
            .since
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.patience.is_some_and(|patience| waited >= patience)
    }

    /// Sleeps. The request is in the queue.
    fn park(&self, contender: &mut Contender, ticket: Ticket) -> Result<(), Refused> {
        contender.standing = Standing::Queued;
        contender.waits();
        let parker = &contender.local.parker;
        let deadline = contender.wait.deadline();
        if let Some(due) = self.claim_due(contender)
            && deadline.is_none_or(|deadline| due < deadline)
        {
            if parker.park(ticket, Some(due)) {
                return Ok(());
            }
            // Where it sleeps: whoever it is asleep behind by now, others are to go on waking it.
            contender.has_claim = true;
            self.with_queue(|queue, _| queue.age(parker.id()));
        }
        let signalled = parker.park(ticket, deadline);
        signalled.then_some(()).ok_or(Refused::NoTime)
    }

    /// When a sleeper is to claim its segments.
    ///
    /// [age] Readers who come and go so that there is always one inside never wake a writer.
    fn claim_due(&self, contender: &Contender) -> Option<Instant> {
        if contender.has_claim || !prim::intact!("age") {
            return None;
        }
        contender.since?.checked_add(self.patience?)
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind a segment that it holds.
    pub(super) fn arrive(&self, contender: &Contender) {
        if contender.standing == Standing::Newcomer {
            return;
        }
        self.with_queue(|queue, _| {
            queue.arrived_as(contender.local.parker.id(), |sleeper| {
                // The first segment that both ask for: they conflict, so there is one.
                let segment = self
                    .segment(sleeper.span.start())
                    .max(contender.segments.first);
                let word = &self.store.words_from(segment)[0];
                // [mark-inherited] As if the sleeper had marked it. Our own release comes later.
                if prim::intact!("mark-inherited") {
                    word.mark_sleeper();
                }
                word.id()
            });
        });
    }

    pub(super) fn give_up(&self, contender: &Contender) {
        if contender.standing == Standing::Queued {
            let id = contender.local.parker.id();
            self.with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    /// The one way to the queue: under its mutex, with the hint kept true, and wake-ups after.
    #[cold] // Somebody sleeps, or is about to.
    #[inline(never)]
    pub(super) fn with_queue<R>(&self, f: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        let result = f(&mut queue, &mut wakeups);
        let claims = queue.claims();
        // Relaxed: a hint, and written under the mutex only. Not written in vain: all acquisitions read its line.
        if self.claims.load(Ordering::Relaxed) != claims {
            self.claims.store(claims, Ordering::Relaxed);
        }
        drop(queue);
        wakeups.deliver();
        result
    }
}
