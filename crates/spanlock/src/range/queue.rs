//! The requests that sleep in a range lock, and those among them that have been woken and are on their way.
//!
//! A request that finds its range taken goes to sleep *behind the holder* in its way. When a holder leaves, the
//! requests behind it are dispatched, first come first: woken, unless they conflict with one that was woken before
//! them and has not arrived yet; those sleep on *behind that request* and are not woken in vain. When it arrives it
//! is a holder, and they sleep behind it. If it goes back to sleep or gives up, they are dispatched again.
//!
//! A request that has waited too long *claims* its range: newcomers that conflict with a claim sleep behind it, so
//! that it waits for those who came before and for nobody else. A thread that holds anything sleeps behind holders
//! only, never behind another request: somebody might be waiting for it.
//!
//! # Invariants
//!
//! 1. A request sleeps behind one that is awake, or behind an earlier one with a claim. So no two sleep behind each
//!    other, however long the chain.
//! 2. A request behind a holder was put there while the holder was to call [`Queue::holder_left`] still.
//! 3. An awake request's thread calls one of [`sleep`](Queue::sleep), [`arrived`](Queue::arrived) and
//!    [`gave_up`](Queue::gave_up) after finitely many steps of its own.
//!
//! The queue is guarded by its lock's mutex; nothing here waits.

use super::inspect::{Claim, Waiter};
use super::raw::Mode;
use crate::wait::{Parker, Wakeups};

/// Names a holder: its node's address.
pub(super) type HolderId = usize;

/// Names a request: each thread has one at a time.
pub(super) type RequestId = usize;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Woken, on its way.
    Awake,
    /// Asleep until that holder leaves.
    BehindHolder(HolderId),
    /// Asleep until that request has arrived and left, or given way.
    BehindRequest(RequestId),
}

/// A request that did not get its range at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) claim: Claim,
    pub(super) parker: &'static Parker,
    /// Whether its thread holds anything, in any lock.
    pub(super) is_holder: bool,
    /// Whether newcomers give way to it.
    pub(super) has_claim: bool,
    pub(super) stage: Stage,
    /// Who it sleeps behind.
    pub(super) behind: Claim,
}

/// The sleeping and the awake requests of one lock, first come first.
#[derive(Debug)]
pub(super) struct Queue {
    requests: Vec<Request>,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            requests: Vec::new(),
        }
    }

    /// How many requests have a claim.
    pub(super) fn claims(&self) -> usize {
        self.requests.iter().filter(|r| r.has_claim).count()
    }

    /// The first request whose claim stands in a newcomer's way.
    pub(super) fn claim_against(&self, newcomer: &Claim) -> Option<&Request> {
        self.requests
            .iter()
            .find(|r| r.has_claim && r.claim.conflicts(newcomer))
    }

    /// Enters a request, or renews the one with its id, which then is awake no more.
    pub(super) fn sleep(&mut self, request: Request, wakeups: &mut Wakeups) {
        match self.position(request.id) {
            Some(at) => self.requests[at] = request,
            None => self.requests.push(request),
        }
        if prim::intact!("sleep-dispatch") {
            self.dispatch(wakeups, |r| r.stage == Stage::BehindRequest(request.id));
        }
    }

    /// Has newcomers give way to a request that is awake, entering it if need be.
    pub(super) fn claim(&mut self, request: Request) {
        match self.position(request.id) {
            Some(at) => self.requests[at].has_claim = true,
            None => self.requests.push(request),
        }
    }

    /// Removes a request that got its range. Whether others, asleep behind it, now are behind that holder.
    pub(super) fn arrived(&mut self, id: RequestId, holder: HolderId) -> bool {
        self.remove(id);
        let mut any = false;
        for request in &mut self.requests {
            if request.stage == Stage::BehindRequest(id) {
                request.stage = Stage::BehindHolder(holder);
                any = true;
            }
        }
        any
    }

    /// Removes a request that no longer wants its range.
    pub(super) fn gave_up(&mut self, id: RequestId, wakeups: &mut Wakeups) {
        self.remove(id);
        if prim::intact!("give-up-dispatch") {
            self.dispatch(wakeups, |r| r.stage == Stage::BehindRequest(id));
        }
    }

    /// Dispatches the requests behind a holder that left.
    pub(super) fn holder_left(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |r| r.stage == Stage::BehindHolder(holder));
    }

    /// Dispatches the shared requests behind a holder that is shared now.
    pub(super) fn holder_downgraded(&mut self, holder: HolderId, wakeups: &mut Wakeups) {
        self.dispatch(wakeups, |r| {
            r.stage == Stage::BehindHolder(holder) && r.claim.mode == Mode::Shared
        });
    }

    /// The sleeping requests.
    pub(super) fn waiters(&self) -> Vec<Waiter> {
        self.requests
            .iter()
            .filter(|r| r.stage != Stage::Awake)
            .map(|r| Waiter {
                request: r.claim,
                behind: r.behind,
            })
            .collect()
    }

    fn position(&self, id: RequestId) -> Option<usize> {
        self.requests.iter().position(|r| r.id == id)
    }

    fn remove(&mut self, id: RequestId) {
        if let Some(at) = self.position(id) {
            self.requests.remove(at);
        }
    }

    /// Wakes those of `whom` that need not give way to another request, and puts the others behind that one.
    fn dispatch(&mut self, wakeups: &mut Wakeups, whom: impl Fn(&Request) -> bool) {
        for at in 0..self.requests.len() {
            let request = self.requests[at];
            if !whom(&request) {
                continue;
            }
            let in_the_way = self.requests.iter().enumerate().find(|(other_at, other)| {
                let goes_first = other.stage == Stage::Awake || (other.has_claim && *other_at < at);
                goes_first && other.id != request.id && other.claim.conflicts(&request.claim)
            });
            match in_the_way {
                Some((_, other)) if !request.is_holder => {
                    let (id, claim) = (other.id, other.claim);
                    self.requests[at].stage = Stage::BehindRequest(id);
                    self.requests[at].behind = claim;
                }
                _ => {
                    self.requests[at].stage = Stage::Awake;
                    wakeups.signal(request.parker);
                }
            }
        }
    }
}
