//! The queue of a lock: the requests that sleep in it, and the requests that were woken and have not finished yet.
//!
//! A request that finds its range taken goes to sleep *behind the holder* in its way. When that holder leaves, the
//! queue *dispatches* the requests behind it, first come first. Dispatching wakes a request, unless the request
//! conflicts with a request that is already awake and not yet granted. That request would take the range, so the other
//! sleeps on *behind that request*; but for one, which is woken as well, so that two are there when the range is free
//! next, and not all depend on one thread that may not run yet. What becomes of the awake request decides what becomes
//! of the requests behind it:
//!
//! - It is granted its range: the requests behind it are now behind a holder.
//! - It goes back to sleep, or gives up: the requests behind it are dispatched again.
//!
//! ```text
//!                register              holder left, no awake request conflicts
//!   (newcomer) ----------> BehindHolder ----------------------------------> Awake ---> (granted: a holder)
//!       |                    ^      |                                       ^  |  |
//!       |        the other   |      | holder left,                          |  |  +--> BehindHolder, if the range
//!       |        is granted  |      | an awake request conflicts            |  |       is taken again
//!       |                    |      v                                       |  |
//!       |                  BehindRequest -----------------------------------+  +-----> (gave up: removed)
//!       |                             the other sleeps again or gives up    |
//!       | admission                                                         |
//!       +----------------> GivingWay ---------------------------------------+
//!                            the other gives up, or the turn ends
//!                            (the other is granted: BehindHolder)
//! ```
//!
//! A request that others could overtake while it sleeps, or that has waited too long, *reserves* its range: later
//! requests that conflict with it give way, for a turn at a time (`reservation.rs`). A request that sleeps cannot see
//! that its patience has ended. It asks for its reservation when a later one overtakes it after that. While
//! reservations pause, none is made. After the pause, each request that has asked gets its own.
//!
//! Requests that want the same range in the same mode, and sleep behind the same, stand in a *line* (`lines.rs`). What
//! is in the way of one of them is in the way of all, so a dispatch moves a line as a whole, whatever its length. The
//! first in a line is its head, and reserves for it.
//!
//! # Invariants
//!
//! 1. A request sleeps behind a request that is awake, or gives way for a turn to an earlier request with a
//!    reservation. So every chain of sleepers ends at a thread that runs, or at one that wakes when its turn ends.
//! 2. A request sleeps behind a holder only if that holder has yet to call [`Queue::holders_left`].
//! 3. An awake request's thread calls one of [`sleep`](Queue::sleep), [`granted`](Queue::granted) and
//!    [`gave_up`](Queue::gave_up) after finitely many steps of its own. An awake request of a task does so, or its turn
//!    ends (`tasks.rs`), if another request is behind it or gives way to it.
//!
//! # Edges
//!
//! - **sleep-dispatch**: a request that goes back to sleep dispatches the requests behind it.
//! - **give-up-dispatch**: a request that gives up dispatches the requests behind it.
//!
//! The lock's mutex guards the queue. Nothing in this file waits.

mod dispatch;

use super::entry::{Entry, HolderId, RequestId, Stage};
use super::lines::{Behind, LineId};
use super::requests::QueuedRequests;
use super::reservation::{Gives, turn_at};
use super::watched::{Known, Watching};
use crate::deadlock::Detection;
use crate::range::inspect::{Request, WaitingRequest};
use crate::range::order::QueueOrder;
use crate::range::sought::Sought;
use crate::wait::{Alarm, Wakeups};
use prim::clock::{self, Duration, Instant};
use std::collections::BTreeMap;
use std::task::Waker;

/// What a request sleeps behind.
#[derive(Debug, Clone, Copy)]
pub(in crate::range) enum WaitsFor<'a> {
    Holder(HolderId),
    Request(&'a Request),
}

