//! The loop that a request goes round until it is granted or gives up: admission, attempt, wait for the blocker.
//!
//! A lock kind takes part with the trait [`Acquisition`]. The loop itself knows requests, times and the queue, and
//! nothing about lists, slots or segments.
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
//! - **grace-nonblocking** (of [`reclaim`](crate::reclaim)): a thread lets go of its blocker before it sleeps, because
//!   the blocker may keep other threads' nodes from being reused.

use super::entry::{Entry, HolderId, RequestId, Stage};
use super::reservation::{Patience, Turn};
use super::{Queue, WaitQueue};
use crate::range::inspect::{Deadlock, Request};
use crate::range::owner::{Listed, Owner, Refusal};
use crate::range::raw::Wait;
use crate::range::thread::ThreadRecord;
use crate::wait::Ticket;
use prim::clock::{Duration, Instant};
use prim::debug;

/// One request, as its lock kind provides it to the loop.
pub(in crate::range) trait Acquisition {
    /// Proof of the acquisition.
    type Token;

    /// The holder or rival in the way, with all that is needed to check it. Dropped before the thread sleeps.
    type Blocker;

    /// When the request gets a reservation.
    const RESERVES: Reserves;

    /// Tries once to get the whole range. Unless it is granted, nothing stays behind that blocks other requests.
    fn attempt(&mut self) -> Attempt<Self::Token, Self::Blocker>;

    /// Whether the blocker is still in the way. The thread spins on this.
    fn is_blocked_by(&self, blocker: &Self::Blocker) -> bool;

    /// Whether the attempt that met the blocker has waited for it. Then the thread does not spin again.
    fn has_waited_for(&self, _: &Self::Blocker) -> bool {
        false
    }

    /// Whether the blocker turns out to be a rival that withdraws, within a short spin. A request that may not wait
    /// asks this.
    fn sees_withdrawal_of(&self, _: &Self::Blocker) -> bool {
        false
    }

    /// Whether this very thread holds the blocker, so that waiting for it would never end. Debug builds ask this.
    fn deadlock_with(&self, blocker: &Self::Blocker) -> Option<Deadlock>;

    /// Marks the blocker, so that it calls [`Queue::holder_left`] when it leaves. `None`: it is no longer in the way.
    /// Called under the queue's mutex.
    fn mark(&self, blocker: &Self::Blocker) -> Option<Holder>;

    /// All that this thread holds in the lock.
    ///
    /// A range may be missing while the thread exits, if the guard is in a thread-local that is destroyed late.
    fn held(&self) -> Vec<Request>;

    /// Whether this thread may hold a range of the lock. Asked while there is a blocker, which may be part of a walk:
    /// no other walk may begin.
    fn may_hold(&self) -> bool;

    /// The holder that `sleeper`, which slept behind this request, sleeps behind now that this request is granted.
    /// Called under the queue's mutex.
    fn adopt(&self, token: &Self::Token, sleeper: &Request) -> HolderId;

    /// The token after at least one sleeper was adopted.
    fn adopted(&self, token: Self::Token) -> Self::Token {
        token
    }
}

/// The result of one attempt.
pub(in crate::range) enum Attempt<T, B> {
    Granted(T),
    Blocked(B),
    /// Other requests were faster again and again. None of them needs to conflict with this one.
    Overtaken,
}

/// The holder that a request goes to sleep behind.
pub(in crate::range) struct Holder {
    pub(in crate::range) id: HolderId,
    pub(in crate::range) request: Request,
}

/// When a request gets its reservation, once that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) enum Reserves {
    /// When it finds its range taken again. This suits locks in which every blocker wakes its sleepers.
    WhenWoken,
    /// Also while it sleeps: blockers may come and go in turn, so that nothing ever wakes the sleeper.
    WhileAsleep,
}

/// Why a request ends without its range.
pub(in crate::range) enum Refused {
    OutOfTime,
    /// Its owner was cancelled.
    Cancelled,
    /// It and another request would wait for each other: both are of owners that share what the other wants alone.
    OtherUpgrade,
    /// In a box, so that the results of all requests stay small.
    SelfDeadlock(Box<Deadlock>),
}

impl Refused {
    /// The answer to the caller: a token, or `None`.
    ///
    /// # Panics
    /// When the thread would have waited for itself.
    #[track_caller]
    pub(in crate::range) fn answer<T>(outcome: Result<T, Self>) -> Option<T> {
        match outcome {
            Ok(token) => Some(token),
            // Only owners are cancelled, and only owners upgrade.
            Err(Self::OutOfTime | Self::Cancelled | Self::OtherUpgrade) => None,
            Err(Self::SelfDeadlock(deadlock)) => panic!("{deadlock}"),
        }
    }

