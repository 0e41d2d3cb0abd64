//! The queue of a lock: the requests that sleep in it, and the requests that were woken and have not finished yet.
//!
//! A request that finds its range taken goes to sleep *behind the holder* in its way. When that holder leaves, the
//! queue *dispatches* the requests behind it, first come first. Dispatching wakes a request, unless the request
//! conflicts with a request that is already awake and not yet granted. That request would take the range, so the other
//! sleeps on *behind that request*. What becomes of the awake request decides what becomes of the requests behind it:
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
//! A sleeper that is to be woken, and would only give way to a reservation that another request gives way to already,
//! sleeps on if the other's turn ends no later than its own would. It *follows* that request: it is `Following` the
//! same reservation. When the other's turn ends it has given way, too, and is dispatched.
//!
//! A request that others could overtake while it sleeps, or that has waited too long, *reserves* its range: later
//! requests that conflict with it give way, for a turn at a time (`reservation.rs`). A request that sleeps cannot see
//! that its patience has ended. It asks for its reservation when a later one overtakes it after that. While
//! reservations pause it has to wait for it: after the pause all get theirs that have asked.
//!
//! # Invariants
//!
//! 1. A request sleeps behind a request that is awake, or gives way for a turn to an earlier request with a
//!    reservation, or follows one that does. So every chain of sleepers ends at a thread that runs, or at one that
//!    wakes when its turn ends.
//! 2. A request sleeps behind a holder only if that holder has yet to call [`Queue::holder_left`].
//! 3. An awake request's thread calls one of [`sleep`](Queue::sleep), [`granted`](Queue::granted) and
//!    [`gave_up`](Queue::gave_up) after finitely many steps of its own.
//!
//! # Edges
//!
//! - **sleep-dispatch**: a request that goes back to sleep dispatches the requests behind it.
//! - **give-up-dispatch**: a request that gives up does the same.
//! - **follow-ends**: a request that no longer gives way dispatches the requests that follow it.
//!
//! The lock's mutex guards the queue. Nothing in this file waits.

use super::awake::Awake;
use super::entry::{Entry, HolderId, RequestId, Stage};
use super::leaders::Leaders;
use super::reservation::Turn;
use super::turns::Turns;
use crate::range::inspect::{Request, WaitingRequest};
use crate::range::raw::Mode;
use crate::wait::Wakeups;
use prim::clock::{self, Duration, Instant};

