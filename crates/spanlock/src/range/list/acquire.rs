//! The protocol: insert, validate, wait, release. The edges and invariants cited are the parent module's.

use super::node::{Link, Node};
use super::policy::FastPath;
use super::walk::Walk;
use super::{Protocol, RawList, Token};
use crate::local::{self, Local, Pin};
use crate::range::inspect::Claim;
use crate::range::queue::{Queue, Request, Stage};
use crate::range::raw::{Mode, Wait};
use crate::range::span::Span;
use crate::wait::{Ticket, Wakeups};
use prim::atomic::{Ordering, fence_after_rmw};
use prim::clock::{Duration, Instant};
use prim::spin::{self, Spin};
use std::ptr::NonNull;

/// Insertions that may fail because others were faster, before that counts as having waited.
const TRIES: u32 = 16;

/// What became of one attempt to get a node in.
enum Attempt {
    Granted(Token),
    /// A conflicting request is in the way. The node was never in the list.
    Blocked(NonNull<Node>),
    /// The same, but the node was in the list, and may still be linked (invariant 3).
    Withdrew(NonNull<Node>),
    /// Others inserted faster, time and again.
    Overtaken,
}

/// Why a request ends without its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    NoTime,
    WaitsForItself,
}

/// Whether a thread is entered in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Newcomer,
    Queued,
}