/// The sleeping and the awake requests of one lock, first come first.
#[derive(Debug)]
pub(in crate::range) struct Queue {
    pub(super) places: QueuedRequests,
    /// The wakers of the tasks that sleep.
    pub(super) wakers: BTreeMap<RequestId, Waker>,
    /// What keeps the ranges of tasks, in a lock over keys.
    pub(super) ranges: BTreeMap<RequestId, Box<[Option<Sought>; 2]>>,
    /// How many names were given out.
    named: RequestId,
    /// When the queue is called next, to end turns of tasks.
    pub(super) alarm: Alarm,
    /// So many more than can be granted their ranges does a dispatch wake.
    spare: usize,
    /// When the next reservation may be granted: see [`Patience::pause`](super::Patience::pause).
    paused_until: u64,
    pub(super) watching: Watching,
    /// How many requests a dispatch has looked at.
    #[cfg(test)]
    pub(super) looks: usize,
}

impl Queue {
    pub(super) const fn new(order: QueueOrder, detection: Option<Detection>) -> Self {
        Self {
            places: QueuedRequests::new(order),
            wakers: BTreeMap::new(),
            ranges: BTreeMap::new(),
            named: 0,
            alarm: Alarm::none(),
            spare: dispatch::SPARE,
            paused_until: 0,
            watching: Watching::new(detection),
            #[cfg(test)]
            looks: 0,
        }
    }

    /// How many lines there are.
    #[cfg(test)]
    pub(in crate::range) fn lines(&self) -> usize {
        self.places.lines.len()
    }

    /// How ranges compare in the lock.
    pub(super) fn order(&self) -> &QueueOrder {
        &self.places.order
    }

    /// The name of a request that is about to be entered.
    pub(super) fn new_id(&mut self) -> RequestId {
        self.named += 1;
        self.named
    }

    /// How many requests have a reservation.
    pub(super) fn reservations(&self) -> u32 {
        u32::try_from(self.places.reservations()).unwrap_or(u32::MAX)
    }

    /// How long no reservation is granted from now on.
    fn pauses_for(&self) -> Duration {
        Duration::from_nanos(self.paused_until.saturating_sub(clock::nanoseconds()))
    }

    /// Whether a request of an owner, which shares a range and wants to have some of it alone, would wait for another
    /// such request that waits for it: each wants what the other shares.
    ///
    /// More than two that wait in a circle need not be looked for. Their ranges are intervals, so two of them meet each
    /// other: one that reaches from its own wish to another's has a part of all that is between.
    pub(super) fn would_wait_for_each_other(&self, entry: &Entry) -> bool {
        let wants_what_is_shared = |one: &Entry, other: &Entry| {
            other
                .shares
                .is_some_and(|shares| self.order().conflict(&one.request, &shares))
        };
        let others = self.places.upgrades().filter(|other| other.id != entry.id);
        let mut others = others.filter(|other| wants_what_is_shared(entry, other));
        others.any(|other| wants_what_is_shared(other, entry))
    }

    /// The first reservation that the request `id` has to give way to, and until when.
    ///
    /// Entries are in order of arrival, so every entry is ahead of a request that is not entered yet and has no name. A
    /// reservation that waits for the request's own thread, as `waits_for_it` decides, is not in its way, nor is any
    /// later one.
    pub(super) fn reservation_ahead_of(
        &self,
        id: Option<RequestId>,
        request: &Request,
        now: Instant,
        waits_for_it: impl Fn(&Request) -> bool,
    ) -> Option<(&Entry, Instant)> {
        let known = id.and_then(|id| self.places.get(id));
        if known.is_some_and(|known| known.has_given_way) {
            return None;
        }
        self.places
            .reserved()
            .take_while(|entry| id.is_none_or(|id| entry.id < id))
            // [later-bypass] No later reservation counts either.
            .take_while(|entry| !waits_for_it(&entry.request) || !prim::intact!("later-bypass"))
            .filter(|entry| {
                self.order().conflict(&entry.request, request) && !waits_for_it(&entry.request)
            })
            .find_map(|entry| {
                let since = entry.reserved?;
                let (gives, age) = turn_at(now.saturating_duration_since(since))?;
                let gives_way = id.is_none() || gives == Gives::Everybody;
                Some((entry, since.checked_add(age)?)).filter(|_| gives_way)
            })
    }