    /// The answer to an owner.
    ///
    /// # Errors
    /// Why it is refused.
    ///
    /// # Panics
    /// When the owner would have waited for itself.
    #[track_caller]
    pub(in crate::range) fn answer_owner<T>(outcome: Result<T, Self>) -> Result<T, Refusal> {
        // No closure: it would be the caller.
        match outcome {
            Ok(token) => Ok(token),
            Err(Self::OutOfTime) => Err(Refusal::Busy),
            Err(Self::Cancelled) => Err(Refusal::Cancelled),
            Err(Self::OtherUpgrade) => Err(Refusal::OtherUpgrade),
            Err(Self::SelfDeadlock(deadlock)) => panic!("{deadlock}"),
        }
    }
}

/// Whether the queue has an entry of this request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Newcomer,
    Queued,
}

/// Why a thread woke.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Signalled,
    /// It has given way long enough.
    TurnEnded,
}

/// A request that was not granted at once.
pub(in crate::range) struct Waiter<'a> {
    queue: &'a WaitQueue,
    record: &'static ThreadRecord,
    request: Request,
    wait: Wait,
    patience: Patience,
    standing: Standing,
    /// When the request got its reservation, if it has one.
    reserved: Option<Instant>,
    /// Whether it has begun to wait.
    waits: bool,
    /// When it asks for a reservation, if it ever does.
    due: Option<Instant>,
    /// Who may cancel the wait.
    owner: Option<&'a Owner>,
    /// What the owner shares, and wants alone by this request.
    shares: Option<Request>,
}

impl<'a> Waiter<'a> {
    pub(in crate::range) fn new(
        queue: &'a WaitQueue,
        record: &'static ThreadRecord,
        request: Request,
        wait: Wait,
        patience: Patience,
    ) -> Self {
        Self {
            queue,
            record,
            request,
            wait,
            patience,
            standing: Standing::Newcomer,
            reserved: None,
            waits: false,
            due: None,
            owner: None,
            shares: None,
        }
    }

    /// The owner may cancel the wait.
    pub(in crate::range) fn cancelled_by(self, owner: &'a Owner) -> Self {
        let owner = Some(owner);
        Self { owner, ..self }
    }

    /// The owner shares this range meanwhile.
    pub(in crate::range) fn sharing(self, shares: Request) -> Self {
        let shares = Some(shares);
        Self { shares, ..self }
    }

    /// Waits and tries until the request is granted, may wait no longer, or would wait for its own thread. `blocker` is
    /// what an attempt before the loop has met.
    #[inline] // As is the attempt: each has one caller for a lock kind, and most requests are granted at once.
    pub(in crate::range) fn acquire<A: Acquisition>(
        mut self,
        acquisition: &mut A,
        blocker: Option<A::Blocker>,
    ) -> Result<A::Token, Refused> {
        match self.contend(acquisition, blocker) {
            Ok(token) => Ok(self.granted(acquisition, token)),
            Err(refused) => {
                self.give_up();
                Err(refused)
            }
        }
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
        let id = self.id();
        self.begin_to_wait();
        // [holder-bypass] A reservation may be waiting for what this thread holds.
        let held = if acquisition.may_hold() {
            acquisition.held()
        } else {
            Vec::new()
        };
        let waits_for_us = |reserved: &Request| {
            held.iter().any(|held| held.conflicts(reserved)) && prim::intact!("holder-bypass")
        };
        loop {
            let Some((ticket, turn, refused)) = self.queue.with_queue(|queue, wakeups| {
                let Some((first, turn)) = self.turn_to_await(queue, waits_for_us) else {
                    return Ok(None);
                };
                if self.wait == Wait::Never {
                    return Err(Refused::OutOfTime);
                }
                let ticket = self.record.parker.ticket();
                let stage = Stage::GivingWay(first.id, turn);
                let entry = self.entry(stage, first.request, !held.is_empty());
                Ok(Some((ticket, turn, queue.sleep(entry, wakeups))))
            })?
            else {
                return Ok(());
            };
            self.postpone(refused);
            // [turn-ends] The reservation may wait for what waits for this thread.
            let ends = Some(turn.ends).filter(|_| prim::intact!("turn-ends"));
            if self.park(ticket, A::RESERVES, ends)? == Woken::TurnEnded {
                self.queue
                    .with_queue(|queue, wakeups| queue.turn_ended(id, turn, wakeups));
                return Ok(());
            }
        }
    }

