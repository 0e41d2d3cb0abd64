//! Waiting: giving way, sleeping behind a holder, and what a request owes to others when it goes on.

use super::index::Index;
use super::node::{Link, Node};
use super::{Protocol, RawList, Token};
use crate::local::{Local, Pin};
use crate::range::inspect::Claim;
use crate::range::queue::{Queue, Request, Stage};
use crate::range::raw::Wait;
use crate::wait::{Ticket, Wakeups};
use prim::atomic::Ordering;
use prim::clock::{Duration, Instant};
use prim::spin::{self, Spin};
use std::ptr::NonNull;

/// Whether a thread is entered in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Newcomer,
    Queued,
}

/// Why a request ends without its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    NoTime,
    WaitsForItself,
}

/// A request that did not get its range at once.
pub(super) struct Contender {
    local: &'static Local,
    claim: Claim,
    wait: Wait,
    standing: Standing,
    /// Whether newcomers are to give way.
    has_claim: bool,
    /// When it first waited.
    since: Option<Instant>,
}

impl Contender {
    pub(super) fn new(local: &'static Local, claim: Claim, wait: Wait) -> Self {
        Self {
            local,
            claim,
            wait,
            standing: Standing::Newcomer,
            has_claim: false,
            since: None,
        }
    }

    fn waits(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether to sleep behind that node is to sleep forever. Looked for in debug builds.
    fn would_wait_for(&self, blocker: &Node) -> bool {
        cfg!(debug_assertions)
            && self.wait == Wait::Forever
            && blocker.claim(Link::NULL).thread == self.local.thread()
    }

    /// Its entry in the queue.
    fn request(&self, stage: Stage, behind: Claim) -> Request {
        Request {
            id: self.local.parker.id(),
            claim: self.claim,
            parker: &self.local.parker,
            is_holder: self.local.holds_any(),
            has_claim: self.has_claim,
            stage,
            behind,
        }
    }

    /// Sleeps. The request is in the queue.
    fn park(&mut self, ticket: Ticket) -> Result<(), Refused> {
        self.standing = Standing::Queued;
        self.waits();
        let signalled = self.local.parker.park(ticket, self.wait.deadline());
        signalled.then_some(()).ok_or(Refused::NoTime)
    }
}

impl<P: Protocol, I: Index> RawList<P, I> {
    /// Gives way to those who have waited too long.
    pub(super) fn gate(&self, contender: &mut Contender) -> Result<(), Refused> {
        if contender.standing == Standing::Queued
            || self.claims.load(Ordering::Relaxed) == 0
            || (contender.local.holds_any() && prim::intact!("holder-bypass"))
        {
            return Ok(());
        }
        let ticket = self.with_queue(|queue, wakeups| {
            let Some(first) = queue.claim_against(&contender.claim) else {
                return Ok(None);
            };
            if contender.wait == Wait::Never {
                return Err(Refused::NoTime);
            }
            let ticket = contender.local.parker.ticket();
            let request = contender.request(Stage::BehindRequest(first.id), first.claim);
            queue.sleep(request, wakeups);
            Ok(Some(ticket))
        })?;
        match ticket {
            None => Ok(()),
            Some(ticket) => contender.park(ticket),
        }
    }

