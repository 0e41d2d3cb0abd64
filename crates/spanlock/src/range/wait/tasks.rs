//! What the queue does for requests of tasks.
//!
//! A thread that is woken acts. A task that is woken acts when its executor polls it, which may be never: the future is
//! kept in a place where nobody polls it, or the executor has other work. So a task has a *turn*. It begins when the
//! task is woken and ends after [`TURN`], if others wait for it by then. Then the task is idle: it has no reservation
//! and is in nobody's way, and those who have waited for it are dispatched. It keeps its place in the queue. When it is
//! polled after all, it tries for its range as any other does.
//!
//! ```text
//!                   woken                   polled
//!   BehindHolder ----------> Awake -------------------------> tries: granted, or asleep again at its old place
//!        ^                     |                                 ^
//!        |                     | others wait for it, and         | polled
//!        |                     v its turn ends                   |
//!        |                   Idle -------------------------------+
//!        +---- blocked again, as any other
//! ```
//!
//! The timer calls the queue when a turn ends, or the turn of a reservation that a task gives way to, or the time of a
//! task. It does the queue's work itself: whom it woke instead could be a task that nobody polls.
//!
//! # Edges
//!
//! - **task-turn-ends**: when the turn of a task ends, those who wait for it are dispatched.
//! - **turn-takes-reservation**: and its reservation ends, so that nobody gives way to it.
//! - **task-way-ends**: a task that gives way goes on when the turn ends for which it gives way.
//! - **waker-swap**: a task that is polled while it sleeps, with another waker than before, is woken by that one.
//! - **equal-wakers**: a request is not put behind one of the same task, which may not be polled before this one is
//!   granted.
//! - **cancel-dispatch**: a request that is dropped while it waits dispatches those who wait for it.

use super::entry::{Entry, RequestId, Sleeper, Stage};
use super::queue::Queue;
use crate::range::sought::Sought;
use crate::wait::{WakerId, Wakers, Wakeups};
use prim::clock::{Duration, Instant};
use std::task::Waker;

/// Long against the time in which an executor polls what is woken, and short against what people notice.
pub(super) const TURN: Duration = Duration::from_millis(1);

/// Where a request stands that is polled.
pub(super) enum Found {
    Asleep,
    /// It was woken. It may have got a reservation meanwhile, or lost it.
    Woken {
        reserved: Option<Instant>,
    },
}

impl Entry {
    /// When the timer has to look at it.
    pub(super) fn alarm(&self) -> Option<Instant> {
        let deadline = self.sleeper.deadline();
        match self.stage {
            _ if !self.sleeper.is_task() => None,
            Stage::Awake => self.turn_ends,
            Stage::Idle => None,
            Stage::GivingWay(_, ends) => Some(deadline.map_or(ends, |at| at.min(ends))),
            Stage::BehindHolder(_) | Stage::BehindRequest(_) => deadline,
        }
    }
}

impl Queue {
    /// A task polls its request, which is in the queue; `waker` is its waker, if that has changed.
    pub(super) fn resume(
        &mut self,
        id: RequestId,
        waker: Option<Waker>,
        wakeups: &mut Wakeups,
    ) -> Found {
        let Entry {
            stage, reserved, ..
        } = *self.places.of(id);
        self.watching.polled(id);
        if !stage.is_asleep() {
            wakeups.discard(waker);
            return Found::Woken { reserved };
        }
        // [waker-swap]
        if let Some(fresh) = waker
            && prim::intact!("waker-swap")
        {
            self.places.change_waker(id, WakerId::of(&fresh));
            wakeups.discard(self.wakers.insert(id, fresh));
        }
        Found::Asleep
    }

    /// Keeps the waker of a task that is about to sleep, and its ranges.
    pub(super) fn keep(
        &mut self,
        id: RequestId,
        waker: Waker,
        ranges: Option<Box<[Option<Sought>; 2]>>,
        wakeups: &mut Wakeups,
    ) {
        wakeups.discard(self.wakers.insert(id, waker));
        self.keep_ranges(id, ranges);
    }

    /// Keeps the ranges of a task that is entered, asleep or awake: its next poll may name them anew.
    pub(super) fn keep_ranges(&mut self, id: RequestId, ranges: Option<Box<[Option<Sought>; 2]>>) {
        if let Some(ranges) = ranges {
            // Those it had are the future's as well, or numbers, so no foreign code runs here.
            self.ranges.insert(id, ranges);
        }
    }

    /// The wakers that are left when the lock goes, to be dropped.
    pub(super) fn take_wakers(&mut self) -> Wakers {
        let mut left = Wakers::default();
        for waker in std::mem::take(&mut self.wakers).into_values() {
            left.discard(Some(waker));
        }
        left
    }

    /// From now on others wait for that request. If it is a task's, its turn ends by itself.
    pub(super) fn limit_turn(&mut self, id: RequestId) {
        let entry = self.places.of(id);
        if entry.stage == Stage::Awake && entry.sleeper.is_task() && entry.turn_ends.is_none() {
            let ends = Instant::now() + TURN;
            self.places.change(id, |entry| entry.turn_ends = Some(ends));
        }
    }

    /// Has the timer call in time for all that is watched.
    pub(super) fn watch(&mut self, wakeups: &mut Wakeups) {
        if let Some(when) = self.places.first_alarm()
            && self.alarm.set(when)
        {
            wakeups.set_alarm(when);
        }
    }

    /// Does what is due. `at` is the time for which an alarm was set.
    pub(super) fn ring(&mut self, at: Instant, wakeups: &mut Wakeups) {
        if !self.alarm.rings(at) {
            return;
        }
        let now = Instant::now().max(at);
        for id in self.places.due(now) {
            // Not, if another one has changed it just now.
            if self.places.of(id).alarm().is_some_and(|when| when <= now) {
                self.ring_for(id, now, wakeups);
            }
        }
        self.watch(wakeups);
    }

    fn ring_for(&mut self, id: RequestId, now: Instant, wakeups: &mut Wakeups) {
        match self.places.of(id).stage {
            Stage::Awake => self.end_turn(id, wakeups),
            Stage::GivingWay(_, ends) if ends <= now => {
                // [task-way-ends] What it gives way to may wait for it.
                if prim::intact!("task-way-ends") {
                    self.turn_ended(id);
                    self.call(id, wakeups);
                }
            }
            _ => {
                // It finds out itself that its time is over.
                self.places.change(id, |entry| {
                    if let Sleeper::Task { deadline, .. } = &mut entry.sleeper {
                        *deadline = None;
                    }
                });
                wakeups.wake(self.wakers.remove(&id));
            }
        }
    }

    /// Ends the turn of a task that was woken, and has not been polled or is being polled just now.
    fn end_turn(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        let request = self.places.of(id).request;
        self.places.move_to(id, Stage::Idle, request);
        // [turn-takes-reservation]
        if prim::intact!("turn-takes-reservation") {
            self.end_reservation(id);
            // Nor does it get one that it has asked for, until it asks again.
            self.places.change(id, |entry| entry.asks = false);
        }
        // [task-turn-ends]
        if prim::intact!("task-turn-ends") {
            self.dispatch_waiting_for(id, wakeups);
        }
    }

    /// Removes a request whose future is dropped.
    pub(super) fn cancelled(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        // [cancel-dispatch]
        if prim::intact!("cancel-dispatch") {
            self.gave_up(id, wakeups);
        } else {
            self.remove(id, wakeups);
        }
    }
}