    /// The reservation that the request has to give way to, and the turn at the end of which it need not any more.
    fn turn_to_await(
        &self,
        queue: &Queue,
        waits_for_us: impl Fn(&Request) -> bool,
    ) -> Option<(Entry, Turn<Instant>)> {
        let first = queue.reservation_ahead_of(self.id(), &self.request, waits_for_us)?;
        let now = Instant::now();
        let turn = queue.turn(&self.request, now)?;
        let has_pass = queue
            .gave_way(self.id())
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
        let asleep = self.register(acquisition, &blocker)?;
        // [grace-nonblocking] The thread walks no list while it sleeps.
        let _kept = Some(blocker).filter(|_| !prim::intact!("grace-nonblocking"));
        match asleep {
            Some((ticket, reserves)) => {
                let woken = self.park(ticket, reserves, None);
                self.record.spins.over();
                woken.map(|_| ())
            }
            None => self.retry(),
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
    ) -> Result<Option<(Ticket, Reserves)>, Refused> {
        self.reserve_if_due();
        let holds = acquisition.may_hold();
        let ticket = self.record.parker.ticket();
        let queue = self.queue;
        let registered = queue.with_queue(|queue, wakeups| {
            let Some(holder) = acquisition.mark(blocker) else {
                return Ok(None);
            };
            let mut entry = self.entry(Stage::BehindHolder(holder.id), holder.request, holds);
            // [one-upgrade] Under the mutex: of two that would wait for each other the second one sees the first.
            if queue.would_wait_for_each_other(&entry) && prim::intact!("one-upgrade") {
                // At once: the other may be about to look for this one.
                queue.gave_up(self.id(), wakeups);
                return Err(Refused::OtherUpgrade);
            }
            let reserves = if entry.lets_others_in() && prim::intact!("reserve-asleep") {
                // [reserve-asleep] At once: it has spun before.
                entry.reserved = self.reserve();
                Reserves::WhileAsleep
            } else {
                A::RESERVES
            };
            Ok(Some((queue.sleep(entry, wakeups), reserves)))
        })?;
        Ok(registered.map(|(refused, reserves)| {
            self.postpone(refused);
            (ticket, reserves)
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
        self.standing = Standing::Queued;
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
            self.reserved = Some(now);
            let id = self.id();
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
        if self.reserved.is_some() {
            self.standing = Standing::Queued;
            let entry = self.entry(Stage::Awake, self.request, true);
            let refused = self.queue.with_queue(|queue, _| queue.reserve(entry));
            self.postpone(refused);
        }
        Ok(())
    }

    /// Leaves the queue as a holder. Requests asleep behind this one are now behind a holder.
    #[inline]
    fn granted<A: Acquisition>(self, acquisition: &A, token: A::Token) -> A::Token {
        let id = self.id();
        let has_adopted = self.standing == Standing::Queued
            && self.queue.with_queue(|queue, _| {
                queue.granted(id, |sleeper| acquisition.adopt(&token, sleeper))
            });
        if has_adopted {
            acquisition.adopted(token)
        } else {
            token
        }
    }

    #[inline]
    fn give_up(self) {
        if self.standing == Standing::Queued {
            let id = self.id();
            self.queue
                .with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    fn id(&self) -> RequestId {
        self.record.parker.id()
    }

    /// Notes when the request begins to wait.
    fn begin_to_wait(&mut self) {
        if !self.waits {
            self.waits = true;
            let limit = self.patience.limit();
            self.due = limit.and_then(|limit| Instant::now().checked_add(limit));
        }
    }

    /// Gets a reservation if the patience has ended.
    fn reserve_if_due(&mut self) {
        self.begin_to_wait();
        if self.due.is_some_and(|due| Instant::now() >= due) {
            self.reserve();
        }
    }

    /// Gets a reservation, if the lock has any.
    fn reserve(&mut self) -> Option<Instant> {
        if self.reserved.is_none() && self.due.is_some() {
            self.reserved = Some(Instant::now());
        }
        self.reserved
    }

    /// Notes that the request did not get a reservation, because reservations pause for so long.
    fn postpone(&mut self, refused: Option<Duration>) {
        if let Some(pause) = refused {
            self.reserved = None;
            self.due = Instant::now().checked_add(pause);
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
            && self.reserved.is_none()
            && prim::intact!("reserve-asleep");
        self.due
            .filter(|&due| may && limit.is_none_or(|limit| due < limit))
    }

    /// The request's entry in the queue.
    fn entry(&self, stage: Stage, behind: Request, holds: bool) -> Entry {
        Entry {
            id: self.id(),
            request: self.request,
            parker: &self.record.parker,
            reserved: self.reserved,
            asks: false, // The queue knows.
            patience: self.patience,
            due: self.due,
            holds,
            shares: self.shares,
            gave_way: None, // The queue knows.
            stage,
            behind,
        }
    }
}
