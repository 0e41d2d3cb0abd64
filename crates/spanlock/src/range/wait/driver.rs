//! The loop that a request goes round until it is granted or gives up: admission, attempt, wait for the blocker.
//!
//! A lock kind takes part with the trait [`Acquisition`]. The loop itself knows requests, times and the queue, and
//! nothing about lists, slots or segments. A thread stays in the loop, and a task leaves it whenever it has to wait
//! (`poll.rs`).
//!
//! # Edges
//!
//! - **admission**: a request gives way to an earlier request that conflicts with it and has a reservation.
//! - **turn-ends**: it gives way for a limited time, and then goes on whatever the reservation waits for.
//! - **holder-bypass**: it does not give way to a reservation that waits for what its own thread holds in this lock.
//! - **later-bypass**: nor does it give way to any reservation that is later than that one.
//! - **reserve-asleep**: where others may come and go while a request sleeps, and do not wake it, it gets its
//!   reservation asleep.
//! - **one-upgrade**: of owners that share a range, and each want to have it alone, one sleeps. The next is refused.
//! - **panic-gives-up**: a request whose code panics leaves the queue, so that those behind it go on.
//! - **grace-nonblocking** (of [`reclaim`](crate::reclaim)): a thread lets go of its blocker before it sleeps, because
//!   the blocker may keep other threads' nodes from being reused.

use super::Queue;
use super::acquisition::{Acquisition, Attempt, Refused, Reserves};
use super::entry::{Entry, RequestId, Stage};
use super::pursued::Pursued;
use super::reservation::Turn;
use super::waiter::Waiter;
use super::watched::outcome_of;
use crate::range::inspect::Request;
use crate::range::owner::Listed;
use crate::range::raw::Wait;
use crate::wait::{Ticket, Wakeups};
use prim::clock::{Duration, Instant};
use prim::debug;

/// Why a thread woke.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Signalled,
    /// It has given way long enough.
    TurnEnded,
}

/// [holder-bypass] What is held that a reservation may be waiting for.
pub(super) fn held_for<A: Acquisition>(acquisition: &A) -> Vec<Request> {
    if acquisition.may_hold() {
        acquisition.held()
    } else {
        Vec::new()
    }
}

