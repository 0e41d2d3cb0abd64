//! A request that takes its steps (`machine.rs`): what is known of it, and how far it has come.

use super::WaitQueue;
use super::acquisition::Reserves;
use super::entry::{RequestId, Sleeper};
use super::reservation::Patience;
use crate::deadlock::Wish;
use crate::range::inspect::Request;
use crate::range::owner::Owner;
use crate::range::raw::Wait;
use crate::range::sought::Sought;
use crate::range::span::Span;
use crate::range::thread::ThreadRecord;
use prim::clock::Instant;
use std::panic::Location;
use std::task::Waker;

/// How far a request has come that was not granted at once. Plain data: a task keeps it while it is not polled.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::range) struct Pursuit {
    /// Its name in the queue, once it is there.
    pub(super) id: Option<RequestId>,
    /// When the request got its reservation, if it has one.
    pub(super) reserved: Option<Instant>,
    /// Whether it has begun to wait.
    pub(super) waits: bool,
    /// When it asks for a reservation, if it ever does.
    pub(super) due: Option<Instant>,
    /// Since when the observer knows that it waits.
    pub(super) observed: Option<Instant>,
}

/// A request that was not granted at once.
pub(in crate::range) struct Waiter<'a> {
    pub(super) queue: &'a WaitQueue,
    pub(super) record: &'static ThreadRecord,
    pub(super) request: Request,
    pub(super) wait: Wait,
    pub(super) patience: Patience,
    /// The line that asks.
    pub(super) at: &'static Location<'static>,
    pub(super) pursuit: Pursuit,
    /// Until when it waits for rivals to decide, in nanoseconds, if it may not wait for holders and has met a rival.
    pub(super) rivals_until: Option<u64>,
    /// Who is to be woken.
    pub(super) sleeper: Sleeper,
    /// Who may cancel the wait.
    pub(super) owner: Option<&'a Owner>,
    /// What the owner shares, and wants alone by this request.
    pub(super) shares: Option<Request>,
    /// Whether it is a piece of what its owner holds: that is in the way of others who want the same, and not in its
    /// own.
    pub(super) is_piece: bool,
    /// What keeps the ranges of both while a task is in the queue, in a lock over keys: the task may be leaked.
    pub(super) kept: Option<Box<[Option<Sought>; 2]>>,
    /// A clone of a task's waker, to be left with the queue.
    pub(super) waker: Option<Waker>,
    pub(super) reserves: Reserves,
    /// What it waits for, in words that the lock's holders can be compared with, if the lock does not know who they
    /// are.
    pub(super) wish: Option<Wish>,
}

impl<'a> Waiter<'a> {
    pub(in crate::range) fn new(
        queue: &'a WaitQueue,
        record: &'static ThreadRecord,
        request: Request,
        wait: Wait,
        patience: Patience,
        at: &'static Location<'static>,
    ) -> Self {
        Self {
            queue,
            record,
            request,
            wait,
            patience,
            at,
            pursuit: Pursuit::default(),
            rivals_until: None,
            sleeper: Sleeper::Thread(&record.parker),
            owner: None,
            shares: None,
            is_piece: false,
            kept: None,
            waker: None,
            reserves: Reserves::WhenWoken,
            wish: None,
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

    /// It is a piece of what its owner holds meanwhile.
    pub(in crate::range) fn for_piece(self) -> Self {
        let is_piece = true;
        Self { is_piece, ..self }
    }

    /// Its holders may come and go in turn, and the lock does not know them: it waits for this.
    pub(in crate::range) fn behind_any(self, wish: Wish) -> Self {
        Self {
            reserves: Reserves::WhileAsleep,
            wish: Some(wish),
            ..self
        }
    }

    /// What it asks for.
    pub(in crate::range) fn asks(&self) -> Span {
        self.request.span
    }

    /// The queue keeps these while a task waits.
    pub(in crate::range) fn keeping(self, kept: [Option<Sought>; 2]) -> Self {
        let kept = Some(Box::new(kept));
        Self { kept, ..self }
    }
}
