//! The steps of a request, one at a time, until it is granted or gives up: admission, attempt, wait for the blocker.
//!
//! A lock kind takes part with the trait [`Acquisition`]. The steps know requests, times and the queue, and nothing
//! about lists, slots or segments. A thread takes them in a loop and parks when one of them says so (`driver.rs`); a
//! task takes some in each poll and returns (`poll.rs`). Only threads spin.
//!
//! # Edges
//!
//! - **admission**: a request gives way to an earlier request that conflicts with it and has a reservation.
//! - **holder-bypass**: it does not give way to a reservation that waits for what its own thread holds in this lock.
//! - **later-bypass**: nor does it give way to any reservation that is later than that one.
//! - **reserve-asleep**: where others may come and go while a request sleeps, and do not wake it, it gets its
//!   reservation asleep.
//! - **one-upgrade**: of owners that share a range, and each want to have it alone, one sleeps. The next is refused.
//! - **grace-nonblocking** (of [`reclaim`](crate::reclaim)): a thread lets go of its blocker before it sleeps, because
//!   the blocker may keep other threads' nodes from being reused.

use super::Queue;
use super::acquisition::{Acquisition, Attempt, Refused, Reserves, Standing};
use super::entry::{Entry, RequestId, Stage};
use super::waiter::Waiter;
use super::watched::outcome_of;
use crate::range::inspect::Request;
use crate::range::raw::Wait;
use crate::range::thread;
use crate::wait::Wakeups;
use prim::clock::{Duration, Instant};
use prim::debug;

/// What came of one step.
pub(super) enum Step<T> {
    Granted(T),
    /// What was in the way has left, or others were faster.
    Again,
    /// The request is in the queue, and sleeps until it is called.
    Asleep(Sleep),
}

/// What else ends a sleep, or happens in it.
pub(super) struct Sleep {
    pub(super) reserves: Reserves,
    /// The request gives way, by that name, until then at most.
    pub(super) way: Option<(RequestId, Instant)>,
}