    /// Puts a request to sleep. If it is in the queue already, it was awake, and is no more. If it asks for a
    /// reservation and does not get it, the result is how long reservations pause.
    pub(super) fn sleep(&mut self, entry: Entry, wakeups: &mut Wakeups) -> Option<Duration> {
        let refused = self.enter(entry);
        // [sleep-dispatch]
        if prim::intact!("sleep-dispatch") {
            self.dispatch_behind([Behind::Request(entry.id)], None, wakeups);
        }
        refused
    }

    /// Enters an awake request with its reservation: newcomers give way to it from now on. If it does not get the
    /// reservation, the result is how long reservations pause.
    pub(super) fn reserve(&mut self, entry: Entry) -> Option<Duration> {
        self.enter(entry)
    }

    /// Reserves for a request that is in the queue, asleep or awake. The result is as of [`reserve`](Self::reserve).
    pub(super) fn reserve_in_place(&mut self, id: RequestId, now: Instant) -> Option<Duration> {
        self.grant_reservation(id, now)
    }

    /// A sleeping request goes on: it has given way for a turn.
    pub(super) fn turn_ended(&mut self, id: RequestId) {
        let request = self.places.of(id).request;
        self.detach(id, Stage::Awake, request);
        self.places.change(id, |entry| entry.has_given_way = true);
    }

    /// Enters a request at the end of the queue, or renews it where it is. It keeps a reservation it already has.
    fn enter(&mut self, entry: Entry) -> Option<Duration> {
        let id = entry.id;
        let known = self.places.get(id).copied();
        let next = self.next_in_line(id);
        self.places.put(Entry {
            reserved: known.and_then(|known| known.reserved),
            asks: known.is_some_and(|known| known.asks),
            has_given_way: !entry.stage.is_asleep()
                && known.is_some_and(|known| known.has_given_way),
            wants: entry.reserved.is_some(),
            // If it stays awake, others may wait for it.
            turn_ends: known
                .filter(|_| entry.stage == Stage::Awake)
                .and_then(|known| known.turn_ends),
            ..entry
        });
        self.promote(next, known.and_then(|known| known.reserved));
        if let Stage::BehindHolder(holder) = entry.stage
            && let Some(line) = self.same_line(Behind::Request(id), &entry)
        {
            // They would wake to find the same holder in their way.
            let holder = Behind::Holder(holder);
            self.places.move_line(line, holder, entry.behind);
        }
        let now = entry.reserved?;
        if self.places.is_in_line(id) {
            // Who would give way to it gives way to the head of its line.
            return None;
        }
        self.grant_reservation(id, now)
    }

    /// The line of those who want what the entry wants, behind that.
    fn same_line(&self, behind: Behind, entry: &Entry) -> Option<LineId> {
        self.places.lines.same(self.order(), behind, entry)
    }

    /// Grants a reservation, and one to each request that has asked in vain; unless reservations pause: then the result
    /// is for how long.
    fn grant_reservation(&mut self, id: RequestId, now: Instant) -> Option<Duration> {
        let entry = *self.places.of(id);
        if entry.reserved.is_some() {
            return None;
        }
        self.places.change(id, |entry| entry.asks = true);
        let pause = self.pauses_for();
        if !pause.is_zero() {
            return Some(pause);
        }
        for id in self.places.asking() {
            self.reserve_since(id, now);
        }
        self.pause(entry.patience.pause(Duration::MAX));
        None
    }

    fn reserve_since(&mut self, id: RequestId, since: Instant) {
        self.places.change(id, |entry| {
            (entry.reserved, entry.asks) = (Some(since), false);
        });
        self.limit_turn(id);
    }

    /// No reservation is granted for that long.
    fn pause(&mut self, pause: Duration) {
        self.paused_until = clock::nanoseconds() + pause.as_nanos() as u64;
    }