    /// Waits until `blocker` has left, as far as the request may wait.
    pub(super) fn await_release(
        &self,
        contender: &mut Contender,
        pin: Pin,
        blocker: NonNull<Node>,
    ) -> Result<(), Refused> {
        // SAFETY: met in a walk that has not ended.
        let blocker = unsafe { blocker.as_ref() };
        // Relaxed, here and below: the next walk acquires.
        let is_gone = || blocker.link.load(Ordering::Relaxed).is_gone();
        if contender.wait == Wait::Never {
            await_decision(blocker);
            return if is_gone() {
                Ok(())
            } else {
                Err(Refused::NoTime)
            };
        }
        let mut spin = Spin::new(spin::ON_HOLDER);
        while spin.round() {
            if is_gone() {
                drop(pin);
                return self.hurry(contender);
            }
        }
        if contender.would_wait_for(blocker) && !is_gone() {
            return Err(Refused::WaitsForItself);
        }
        contender.waits();
        contender.has_claim |= self.is_claim_due(contender);
        let ticket = contender.local.parker.ticket();
        let asleep = self.with_queue(|queue, wakeups| {
            // [sleeper] Marked and looked at by one read-modify-write. Relaxed: it is one word, and what the queue
            // says is ordered by its mutex.
            let link = blocker.link.set_sleeper(Ordering::Relaxed);
            let behind = blocker.claim(link);
            if (link.is_gone() && prim::intact!("sleeper")) || !behind.conflicts(&contender.claim) {
                return false;
            }
            let holder = std::ptr::from_ref(blocker).addr();
            queue.sleep(
                contender.request(Stage::BehindHolder(holder), behind),
                wakeups,
            );
            true
        });
        // Whoever sleeps walks no list, and so holds nobody's nodes back.
        drop(pin);
        if asleep {
            contender.park(ticket)
        } else {
            self.hurry(contender)
        }
    }

    /// Goes on after others were faster, or after a wait too short to sleep: with a claim, if that is due.
    pub(super) fn hurry(&self, contender: &mut Contender) -> Result<(), Refused> {
        match contender.wait {
            // Each failure was somebody else's success, not a conflict: the answer is still open.
            Wait::Never => return Ok(()),
            Wait::Until(deadline) if Instant::now() >= deadline => return Err(Refused::NoTime),
            Wait::Until(_) | Wait::Forever => {}
        }
        contender.waits();
        contender.has_claim |= self.is_claim_due(contender);
        if contender.has_claim {
            contender.standing = Standing::Queued;
            let request = contender.request(Stage::Awake, contender.claim);
            self.with_queue(|queue, _| queue.claim(request));
        }
        Ok(())
    }

    fn is_claim_due(&self, contender: &Contender) -> bool {
        let waited = contender
            .since
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.policy.grants_claim(contender.claim.mode, waited)
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind the holder.
    pub(super) fn arrive(&self, contender: &Contender, token: Token) -> Token {
        if contender.standing == Standing::Newcomer {
            return token;
        }
        let node = token.node();
        let inherits = self.with_queue(|queue, _| {
            queue.arrived(contender.local.parker.id(), node.as_ptr().addr())
        });
        if !inherits {
            return token;
        }
        // [inherit] As if each had marked the link itself. Relaxed: our own release comes later.
        if prim::intact!("inherit") {
            // SAFETY: held by us.
            unsafe { node.as_ref() }.link.set_sleeper(Ordering::Relaxed);
        }
        if prim::intact!("no-fast-release") {
            // A fast release would not look for sleepers.
            Token::new(Link::to(node))
        } else {
            token
        }
    }

    pub(super) fn give_up(&self, contender: &Contender) {
        if contender.standing == Standing::Queued {
            let id = contender.local.parker.id();
            self.with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    /// The one way to the queue: under its mutex, with the hint kept true, and wake-ups after.
    #[cold] // Somebody sleeps, or is about to.
    #[inline(never)]
    pub(super) fn with_queue<R>(&self, f: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        let result = f(&mut queue, &mut wakeups);
        let claims = queue.claims();
        // Relaxed: a hint, and written under the mutex only. Not written in vain: it shares the head's line.
        if self.claims.load(Ordering::Relaxed) != claims {
            self.claims.store(claims, Ordering::Relaxed);
        }
        drop(queue);
        wakeups.deliver();
        result
    }
}

/// Waits a little until a rival knows whether it stays.
pub(super) fn await_decision(rival: &Node) {
    let mut spin = Spin::new(spin::ON_DECISION);
    while rival.is_tentative() && !rival.link.load(Ordering::Relaxed).is_gone() && spin.round() {}
}