impl<P: Protocol> RawList<P> {
    #[inline]
    pub(super) fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        match self.acquire_fast(span, mode) {
            Some(token) => Some(token),
            None => self.acquire_slowly(span, mode, wait),
        }
    }

    /// The fast path: the list is empty, and this thread holds nothing by it already.
    #[inline]
    fn acquire_fast(&self, span: Span, mode: Mode) -> Option<Token> {
        // Hints. The head itself is not looked at beforehand: that would cost more than all else here but the
        // compare-exchange.
        if self.is_crowded.load(Ordering::Relaxed) || self.claims.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let node = local::take_spare()?;
        // SAFETY: a spare node is known to its thread only.
        unsafe { Node::prepare(node, span, mode) };
        let fast = Link::to(node).fast();
        // [fast-acquire] Acquire: pairs with [fast-release] and [unlink]. Release: [publish].
        let success = prim::order!(
            "fast-publish",
            prim::order!("fast-acquire", Ordering::AcqRel, Ordering::Release),
            Ordering::Acquire
        );
        let inserted = self
            .head
            .replace(Link::NULL, fast, success, Ordering::Relaxed);
        if inserted.is_err() {
            local::return_spare(node);
            return None;
        }
        Some(Token::new(fast))
    }

    #[cold] // The list is not empty, or newcomers have to give way.
    fn acquire_slowly(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        local::with(|local| self.contend(local, Claim::new(span, mode, local.thread()), wait))
    }

    fn contend(&self, local: &'static Local, claim: Claim, wait: Wait) -> Option<Token> {
        let take_node = || {
            let node = local.take_node();
            // SAFETY: `take_node` makes it ours alone.
            unsafe { Node::prepare(node, claim.span, claim.mode) };
            node
        };
        let mut node = take_node();
        let mut contender = Contender {
            local,
            claim,
            wait,
            standing: Standing::Newcomer,
            has_claim: false,
            since: None,
        };
        let outcome = loop {
            if let Err(refused) = self.gate(&mut contender) {
                break Err(refused);
            }
            let pin = local.pin();
            let blocker = match self.attempt(&pin, node, &claim) {
                Attempt::Granted(token) => break Ok(token),
                Attempt::Blocked(blocker) => Some(blocker),
                Attempt::Withdrew(blocker) => {
                    if prim::intact!("fresh-node") {
                        node = take_node();
                    }
                    Some(blocker)
                }
                Attempt::Overtaken => None,
            };
            let wait = match blocker {
                Some(blocker) => self.await_release(&mut contender, pin, blocker),
                None => {
                    drop(pin);
                    self.hurry(&mut contender)
                }
            };
            if let Err(refused) = wait {
                break Err(refused);
            }
        };
        match outcome {
            Ok(token) => {
                local.acquired();
                Some(self.arrive(&contender, token))
            }
            Err(refused) => {
                local.put_back(node);
                self.give_up(&contender);
                assert!(
                    refused != Refused::WaitsForItself,
                    "deadlock: {claim} waits for a range that the same thread holds"
                );
                None
            }
        }
    }

    /// Gives way to those who have waited too long.
    fn gate(&self, contender: &mut Contender) -> Result<(), Refused> {
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

    /// Inserts a node where it belongs, and makes sure that nobody in the list conflicts with it.
    fn attempt(&self, pin: &Pin, node: NonNull<Node>, claim: &Claim) -> Attempt {
        // SAFETY: ours, and alive.
        let mine = unsafe { node.as_ref() };
        mine.set_tentative(P::NEEDS_VALIDATION);
        let attempt = self.insert(pin, node, claim);
        if let Attempt::Granted(token) = &attempt
            && P::NEEDS_VALIDATION
            // The fast path's node is alone in the list: no rival, nothing to look for.
            && !token.link().is_fast()
            && let Err(rival) = self.validate(pin, mine, claim)
        {
            self.leave(mine);
            // Gone first, for rivals who wait for the decision. The node is not re-used before the pin is dropped.
            mine.set_tentative(false);
            return Attempt::Withdrew(rival);
        }
        mine.set_tentative(false);
        attempt
    }

    fn insert(&self, pin: &Pin, node: NonNull<Node>, claim: &Claim) -> Attempt {
        let mut walk = Walk::from_head(pin, &self.head);
        let mut tries = 0;
        while tries < TRIES {
            let next = walk.next();
            if walk.is_cut_off() {
                tries += 1;
                walk = Walk::from_head(pin, &self.head);
                continue;
            }
            if let Some((other, link)) = next {
                match place(claim, &other.claim(link)) {
                    Place::Behind => {
                        walk.step(other, link);
                        continue;
                    }
                    Place::Conflict => return Attempt::Blocked(NonNull::from(other)),
                    Place::Before => {}
                }
            }
            let alone = self.policy.fast_path == FastPath::On && walk.is_empty(&self.head);
            let mine = if alone {
                Link::to(node).fast()
            } else {
                walk.link_to(node)
            };
            // SAFETY: ours, and alive.
            unsafe { node.as_ref() }
                .link
                .prepare(walk.seen().node(), claim.mode);
            if walk.insert(mine).is_ok() {
                if self.is_crowded.load(Ordering::Relaxed) == alone {
                    self.is_crowded.store(!alone, Ordering::Relaxed);
                }
                return Attempt::Granted(Token::new(if alone { mine } else { Link::to(node) }));
            }
            tries += 1;
        }
        Attempt::Overtaken
    }

    /// Looks for a rival that was inserted elsewhere at about the same time, and stays.
    fn validate(&self, pin: &Pin, mine: &Node, claim: &Claim) -> Result<(), NonNull<Node>> {
        // [handshake] Both sides: the insertion is before the look.
        match claim.mode {
            Mode::Shared if !prim::intact!("reader-handshake") => {}
            Mode::Exclusive if !prim::intact!("writer-handshake") => {}
            _ => fence_after_rmw(),
        }
        let mut walk = match claim.mode {
            Mode::Shared => Walk::behind(pin, mine),
            Mode::Exclusive => Walk::from_head(pin, &self.head),
        };
        while let Some((other, link)) = walk.next() {
            let theirs = other.claim(link);
            if std::ptr::eq(other, mine) || theirs.span.start() > claim.span.last() {
                break;
            }
            let looks = match claim.mode {
                Mode::Shared => prim::intact!("reader-validation"),
                Mode::Exclusive => prim::intact!("writer-validation"),
            };
            if looks && theirs.conflicts(claim) {
                if self.policy.preference.favours(claim.mode) {
                    await_decision(other);
                }
                // Relaxed: if it is in the way no more, the walk meets it again and acquires.
                let link = other.link.load(Ordering::Relaxed);
                if !link.is_gone() && other.claim(link).conflicts(claim) {
                    // [withdraw] Whoever waited here would block others who conflict with it alone (invariant 4).
                    if prim::intact!("withdraw") {
                        return Err(NonNull::from(other));
                    }
                    prim::thread::yield_now();
                }
            } else {
                walk.step(other, link);
            }
        }
        Ok(())
    }

    /// Waits until `blocker` has left, as far as the request may wait.
    fn await_release(
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
                return Ok(());
            }
        }
        if contender.would_wait_for(blocker) && !is_gone() {
            return Err(Refused::WaitsForItself);
        }
        contender.waits();
        self.grant_claim(contender);
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
            Ok(())
        }
    }

    /// Goes on after having been overtaken, with a claim if that is due.
    fn hurry(&self, contender: &mut Contender) -> Result<(), Refused> {
        match contender.wait {
            // Each failure was somebody else's success, not a conflict: the answer is still open.
            Wait::Never => return Ok(()),
            Wait::Until(deadline) if Instant::now() >= deadline => return Err(Refused::NoTime),
            Wait::Until(_) | Wait::Forever => {}
        }
        contender.waits();
        if self.grant_claim(contender) {
            contender.standing = Standing::Queued;
            let request = contender.request(Stage::Awake, contender.claim);
            self.with_queue(|queue, _| queue.claim(request));
        }
        Ok(())
    }

    fn grant_claim(&self, contender: &mut Contender) -> bool {
        let waited = contender
            .since
            .map_or(Duration::ZERO, |since| since.elapsed());
        let due = self.policy.grants_claim(contender.claim.mode, waited);
        contender.has_claim |= due;
        due
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind the holder.
    fn arrive(&self, contender: &Contender, token: Token) -> Token {
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

    fn give_up(&self, contender: &Contender) {
        if contender.standing == Standing::Queued {
            let id = contender.local.parker.id();
            self.with_queue(|queue, wakeups| queue.gave_up(id, wakeups));
        }
    }

    /// # Safety
    /// The token is this lock's.
    #[inline]
    pub(super) unsafe fn release(&self, token: Token) {
        let node = token.node();
        if token.link().is_fast() {
            // [fast-release] Release: pairs with [fast-acquire].
            let released = self.head.replace(
                token.link(),
                Link::NULL,
                prim::order!("fast-release", Ordering::Release),
                Ordering::Relaxed,
            );
            if released.is_ok() {
                // The mark stood all the time: nobody has looked at the node [demote].
                local::return_spare(node);
                return;
            }
        }
        // SAFETY: the token is proof that we hold the node, which stays in the list until it is marked.
        self.leave(unsafe { node.as_ref() });
        local::with(Local::released);
    }

    /// Marks a node as gone, and wakes those asleep behind it.
    fn leave(&self, node: &Node) {
        let holder = std::ptr::from_ref(node).addr();
        // [release] Release: pairs with the Acquire in `Walk::next`. After it the node may be re-used any time.
        let link = node
            .link
            .set_gone(prim::order!("release", Ordering::Release));
        debug_assert!(!link.is_gone(), "a range was released twice");
        // [sleeper] Read and marked at once.
        if link.has_sleeper() && prim::intact!("wake") {
            self.with_queue(|queue, wakeups| queue.holder_left(holder, wakeups));
        }
    }

    /// # Safety
    /// The token is this lock's.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        let node = token.node();
        // SAFETY: the token is proof that we hold the node.
        let link = unsafe { node.as_ref() }
            .link
            // [downgrade] Release: pairs with the Acquire in `Walk::next`.
            .set_shared(prim::order!("downgrade", Ordering::Release));
        if link.has_sleeper() && prim::intact!("downgrade-wake") {
            let holder = node.as_ptr().addr();
            self.with_queue(|queue, wakeups| queue.holder_downgraded(holder, wakeups));
        }
    }

    /// The one way to the queue: under its mutex, with the hint kept true, and wake-ups after.
    fn with_queue<R>(&self, f: impl FnOnce(&mut Queue, &mut Wakeups) -> R) -> R {
        let mut wakeups = Wakeups::default();
        let mut queue = self.queue.lock();
        let result = f(&mut queue, &mut wakeups);
        let claims = u32::try_from(queue.claims()).unwrap_or(u32::MAX);
        // Relaxed: a hint, and written under the mutex only. Not written in vain: it shares the head's line.
        if self.claims.load(Ordering::Relaxed) != claims {
            self.claims.store(claims, Ordering::Relaxed);
        }
        drop(queue);
        wakeups.deliver();
        result
    }
}

impl Token {
    #[inline]
    fn new(link: Link) -> Self {
        Self(link.non_null())
    }

    #[inline]
    fn link(&self) -> Link {
        Link::from_non_null(self.0)
    }

    #[inline]
    fn node(&self) -> NonNull<Node> {
        self.link().node().expect("a token has a node")
    }
}

/// A request that did not get its range at once.
struct Contender {
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

/// Where a request's node belongs, seen from another.
enum Place {
    Before,
    Behind,
    Conflict,
}

#[inline]
fn place(mine: &Claim, other: &Claim) -> Place {
    if mine.conflicts(other) {
        Place::Conflict
    } else if other.span.start() < mine.span.start() {
        Place::Behind
    } else {
        Place::Before
    }
}

/// Waits a little until a rival knows whether it stays.
fn await_decision(rival: &Node) {
    let mut spin = Spin::new(spin::ON_DECISION);
    while rival.is_tentative() && !rival.link.load(Ordering::Relaxed).is_gone() && spin.round() {}
}
