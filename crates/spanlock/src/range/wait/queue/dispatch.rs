//! Dispatching: who of the sleeping requests goes on when a holder left, or when an awake request gave up or sleeps
//! again.

use super::Queue;
use crate::range::inspect::Request;
use crate::range::raw::Mode;
use crate::range::wait::entry::{Entry, HolderId, RequestId, Sleeper, Stage};
use crate::range::wait::leaders::Leaders;
use crate::range::wait::lines::{Behind, LineId};
use crate::wait::{WakerId, Wakeups};
use prim::clock::Instant;

/// Whom a dispatch is about.
#[derive(Clone, Copy)]
enum Unit {
    Line(LineId),
    One(RequestId),
}

/// Of a line, so many of those that are overtaken together ask for their reservations.
const OVERTAKEN: usize = 16;

impl Queue {
    /// Dispatches the requests behind a holder that left.
    pub(in crate::range) fn holder_left(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.watching.forget(holder);
        self.dispatch_behind(Behind::Holder(holder), None, wakeups);
    }

    /// Dispatches the shared requests behind a holder that has become shared.
    pub(in crate::range) fn holder_downgraded(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch_behind(Behind::Holder(holder), Some(Mode::Shared), wakeups);
    }

    /// Dispatches the lines behind that, or those of one mode.
    pub(super) fn dispatch_behind(
        &mut self,
        behind: Behind,
        mode: Option<Mode>,
        wakeups: &mut Wakeups,
    ) {
        let mut lines = self.places.lines.behind(behind);
        lines.retain(|&line| {
            let head = self.places.lines.head(line);
            let head = head.map(|head| self.places.of(head).request.mode);
            mode.is_none() || head == mode
        });
        self.dispatch(lines.into_iter().map(Unit::Line).collect(), wakeups);
    }

    /// Dispatches the requests that sleep because of another one.
    pub(in crate::range::wait) fn dispatch_waiting_for(
        &mut self,
        id: RequestId,
        wakeups: &mut Wakeups,
    ) {
        let lines = self.places.lines.behind(Behind::Request(id));
        let ways = self.places.giving_way_to(id);
        let lines = lines.into_iter().map(Unit::Line);
        self.dispatch(
            lines.chain(ways.into_iter().map(Unit::One)).collect(),
            wakeups,
        );
    }

    /// The requests that follow one at that stage.
    pub(super) fn followers(&self, was: Stage) -> Vec<RequestId> {
        let Stage::GivingWay(first, _) = was else {
            return Vec::new();
        };
        let mut followers = self.places.giving_way_to(first);
        followers.retain(|&id| self.places.stage(id).follows(was));
        followers
    }

    /// Dispatches the requests that have followed one which is no longer at that stage.
    pub(super) fn dispatch_followers(&mut self, was: Stage, wakeups: &mut Wakeups) {
        // [follow-ends] They sleep without an end of their own.
        if prim::intact!("follow-ends") {
            let followers = self.followers(was).into_iter().map(Unit::One);
            self.dispatch(followers.collect(), wakeups);
        }
    }

    /// Dispatches these, first come first. An entry that conflicts with an awake request is put behind that request,
    /// and so is the rest of its line. A request that has to give way to a reservation follows one that does so
    /// already, if there is one. Otherwise it is woken here and finds that out at its admission.
    fn dispatch(&mut self, mut units: Vec<Unit>, wakeups: &mut Wakeups) {
        if units.is_empty() {
            return;
        }
        units.sort_unstable_by_key(|&unit| self.first_of(unit));
        let leaders = Leaders::new(&self.places);
        for unit in units {
            self.dispatch_unit(unit, leaders.as_ref(), wakeups);
        }
    }

    fn first_of(&self, unit: Unit) -> Option<RequestId> {
        match unit {
            Unit::Line(line) => self.places.lines.head(line),
            Unit::One(id) => Some(id),
        }
    }

    fn dispatch_unit(&mut self, unit: Unit, leaders: Option<&Leaders>, wakeups: &mut Wakeups) {
        while let Some(id) = self.first_of(unit) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let entry = *self.places.of(id);
            if let Some(other) = self.places.conflicting_with(&entry) {
                return self.put_behind(unit, other, wakeups);
            }
            match leaders.and_then(|leaders| self.reservation_to_follow(&entry, leaders)) {
                Some((first, request)) => {
                    self.detach(id, Stage::Following(first), request);
                }
                None => self.wake(id, wakeups),
            }
            if let Unit::One(_) = unit {
                return;
            }
        }
    }

    /// Puts requests behind one that is awake.
    fn put_behind(&mut self, unit: Unit, other: RequestId, wakeups: &mut Wakeups) {
        let Entry {
            request, sleeper, ..
        } = *self.places.of(other);
        let overtaken: Vec<_> = match unit {
            Unit::Line(line) => {
                if let Sleeper::Task { waker, .. } = sleeper {
                    self.wake_of_task(waker, line, wakeups);
                }
                let members = self.places.lines.members(line);
                let overtaken = members
                    .take_while(|&id| id < other)
                    .take(OVERTAKEN)
                    .collect();
                if self.places.lines.head(line).is_some() {
                    self.places.move_line(line, Behind::Request(other), request);
                }
                overtaken
            }
            Unit::One(id) => {
                self.detach(id, Stage::BehindRequest(other), request);
                [id].into_iter().filter(|&id| id < other).collect()
            }
        };
        self.limit_turn(other);
        for id in overtaken {
            self.overtake(id);
        }
    }

    /// Notes that a later request has overtaken a sleeping one, which gets its reservation if that is due.
    ///
    /// Not before: where many requests wait for the same range some always overtake others, and a reservation makes all
    /// others sleep. Then each would have to be woken for its turn, and overtake others that sleep.
    fn overtake(&mut self, id: RequestId) {
        let Entry { due, asks, .. } = *self.places.of(id);
        let now = Instant::now();
        if asks || due.is_some_and(|due| now >= due) {
            self.grant_reservation(id, now);
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
        let first = self.reservation_ahead_of(Some(asleep.id), &asleep.request, |_| false)?;
        let follows = leaders.may_be_followed_by(self.order(), asleep, first.id);
        follows.then_some((first.id, first.request))
    }

    /// Wakes those in a line that are requests of the task with that waker [equal-wakers].
    fn wake_of_task(&mut self, waker: WakerId, line: LineId, wakeups: &mut Wakeups) {
        for id in self.places.of_task(waker, line) {
            let entry = *self.places.of(id);
            if self.places.conflicting_with(&entry).is_none() {
                self.wake(id, wakeups);
            }
        }
    }

    /// Wakes a request that sleeps.
    pub(in crate::range::wait) fn wake(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        let request = self.places.of(id).request;
        self.detach(id, Stage::Awake, request);
        self.call(id, wakeups);
    }

    /// Has a request go on that is awake from now on.
    pub(in crate::range::wait) fn call(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        let Entry {
            sleeper, reserved, ..
        } = *self.places.of(id);
        match sleeper {
            Sleeper::Thread(parker) => wakeups.signal(parker),
            Sleeper::Task { .. } => {
                self.watching.woken(id);
                wakeups.wake(self.wakers.remove(&id));
            }
        }
        if reserved.is_some() {
            // Newcomers give way to it.
            self.limit_turn(id);
        }
    }
}
