//! A thread takes the steps of its request (`machine.rs`) until it is granted or gives up, and parks in between.
//!
//! # Edges
//!
//! - **turn-ends**: a request gives way for a limited time, and then goes on whatever the reservation waits for.
//! - **panic-gives-up**: a request whose code panics leaves the queue, so that those behind it go on.

use super::acquisition::{Acquisition, Refused, Reserves};
use super::machine::{Sleep, Step};
use super::pursued::Pursued;
use super::waiter::Waiter;
use crate::range::owner::Listed;
use crate::wait::Ticket;
use prim::clock::Instant;

/// Why a thread woke.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Signalled,
    /// It has given way long enough.
    TurnEnded,
}

impl Waiter<'_> {
    /// Waits and tries until the request is granted, may wait no longer, or would wait for its own thread. `blocker` is
    /// what an attempt before has met.
    #[inline] // As is the step.
    pub(in crate::range) fn acquire<A: Acquisition>(
        mut self,
        acquisition: &mut A,
        blocker: Option<A::Blocker>,
    ) -> Result<A::Token, Refused> {
        let pursued = Pursued(&mut self);
        let outcome = pursued.0.pursue(acquisition, blocker);
        std::mem::forget(pursued);
        self.end(acquisition, outcome)
    }

    #[inline]
    fn pursue<A: Acquisition>(
        &mut self,
        acquisition: &mut A,
        mut met: Option<A::Blocker>,
    ) -> Result<A::Token, Refused> {
        loop {
            // Before the request can be found.
            let ticket = self.record.parker.ticket();
            match self.step(acquisition, met.take())? {
                Step::Granted(token) => return Ok(token),
                Step::Again => {}
                Step::Asleep(sleep) => self.sleep(ticket, &sleep)?,
            }
        }
    }

    /// Parks the thread until it is signalled, until the turn ends that it gives way for, or as long as the request may
    /// wait and is not cancelled.
    fn sleep(&mut self, ticket: Ticket, sleep: &Sleep) -> Result<(), Refused> {
        // Foreign code, which must not wait for what this thread waits for.
        self.call_tasks();
        self.observe();
        let listed = match self.owner {
            Some(owner) => Some(owner.list(&self.record.parker).ok_or(Refused::Cancelled)?),
            None => None,
        };
        // Who gives way goes on by itself.
        let published = sleep.way.map_or_else(|| self.publish(), |_| None);
        let woken = self.park_until(ticket, sleep);
        drop(published);
        if listed.is_some_and(Listed::was_cancelled) {
            return Err(Refused::Cancelled);
        }
        if let (Woken::TurnEnded, Some((id, _))) = (woken?, sleep.way) {
            self.queue.with_queue(|queue, _| queue.turn_ended(id));
        }
        self.refused()
    }

    fn park_until(&mut self, ticket: Ticket, sleep: &Sleep) -> Result<Woken, Refused> {
        let parker = &self.record.parker;
        // [turn-ends] The reservation may wait for what waits for this thread.
        let turn_ends = sleep.way.map(|(_, ends)| ends);
        let turn_ends = turn_ends.filter(|_| prim::intact!("turn-ends"));
        let deadline = self.wait.deadline();
        let limit = [turn_ends, deadline].into_iter().flatten().min();
        while let Some(due) = self.reservation_due_asleep(sleep.reserves, limit) {
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
}