impl Waiter<'_> {
    /// Waits and tries until the request is granted, may wait no longer, or would wait for its own thread. `blocker` is
    /// what an attempt before the loop has met.
    #[inline] // As is the attempt: each has one caller for a lock kind, and most requests are granted at once.
    pub(in crate::range) fn acquire<A: Acquisition>(
        mut self,
        acquisition: &mut A,
        blocker: Option<A::Blocker>,
    ) -> Result<A::Token, Refused> {
        let record = self.record;
        let pursued = Pursued(&mut self);
        let contended = pursued.0.contend(acquisition, blocker);
        std::mem::forget(pursued);
        let observed = self.observed();
        let outcome = match contended {
            Ok(token) => Ok(self.granted(acquisition, token)),
            Err(refused) => {
                self.give_up();
                Err(refused)
            }
        };
        record.call_tasks();
        if let Some(observed) = observed {
            observed.end(outcome_of(&outcome));
        }
        outcome
    }

    #[inline]
    fn contend<A: Acquisition>(
        &mut self,
        acquisition: &mut A,
        mut blocker: Option<A::Blocker>,
    ) -> Result<A::Token, Refused> {
        loop {
            if let Some(blocker) = blocker.take() {
                self.await_blocker(acquisition, blocker)?;
            }
            self.admit(acquisition)?;
            match acquisition.attempt() {
                Attempt::Granted(token) => return Ok(token),
                Attempt::Blocked(met) => blocker = Some(met),
                Attempt::Overtaken => self.retry()?,
            }
        }
    }

    /// Gives way, for a turn, to an earlier request with a reservation.
    #[inline]
    fn admit<A: Acquisition>(&mut self, acquisition: &A) -> Result<(), Refused> {
        if self.queue.has_reservations() {
            self.give_way(acquisition)
        } else {
            Ok(())
        }
    }

    #[cold] // A request has waited too long.
    fn give_way<A: Acquisition>(&mut self, acquisition: &A) -> Result<(), Refused> {
        let held = held_for(acquisition);
        loop {
            let ticket = self.record.parker.ticket();
            let Some((id, turn)) = self.sleep_giving_way(&held, |_, _, _| {})? else {
                return Ok(());
            };
            // [turn-ends] The reservation may wait for what waits for this thread.
            let ends = Some(turn.ends).filter(|_| prim::intact!("turn-ends"));
            if self.park(ticket, A::RESERVES, ends)? == Woken::TurnEnded {
                self.queue
                    .with_queue(|queue, wakeups| queue.turn_ended(id, turn, wakeups));
                return Ok(());
            }
        }
    }

    /// Enters the request as one that gives way, if it has to, and says for which turn. `enters` is called under the
    /// queue's mutex, just before.
    pub(super) fn sleep_giving_way(
        &mut self,
        held: &[Request],
        enters: impl FnOnce(&mut Queue, RequestId, &mut Wakeups),
    ) -> Result<Option<(RequestId, Turn<Instant>)>, Refused> {
        self.begin_to_wait();
        let asleep = self.queue.with_queue(|queue, wakeups| {
            let waits_for_us = |reserved: &Request| {
                let conflict = |held| queue.order().conflict(held, reserved);
                held.iter().any(conflict) && prim::intact!("holder-bypass")
            };
            let Some((first, turn)) = self.turn_to_await(queue, waits_for_us) else {
                return Ok(None);
            };
            if self.wait == Wait::Never {
                return Err(Refused::OutOfTime);
            }
            let id = self.enrol(queue);
            let stage = Stage::GivingWay(first.id, turn);
            let entry = self.entry(id, stage, first.request, !held.is_empty());
            enters(queue, id, wakeups);
            Ok(Some((id, turn, queue.sleep(entry, wakeups))))
        })?;
        Ok(asleep.map(|(id, turn, refused)| {
            self.postpone(refused);
            (id, turn)
        }))
    }

    /// The reservation that the request has to give way to, and the turn at the end of which it need not any more.
    fn turn_to_await(
        &self,
        queue: &Queue,
        waits_for_us: impl Fn(&Request) -> bool,
    ) -> Option<(Entry, Turn<Instant>)> {
        let id = self.pursuit.id;
        let first = queue.reservation_ahead_of(id, &self.request, waits_for_us)?;
        let now = Instant::now();
        let turn = queue.turn(&self.request, now)?;
        let has_pass = id
            .and_then(|id| queue.gave_way(id))
            .is_some_and(|last| last.is_pass_in(&turn, now));
        // [admission]
        (!has_pass && prim::intact!("admission")).then_some((*first, turn))
    }

    /// Waits until the blocker has left, as far as the request may wait.
    fn await_blocker<A: Acquisition>(
        &mut self,
        acquisition: &A,
        blocker: A::Blocker,
    ) -> Result<(), Refused> {
        if self.wait == Wait::Never {
            return if acquisition.sees_withdrawal_of(&blocker) {
                Ok(())
            } else {
                Err(Refused::OutOfTime)
            };
        }
        let spins = &self.record.spins;
        let is_over = || !acquisition.is_blocked_by(&blocker);
        if !acquisition.has_waited_for(&blocker) && spins.spin(is_over) {
            drop(blocker);
            return self.retry();
        }
        if debug::CHECKS
            && self.wait == Wait::Forever
            && let Some(deadlock) = acquisition.deadlock_with(&blocker)
        {
            return Err(Refused::SelfDeadlock(Box::new(deadlock)));
        }
        let ticket = self.record.parker.ticket();
        let asleep = self.register(acquisition, &blocker, |_, _, _| {})?;
        // [grace-nonblocking] The thread walks no list while it sleeps.
        let _kept = Some(blocker).filter(|_| !prim::intact!("grace-nonblocking"));
        match asleep {
            Some(reserves) => {
                let published = self.publish(acquisition);
                let woken = self.park(ticket, reserves, None);
                drop(published);
                self.record.spins.over();
                woken?;
                self.refused()
            }
            None => self.retry(),
        }
    }

    /// Enters the request behind its blocker, and says when it gets its reservation. `None`: the blocker is no longer
    /// in the way. `enters` is called under the queue's mutex, just before.
    ///
    /// # Errors
    /// It would wait for another request that waits for it.
    pub(super) fn register<A: Acquisition>(
        &mut self,
        acquisition: &A,
        blocker: &A::Blocker,
        enters: impl FnOnce(&mut Queue, RequestId, &mut Wakeups),
    ) -> Result<Option<Reserves>, Refused> {
        self.reserve_if_due();
        let holds = acquisition.may_hold();
        let registered = self.queue.with_queue(|queue, wakeups| {
            let Some(holder) = acquisition.mark(blocker) else {
                return Ok(None);
            };
            let id = self.enrol(queue);
            queue.note_holder(&holder);
            let stage = Stage::BehindHolder(holder.id);
            let mut entry = self.entry(id, stage, holder.request, holds);
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
                A::RESERVES
            };
            enters(queue, id, wakeups);
            Ok(Some((queue.sleep(entry, wakeups), reserves)))
        })?;
        Ok(registered.map(|(refused, reserves)| {
            self.postpone(refused);
            reserves
        }))
    }

    /// Parks the thread until it is signalled, until the turn ends that it gives way for, or as long as the request may
    /// wait and is not cancelled.
    fn park(
        &mut self,
        ticket: Ticket,
        reserves: Reserves,
        turn_ends: Option<Instant>,
    ) -> Result<Woken, Refused> {
        // Foreign code, which must not wait for what this thread waits for.
        self.record.call_tasks();
        self.observe();
        let listed = match self.owner {
            Some(owner) => Some(owner.list(&self.record.parker).ok_or(Refused::Cancelled)?),
            None => None,
        };
        let woken = self.park_until(ticket, reserves, turn_ends);
        if listed.is_some_and(Listed::was_cancelled) {
            return Err(Refused::Cancelled);
        }
        woken
    }

    fn park_until(
        &mut self,
        ticket: Ticket,
        reserves: Reserves,
        turn_ends: Option<Instant>,
    ) -> Result<Woken, Refused> {
        let parker = &self.record.parker;
        let deadline = self.wait.deadline();
        let limit = [turn_ends, deadline].into_iter().flatten().min();
        while let Some(due) = self.reservation_due_asleep(reserves, limit) {
            if parker.park(ticket, Some(due)) {
                return Ok(Woken::Signalled);
            }
            // The entry may be behind another request by now, and stays there.
            let now = Instant::now();
            self.pursuit.reserved = Some(now);
            let id = self.pursuit.id.expect("a request that sleeps is entered");
            let refused = self
                .queue
                .with_queue(|queue, _| queue.reserve_in_place(id, now));
            self.postpone(refused);
        }
        if parker.park(ticket, limit) {
            Ok(Woken::Signalled)
        } else if limit == deadline {
            Err(Refused::OutOfTime)
        } else {
            Ok(Woken::TurnEnded)
        }
    }

    /// Goes on after the blocker has left or other requests were faster: with a reservation, if that is due.
    fn retry(&mut self) -> Result<(), Refused> {
        match self.wait {
            // The range may be free: no attempt has met a conflict that lasts.
            Wait::Never => return Ok(()),
            Wait::Until(deadline) if Instant::now() >= deadline => return Err(Refused::OutOfTime),
            Wait::Until(_) | Wait::Forever => {}
        }
        self.reserve_if_due();
        if self.pursuit.reserved.is_some() {
            let refused = self.queue.with_queue(|queue, _| {
                let id = self.enrol(queue);
                queue.reserve(self.entry(id, Stage::Awake, self.request, true))
            });
            self.postpone(refused);
        }
        Ok(())
    }

    /// Leaves the queue as a holder. Requests asleep behind this one are now behind a holder.
    #[inline]
    pub(super) fn granted<A: Acquisition>(self, acquisition: &A, token: A::Token) -> A::Token {
        let has_adopted = self.pursuit.id.is_some_and(|id| {
            self.queue.with_queue(|queue, wakeups| {
                queue.granted(id, wakeups, |sleeper| acquisition.adopt(&token, sleeper))
            })
        });
        if has_adopted {
            acquisition.adopted(token)
        } else {
            token
        }
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
    fn begin_to_wait(&mut self) {
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

    /// Notes that the request did not get a reservation, because reservations pause for so long.
    fn postpone(&mut self, refused: Option<Duration>) {
        if let Some(pause) = refused {
            self.pursuit.reserved = None;
            self.pursuit.due = Instant::now().checked_add(pause);
        }
    }

    /// When the request gets its reservation if it is still asleep then, and that is before `limit`.
    fn reservation_due_asleep(
        &mut self,
        reserves: Reserves,
        limit: Option<Instant>,
    ) -> Option<Instant> {
        self.begin_to_wait();
        // [reserve-asleep]
        let may = reserves == Reserves::WhileAsleep
            && self.pursuit.reserved.is_none()
            && prim::intact!("reserve-asleep");
        self.pursuit
            .due
            .filter(|&due| may && limit.is_none_or(|limit| due < limit))
    }

    /// The request's entry in the queue.
    fn entry(&self, id: RequestId, stage: Stage, behind: Request, holds: bool) -> Entry {
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
            holds,
            shares: self.shares,
            gave_way: None, // The queue knows.
            wants: false,
            line: None,
            stage,
            behind,
        }
    }
}
