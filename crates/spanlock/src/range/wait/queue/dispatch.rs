//! Dispatching: who of the sleeping requests goes on when a holder left, or when an awake request gave up or sleeps
//! again.

use super::Queue;
use crate::range::mode::Mode;
use crate::range::wait::entry::{Entry, HolderId, RequestId, Sleeper, Stage};
use crate::range::wait::lines::{Behind, LineId};
use crate::wait::{WakerId, Wakeups};
use prim::clock::Instant;

/// Whom a dispatch is about.
#[derive(Clone, Copy)]
enum Unit {
    Line(LineId),
    One(RequestId),
}

/// So many more than can be granted their ranges does a dispatch wake: one. Who is woken acts when its processor is
/// free, which may be a time slice later, and meanwhile the range may be taken and released by others many times. If
/// all slept behind that one, each would wait for the time slices of all before it, one after another.
pub(super) const SPARE: usize = prim::sized(1, 0);

/// Of those in a line that are overtaken together, this many ask for their reservations.
const OVERTAKEN: usize = 16;

impl Queue {
    /// Dispatches the requests behind holders that left together.
    pub(in crate::range) fn holders_left(
        &mut self,
        holders: impl IntoIterator<Item = HolderId> + Clone,
        wakeups: &mut Wakeups,
    ) {
        for holder in holders.clone() {
            self.watching.forget(holder);
        }
        let holders = holders.into_iter().map(Behind::Holder);
        self.dispatch_behind(holders, None, wakeups);
    }

    /// Dispatches the shared requests behind holders that have become shared together.
    pub(in crate::range) fn holders_downgraded(
        &mut self,
        holders: impl IntoIterator<Item = HolderId>,
        wakeups: &mut Wakeups,
    ) {
        let holders = holders.into_iter().map(Behind::Holder);
        self.dispatch_behind(holders, Some(Mode::Shared), wakeups);
    }

    /// Dispatches the lines behind those, or the ones of one mode.
    pub(super) fn dispatch_behind(
        &mut self,
        behind: impl IntoIterator<Item = Behind>,
        mode: Option<Mode>,
        wakeups: &mut Wakeups,
    ) {
        let lines = |behind| self.places.lines.behind(behind);
        let mut lines: Vec<_> = behind.into_iter().flat_map(lines).collect();
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

    /// Dispatches these, first come first. An entry that conflicts with an awake request is put behind that request,
    /// and so is the rest of its line; but for [`SPARE`], which is woken none the less. A request that has to give way
    /// to a reservation finds that out at its admission.
    fn dispatch(&mut self, mut units: Vec<Unit>, wakeups: &mut Wakeups) {
        if units.is_empty() {
            return;
        }
        units.sort_unstable_by_key(|&unit| self.first_of(unit));
        let mut spare = self.spare;
        for unit in units {
            self.dispatch_unit(unit, &mut spare, wakeups);
        }
    }

    fn first_of(&self, unit: Unit) -> Option<RequestId> {
        match unit {
            Unit::Line(line) => self.places.lines.head(line),
            Unit::One(id) => Some(id),
        }
    }

    fn dispatch_unit(&mut self, unit: Unit, spare: &mut usize, wakeups: &mut Wakeups) {
        while let Some(id) = self.first_of(unit) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let entry = *self.places.of(id);
            if let Some(other) = self.places.conflicting_with(&entry) {
                if *spare == 0 {
                    return self.put_behind(unit, other, wakeups);
                }
                *spare -= 1;
            }
            self.wake(id, wakeups);
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