impl Waiter<'_> {
    /// Takes one step. `met` is what an attempt before the first one has met.
    ///
    /// # Errors
    /// The request may wait no longer, or would wait for its own thread, or for another request that waits for it.
    #[inline] // As is the attempt: each has one caller for a lock kind, and most requests are granted at once.
    pub(super) fn step<A: Acquisition>(
        &mut self,
        acquisition: &mut A,
        met: Option<A::Blocker>,
    ) -> Result<Step<A::Token>, Refused> {
        if let Some(blocker) = met {
            return self.await_blocker(acquisition, blocker);
        }
        if self.queue.has_reservations()
            && let Some(step) = self.give_way(acquisition)?
        {
            return Ok(step);
        }
        match acquisition.attempt() {
            Attempt::Granted(token) => Ok(Step::Granted(token)),
            Attempt::Overtaken => self.retry(),
            Attempt::Blocked(met) => self.await_blocker(acquisition, met),
        }
    }

    /// Gives way, for a turn, to an earlier request with a reservation. `None`: there is none.
    #[cold] // A request has waited too long.
    fn give_way<A: Acquisition>(
        &mut self,
        acquisition: &A,
    ) -> Result<Option<Step<A::Token>>, Refused> {
        if self.lacks_waker() {
            return Ok(Some(Step::Again));
        }
        // [holder-bypass] What is held that a reservation may be waiting for.
        let held = acquisition.held();
        self.begin_to_wait();
        let asleep = self.queue.with_queue(|queue, wakeups| {
            let waits_for_us = |reserved: &Request| {
                let conflict = |held| queue.order().conflict(held, reserved);
                held.iter().any(conflict) && prim::intact!("holder-bypass")
            };
            let (id, now) = (self.pursuit.id, Instant::now());
            let ahead = queue.reservation_ahead_of(id, &self.request, now, waits_for_us);
            // [admission]
            let Some((&first, ends)) = ahead.filter(|_| prim::intact!("admission")) else {
                return Ok(None);
            };
            if self.wait == Wait::Never {
                return Err(Refused::OutOfTime);
            }
            let id = self.enrol(queue);
            let stage = Stage::GivingWay(first.id, ends);
            let entry = self.entry(id, stage, first.request);
            self.leave_waker(queue, id, wakeups);
            Ok(Some((id, ends, queue.sleep(entry, wakeups))))
        })?;
        Ok(asleep.map(|(id, ends, refused)| {
            self.postpone(refused);
            Step::Asleep(Sleep {
                reserves: self.reserves,
                way: Some((id, ends)),
            })
        }))
    }

    /// Waits until the blocker has left, as far as the request may wait.
    fn await_blocker<A: Acquisition>(
        &mut self,
        acquisition: &A,
        blocker: A::Blocker,
    ) -> Result<Step<A::Token>, Refused> {
        if self.wait == Wait::Never {
            self.await_decision(acquisition, &blocker)?;
            return Ok(Step::Again);
        }
        if self.lacks_waker() {
            return Ok(Step::Again);
        }
        if !self.sleeper.is_task() {
            let may_spin = acquisition.look(&blocker) != Standing::Outlasts
                && !self.queue.is_short_of_processors();
            let is_over = || acquisition.look(&blocker) == Standing::Gone;
            if may_spin && self.record.spins.spin(is_over) {
                drop(blocker);
                return self.retry();
            }
            if debug::CHECKS
                && self.wait == Wait::Forever
                && let Some(deadlock) = acquisition.deadlock_with(&blocker)
            {
                return Err(Refused::SelfDeadlock(Box::new(deadlock)));
            }
        }
        let asleep = self.register(acquisition, &blocker)?;
        // [grace-nonblocking] The thread walks no list while it sleeps.
        std::mem::forget(Some(blocker).filter(|_| !prim::intact!("grace-nonblocking")));
        match asleep {
            Some(reserves) => Ok(Step::Asleep(Sleep {
                reserves,
                way: None,
            })),
            None => self.retry(),
        }
    }

    /// Whether it is a task's, and has no clone of the waker to leave behind. To make one is to run foreign code: not
    /// under the mutex, and not while a blocker keeps a walk from ending.
    fn lacks_waker(&self) -> bool {
        self.sleeper.is_task() && self.waker.is_none()
    }

    /// Has the queue keep what wakes a task that is about to sleep, and its ranges.
    fn leave_waker(&mut self, queue: &mut Queue, id: RequestId, wakeups: &mut Wakeups) {
        if let Some(waker) = self.waker.take() {
            queue.keep(id, waker, self.kept.take(), wakeups);
        }
    }

    /// Enters the request behind its blocker, and says when it gets its reservation. `None`: the blocker is no longer
    /// in the way.
    ///
    /// # Errors
    /// It would wait for another request that waits for it.
    fn register<A: Acquisition>(
        &mut self,
        acquisition: &A,
        blocker: &A::Blocker,
    ) -> Result<Option<Reserves>, Refused> {
        self.reserve_if_due();
        let registered = self.queue.with_queue(|queue, wakeups| {
            let Some(holder) = acquisition.mark(blocker) else {
                return Ok(None);
            };
            let id = self.enrol(queue);
            queue.note_holder(&holder);
            let stage = Stage::BehindHolder(holder.id);
            let mut entry = self.entry(id, stage, holder.request);
            // [one-upgrade] Under the mutex: of two that would wait for each other the second one sees the first.
            if queue.would_wait_for_each_other(&entry) && prim::intact!("one-upgrade") {
                // At once: the other may be about to look for this one.
                queue.gave_up(id, wakeups);
                return Err(Refused::OtherUpgrade);
            }
            let reserves = if entry.lets_others_in(queue.order()) && prim::intact!("reserve-asleep")
            {
                // [reserve-asleep] At once: it has spun before.
                entry.reserved = self.reserve();
                Reserves::WhileAsleep
            } else {
                self.reserves
            };
            self.leave_waker(queue, id, wakeups);
            Ok(Some((queue.sleep(entry, wakeups), reserves)))
        })?;
        Ok(registered.map(|(refused, reserves)| {
            self.postpone(refused);
            reserves
        }))
    }

    /// Goes on after the blocker has left or other requests were faster: with a reservation, if that is due.
    fn retry<T>(&mut self) -> Result<Step<T>, Refused> {
        match self.wait {
            // The range may be free: no attempt has met a conflict that lasts.
            Wait::Never => return Ok(Step::Again),
            Wait::Until(deadline) if Instant::now() >= deadline => return Err(Refused::OutOfTime),
            Wait::Until(_) | Wait::Forever => {}
        }
        self.reserve_if_due();
        if self.pursuit.reserved.is_some() {
            let refused = self.queue.with_queue(|queue, _| {
                let id = self.enrol(queue);
                queue.keep_ranges(id, self.kept.take());
                queue.reserve(self.entry(id, Stage::Awake, self.request))
            });
            self.postpone(refused);
        }
        Ok(Step::Again)
    }

    /// Ends the request: it was granted, or gives up.
    #[inline]
    pub(super) fn end<A: Acquisition>(
        mut self,
        acquisition: &A,
        outcome: Result<A::Token, Refused>,
    ) -> Result<A::Token, Refused> {
        let observed = self.observed();
        let outcome = match outcome {
            Ok(token) => Ok(self.granted(acquisition, token)),
            Err(refused) => {
                self.give_up();
                Err(refused)
            }
        };
        self.call_tasks();
        if let Some(observed) = observed {
            observed.end(outcome_of(&outcome));
        }
        outcome
    }

    /// Leaves the queue as a holder. Requests asleep behind this one are now behind a holder.
    #[inline]
    fn granted<A: Acquisition>(&self, acquisition: &A, mut token: A::Token) -> A::Token {
        if let Some(id) = self.pursuit.id {
            self.queue.with_queue(|queue, wakeups| {
                queue.granted(id, wakeups, |sleeper| {
                    acquisition.adopt(&mut token, sleeper)
                });
            });
        }
        token
    }

    /// Runs the foreign code that was put off, now that the thread does not walk: wakes tasks, and drops a waker that
    /// is not needed.
    #[inline]
    pub(super) fn call_tasks(&mut self) {
        if let Some(waker) = self.waker.take() {
            thread::discard(Some(waker));
        }
        self.record.call_tasks();
    }

    #[inline]
    pub(super) fn give_up(&mut self) {
        if let Some(id) = self.pursuit.id.take() {
            self.queue
                .with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    /// Its name in the queue. It is about to be entered there.
    fn enrol(&mut self, queue: &mut Queue) -> RequestId {
        *self.pursuit.id.get_or_insert_with(|| queue.new_id())
    }

    /// Notes when the request begins to wait.
    pub(super) fn begin_to_wait(&mut self) {
        if !self.pursuit.waits {
            self.pursuit.waits = true;
            let limit = self.patience.limit();
            self.pursuit.due = limit.and_then(|limit| Instant::now().checked_add(limit));
        }
    }

    /// Gets a reservation if the patience has ended.
    fn reserve_if_due(&mut self) {
        self.begin_to_wait();
        if self.pursuit.due.is_some_and(|due| Instant::now() >= due) {
            self.reserve();
        }
    }

    /// Gets a reservation, if the lock has any.
    fn reserve(&mut self) -> Option<Instant> {
        if self.pursuit.reserved.is_none() && self.pursuit.due.is_some() {
            self.pursuit.reserved = Some(Instant::now());
        }
        self.pursuit.reserved
    }

    /// Notes that the request did not get a reservation, because reservations pause for that time.
    pub(super) fn postpone(&mut self, refused: Option<Duration>) {
        if let Some(pause) = refused {
            self.pursuit.reserved = None;
            self.pursuit.due = Instant::now().checked_add(pause);
        }
    }

    /// The request's entry in the queue.
    fn entry(&self, id: RequestId, stage: Stage, behind: Request) -> Entry {
        Entry {
            id,
            request: self.request,
            origin: self.origin(),
            sleeper: self.sleeper,
            turn_ends: None,
            reserved: self.pursuit.reserved,
            asks: false, // The queue knows.
            patience: self.patience,
            due: self.pursuit.due,
            shares: self.shares,
            is_piece: self.is_piece,
            has_given_way: false, // The queue knows.
            wants: false,
            line: None,
            stage,
            behind,
        }
    }
}