/// The sleeping and the awake requests of one lock, first come first.
#[derive(Debug)]
pub(in crate::range) struct Queue {
    entries: Vec<Entry>,
    /// When the next reservation may be granted: see [`Patience::pause`](super::Patience::pause).
    paused_until: u64,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            paused_until: 0,
        }
    }

    /// How many requests have a reservation.
    pub(super) fn reservations(&self) -> u32 {
        let reserved = self.entries.iter().filter(|entry| entry.reserved.is_some());
        reserved.count() as u32
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
                .is_some_and(|shares| one.request.conflicts(&shares))
        };
        let others = self.entries.iter().filter(|other| other.id != entry.id);
        let mut others = others.filter(|other| wants_what_is_shared(entry, other));
        others.any(|other| wants_what_is_shared(other, entry))
    }

    /// The first reservation that the request `id` has to give way to.
    ///
    /// Entries are in order of arrival, so every entry is ahead of a request that is not entered yet. A reservation
    /// that waits for the request's own thread, as `waits_for_it` decides, is not in its way, nor is any later one.
    pub(super) fn reservation_ahead_of(
        &self,
        id: RequestId,
        request: &Request,
        waits_for_it: impl Fn(&Request) -> bool,
    ) -> Option<&Entry> {
        self.entries
            .iter()
            .take_while(|entry| entry.id != id)
            .filter(|entry| entry.reserved.is_some())
            // [later-bypass] No later reservation counts either.
            .take_while(|entry| !waits_for_it(&entry.request) || !prim::intact!("later-bypass"))
            .find(|entry| entry.request.conflicts(request) && !waits_for_it(&entry.request))
    }

    /// See [`Turns::under_way`].
    pub(super) fn turn(&self, request: &Request, now: Instant) -> Option<Turn<Instant>> {
        Turns::new(&self.entries).under_way(request, now)
    }

    /// Puts a request to sleep. If it is in the queue already, it was awake, and is no more. If it asks for a
    /// reservation and does not get it, the result is how long reservations pause.
    pub(super) fn sleep(&mut self, entry: Entry, wakeups: &mut Wakeups) -> Option<Duration> {
        let refused = self.enter(entry);
        // [sleep-dispatch]
        if prim::intact!("sleep-dispatch") {
            self.dispatch(wakeups, |e| e.stage == Stage::BehindRequest(entry.id));
        }
        refused
    }

    /// Enters an awake request with its reservation: newcomers give way to it from now on. If it does not get the
    /// reservation, the result is how long reservations pause.
    pub(super) fn reserve(&mut self, entry: Entry) -> Option<Duration> {
        self.enter(entry)
    }

    /// The same of a request that is in the queue, asleep or awake.
    pub(super) fn reserve_in_place(&mut self, id: RequestId, now: Instant) -> Option<Duration> {
        let at = self.position(id).expect("a request that sleeps is entered");
        self.grant_reservation(at, now)
    }

    /// The last turn in which the request gave way.
    pub(super) fn gave_way(&self, id: RequestId) -> Option<Turn<Instant>> {
        self.entries[self.position(id)?].gave_way
    }

    /// Notes that a sleeping request goes on without having been woken: it has given way for a turn, and so have those
    /// that followed it.
    pub(super) fn turn_ended(&mut self, id: RequestId, turn: Turn<Instant>, wakeups: &mut Wakeups) {
        let at = self.position(id).expect("a request that sleeps is entered");
        let was = self.entries[at].stage;
        self.entries[at].stage = Stage::Awake;
        self.entries[at].gave_way = Some(turn);
        let followers = self.entries.iter_mut().filter(|e| e.stage.follows(was));
        followers.for_each(|follower| follower.gave_way = Some(turn));
        self.dispatch_followers(was, wakeups);
    }

    /// Dispatches the requests that have followed one which is no longer at that stage.
    fn dispatch_followers(&mut self, was: Stage, wakeups: &mut Wakeups) {
        // [follow-ends] They sleep without an end of their own.
        if prim::intact!("follow-ends") {
            self.dispatch(wakeups, |entry| entry.stage.follows(was));
        }
    }

    /// Enters a request at the end of the queue, or renews it where it is. It keeps a reservation it already has.
    fn enter(&mut self, entry: Entry) -> Option<Duration> {
        let at = self.position(entry.id).unwrap_or_else(|| {
            self.entries.push(Entry {
                reserved: None,
                ..entry
            });
            self.entries.len() - 1
        });
        let known = self.entries[at];
        self.entries[at] = Entry {
            reserved: known.reserved,
            asks: known.asks,
            gave_way: known.gave_way,
            ..entry
        };
        self.grant_reservation(at, entry.reserved?)
    }

    /// Grants a reservation, and one to each request that has asked in vain; unless reservations pause: then the result
    /// is for how long.
    fn grant_reservation(&mut self, at: usize, now: Instant) -> Option<Duration> {
        if self.entries[at].reserved.is_some() {
            return None;
        }
        self.entries[at].asks = true;
        let pause = self.pauses_for();
        if !pause.is_zero() {
            return Some(pause);
        }
        for entry in &mut self.entries {
            if entry.asks {
                (entry.reserved, entry.asks) = (Some(now), false);
            }
        }
        self.pause(self.entries[at].patience.pause(Duration::MAX));
        None
    }

    /// No reservation is granted for that long.
    fn pause(&mut self, pause: Duration) {
        self.paused_until = clock::nanoseconds() + pause.as_nanos() as u64;
    }

    /// Removes a request that was granted its range. Each request that slept behind it sleeps, from now on, behind the
    /// holder that `holder_of` names. Returns whether there were any.
    pub(super) fn granted(
        &mut self,
        id: RequestId,
        mut holder_of: impl FnMut(&Request) -> HolderId,
    ) -> bool {
        self.remove(id);
        let mut any = false;
        for entry in &mut self.entries {
            if entry.stage.is_behind(id) {
                entry.stage = Stage::BehindHolder(holder_of(&entry.request));
                any = true;
            }
        }
        any
    }

    /// Removes a request that no longer wants its range.
    pub(super) fn gave_up(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        let was = self.remove(id);
        // [give-up-dispatch]
        if prim::intact!("give-up-dispatch") {
            self.dispatch(wakeups, |entry| entry.stage.is_behind(id));
        }
        if let Some(was) = was {
            self.dispatch_followers(was, wakeups);
        }
    }

    /// Dispatches the requests behind a holder that left.
    pub(in crate::range) fn holder_left(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |entry| entry.stage == Stage::BehindHolder(holder));
    }

    /// Dispatches the shared requests behind a holder that has become shared.
    pub(in crate::range) fn holder_downgraded(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |entry| {
            entry.stage == Stage::BehindHolder(holder) && entry.request.mode == Mode::Shared
        });
    }

    /// The sleeping requests, as tools show them.
    pub(in crate::range) fn waiters(&self) -> Vec<WaitingRequest> {
        self.entries
            .iter()
            .filter(|entry| entry.stage != Stage::Awake)
            .map(|entry| WaitingRequest {
                request: entry.request,
                behind: entry.behind,
            })
            .collect()
    }

    fn position(&self, id: RequestId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.id == id)
    }

    /// Removes a request, if it is in the queue. Returns where it stood.
    fn remove(&mut self, id: RequestId) -> Option<Stage> {
        let at = self.position(id)?;
        let entry = self.entries.remove(at);
        if let Some(since) = entry.reserved {
            let lasted = Instant::now().saturating_duration_since(since);
            if self.reservations() == 0 {
                self.pause(entry.patience.pause(lasted));
            }
        }
        Some(entry.stage)
    }

    /// Notes that a later request has overtaken a sleeping one, which gets its reservation if that is due.
    ///
    /// Not before: where many requests wait for the same range some always overtake others, and a reservation makes all
    /// others sleep. Then each would have to be woken for its turn, and overtake others that sleep.
    fn overtake(&mut self, at: usize) {
        let Entry { due, asks, .. } = self.entries[at];
        let now = Instant::now();
        if asks || due.is_some_and(|due| now >= due) {
            self.grant_reservation(at, now);
        }
    }

    /// The reservation that a sleeping request gives way to without being woken: one that another request gives way to
    /// already. Otherwise each would be woken to find out at its admission, one after the other.
    fn reservation_to_follow(
        &self,
        asleep: &Entry,
        leaders: &Leaders,
    ) -> Option<(RequestId, Request)> {
        // What its thread holds may be what the reservation waits for. Only the thread can tell.
        if asleep.holds {
            return None;
        }
        let first = self.reservation_ahead_of(asleep.id, &asleep.request, |_| false)?;
        let follows = leaders.may_be_followed_by(asleep, first.id);
        follows.then_some((first.id, first.request))
    }

    /// Wakes the entries that `is_meant` selects, first come first. An entry that conflicts with an awake request is
    /// put behind that request instead. A request that has to give way to a reservation follows one that does so
    /// already, if there is one. Otherwise it is woken here and finds that out at its admission.
    fn dispatch(&mut self, wakeups: &mut Wakeups, is_meant: impl Fn(&Entry) -> bool) {
        let mut awake = Awake::new(&self.entries);
        let leaders = Leaders::new(&self.entries);
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if !is_meant(&entry) {
                continue;
            }
            if let Some(other) = awake.conflicting_with(&self.entries, &entry) {
                self.entries[at].stage = Stage::BehindRequest(self.entries[other].id);
                self.entries[at].behind = self.entries[other].request;
                if other > at {
                    self.overtake(at);
                }
            } else if let Some(leaders) = &leaders
                && let Some((first, request)) = self.reservation_to_follow(&entry, leaders)
            {
                self.entries[at].stage = Stage::Following(first);
                self.entries[at].behind = request;
            } else {
                self.entries[at].stage = Stage::Awake;
                awake.add(&self.entries, at);
                wakeups.signal(entry.parker);
            }
        }
    }
}

#[cfg(test)]
mod tests;