    /// Removes a request that was granted its range. Each request that slept behind it sleeps, from now on, behind the
    /// holder that `holder_of` names.
    pub(super) fn granted(
        &mut self,
        id: RequestId,
        wakeups: &mut Wakeups,
        mut holder_of: impl FnMut(&Request) -> HolderId,
    ) {
        let known = |entry: &Entry| self.known(entry.request.span, Some(entry.origin.at));
        let known = self.places.get(id).map_or_else(Known::default, known);
        self.remove(id, wakeups);
        let lines = self.places.lines.behind(Behind::Request(id));
        let ways = self.places.giving_way_to(id);
        for &line in &lines {
            // They all want the same.
            let Some(head) = self.places.lines.head(line) else {
                continue;
            };
            let holder = holder_of(&self.places.of(head).request);
            self.watching.note(holder, known);
            let blocker = self.places.lines.blocker(line);
            self.places.move_line(line, Behind::Holder(holder), blocker);
        }
        for &way in &ways {
            let entry = self.places.of(way);
            let (holder, blocker) = (holder_of(&entry.request), entry.behind);
            self.watching.note(holder, known);
            self.places
                .move_to(way, Stage::BehindHolder(holder), blocker);
        }
    }

    /// Removes a request that no longer wants its range.
    pub(super) fn gave_up(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        self.remove(id, wakeups);
        // [give-up-dispatch]
        if prim::intact!("give-up-dispatch") {
            self.dispatch_waiting_for(id, wakeups);
        }
    }

    /// The sleeping requests, as tools show them.
    pub(in crate::range) fn waiters(&self) -> Vec<WaitingRequest> {
        self.places
            .all()
            .filter(|entry| entry.stage.is_asleep())
            .map(|entry| WaitingRequest {
                request: entry.request,
                behind: self.blocker(entry),
            })
            .collect()
    }

    /// What a request sleeps behind.
    pub(super) fn blocker(&self, entry: &Entry) -> Request {
        match entry.line {
            Some(line) => self.places.lines.blocker(line),
            None => entry.behind,
        }
    }

    /// Calls `visit` with each request that sleeps, and with what it sleeps behind.
    pub(in crate::range) fn each_waiter(&self, mut visit: impl FnMut(&Request, WaitsFor<'_>)) {
        for entry in self.places.all() {
            let other = match self.places.stage(entry.id) {
                Stage::Awake | Stage::Idle => continue,
                Stage::BehindHolder(holder) => {
                    visit(&entry.request, WaitsFor::Holder(holder));
                    continue;
                }
                Stage::BehindRequest(other) | Stage::GivingWay(other, _) => self.places.of(other),
            };
            visit(&entry.request, WaitsFor::Request(&other.request));
        }
    }

    /// Removes a request, if it is in the queue.
    pub(super) fn remove(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        let Some(entry) = self.places.get(id) else {
            return;
        };
        let since = entry.reserved;
        let next = self.next_in_line(id);
        self.promote(next, since);
        self.end_reservation(id);
        wakeups.discard(self.wakers.remove(&id));
        self.watching.removed(id);
        self.places.take(id);
        // The future has them as well, or they are numbers: no foreign code runs here.
        self.ranges.remove(&id);
    }

    /// The request has no reservation any more.
    pub(super) fn end_reservation(&mut self, id: RequestId) {
        let Entry {
            reserved, patience, ..
        } = *self.places.of(id);
        if let Some(since) = reserved {
            self.places.change(id, |entry| entry.reserved = None);
            let lasted = Instant::now().saturating_duration_since(since);
            if self.reservations() == 0 {
                self.pause(patience.pause(lasted));
            }
        }
    }

    /// Moves a request, out of its line if it is in one.
    pub(super) fn detach(&mut self, id: RequestId, stage: Stage, behind: Request) {
        let next = self.next_in_line(id);
        self.places.move_to(id, stage, behind);
        self.promote(next, self.places.of(id).reserved);
    }

    /// Who is the head of a line if that one leaves it.
    fn next_in_line(&self, id: RequestId) -> Option<RequestId> {
        let line = self.places.get(id)?.line?;
        let mut members = self.places.lines.members(line);
        (members.next() == Some(id)).then(|| members.next())?
    }

    /// A request is the head of its line, and reserves for it if it wants to: as the one before, which had its
    /// reservation since then.
    fn promote(&mut self, next: Option<RequestId>, since: Option<Instant>) {
        let Some(id) = next else {
            return;
        };
        let Entry {
            wants, reserved, ..
        } = *self.places.of(id);
        if wants && reserved.is_none() {
            match since {
                Some(since) => self.reserve_since(id, since),
                None => _ = self.grant_reservation(id, Instant::now()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
