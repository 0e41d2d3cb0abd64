//! How a range is acquired: insert a node, then make sure that no conflicting node is in the list.
//!
//! ```text
//!   acquire --> fast path: the list was empty ----------------------------> granted
//!      |
//!      +------> the waiting loop (`range/wait/`), whose attempt is:
//!
//!                 walk to the node's place --> insert --> validate -------> granted
//!                            |                   |            |
//!                            v                   v            v
//!                 blocked: a conflicting    start over   withdrew: mark our node gone,
//!                 node is on the way                     the other node is the blocker
//! ```
//!
//! The edges and invariants cited are the parent module's.

use super::attempt::{Insertion, Outside, Relation, await_decision, relation};
use super::node::{Link, Node};
use super::policy::FastPath;
use super::skip::Index;
use super::walk::Walk;
use super::{Behalf, Blocker, List, Protocol, RawList, Token, Tried};
use crate::range::inspect::{Deadlock, Request};
use crate::range::owner::OwnerId;
use crate::range::raw::{Ask, Behind, Mode};
use crate::range::span::Span;
use crate::range::thread::{self, Local, Pin, ThreadRecord};
use crate::range::wait::{Acquisition, Attempt, Holder, HolderId};
use crate::range::wait::{Refused, Reserves, WaitQueue, Waiter};
use prim::atomic::{Ordering, fence_after_rmw};
use std::panic::Location;
use std::ptr::NonNull;

/// How often an insertion may fail because other threads were faster, before the request counts as having waited.
const TRIES: u32 = 16;

/// So many ranges held at a time are worth an index: to walk past them costs more than a search in its levels, and more
/// than to enter these. (A few in models, which have room for few.)
pub(in crate::range) const MANY: usize = prim::sized(32, 4);

impl<P: Protocol, I: Index> RawList<P, I> {
    #[inline]
    #[track_caller]
    pub(super) fn acquire(&self, mode: Mode, ask: Ask<'_, Token>) -> Option<Token> {
        if mode == Mode::Shared {
            self.list.index.announce_shared(ask.span);
        }
        let fast = match ask.behind() {
            // The list is not empty.
            Some(_) => None,
            None => {
                // SAFETY: this thread runs, and the reference does not leave it. (No closure: it would be the caller.)
                let local = unsafe { thread::local().as_ref() };
                self.list
                    .acquire_fast(&self.wait_queue, local, ask.span, mode)
            }
        };
        match fast {
            Some(token) => Some(token),
            None => self.acquire_slowly(mode, ask),
        }
    }

    #[cold] // The list is not empty, or newcomers have to give way.
    #[track_caller]
    fn acquire_slowly(&self, mode: Mode, ask: Ask<'_, Token>) -> Option<Token> {
        let Ask { span, wait, .. } = ask;
        let at = Location::caller();
        let outcome = thread::with_record(|record| {
            let request = Request::new(span, mode, record.thread());
            let queue = &self.wait_queue;
            let list = &self.list;
            let mut acquisition =
                ListAcquisition::new(list, queue, record, request, at, ask.behind());
            let patience = list.policy.patience(self.wait_queue.patience(), mode);
            let waiter = Waiter::new(queue, record, request, wait, patience);
            let outcome = waiter.acquire(&mut acquisition, None);
            acquisition.end(outcome.as_ref().ok());
            outcome
        });
        // Outside the closure, so that a panic names the caller's line.
        Refused::answer(outcome)
    }
}

impl<P: Protocol, I: Index> List<P, I> {
    /// The fast path: the list is empty, and this thread's spare node is not in use.
    #[inline]
    #[track_caller]
    pub(in crate::range) fn acquire_fast(
        &self,
        queue: &WaitQueue,
        local: &Local,
        span: Span,
        mode: Mode,
    ) -> Option<Token> {
        // Hints. The head is not loaded before the compare-exchange: the load would cost more than everything else here
        // but the compare-exchange.
        if self.is_crowded.load(Ordering::Relaxed) || queue.has_reservations() {
            return None;
        }
        let node = local.spare.take()?;
        // SAFETY: a spare node is known to its thread only, and this thread has just taken it.
        unsafe { Node::prepare(node, span, mode, Location::caller()) };
        let fast = Link::to(node).fast();
        // [fast-acquire] Acquire: pairs with [fast-release] and [unlink]. [fast-publish] Release: pairs with
        // [publish-acquire].
        let success = prim::order!(
            "fast-publish",
            prim::order!("fast-acquire", Ordering::AcqRel, Ordering::Release),
            Ordering::Acquire
        );
        let inserted = self
            .head
            .replace(Link::NULL, fast, success, Ordering::Relaxed);
        if inserted.is_err() {
            local.return_spare(node);
            return None;
        }
        Some(Token::new(fast))
    }
}

/// One request to a list lock, in the waiting loop.
pub(in crate::range) struct ListAcquisition<'a, P, I: Index> {
    list: &'a List<P, I>,
    /// Where requests wait that are blocked by the node.
    queue: &'a WaitQueue,
    record: &'static ThreadRecord,
    request: Request,
    at: &'static Location<'static>,
    /// What the thread holds before the range, if that is known. The range of the token ends before the request's range
    /// starts, and is held in this lock and in the request's mode.
    behind: Option<Behind<'a, Token>>,
    /// Whose request it is, if not the thread's.
    behalf: Option<Behalf<'a>>,
    /// The node to insert. Alive, and known to this thread only unless it is in the list.
    node: NonNull<Node>,
    /// Whether an attempt came across another thread's request. Only of interest to a lock that may move.
    has_met_others: bool,
    /// Whether it found [`MANY`] nodes. Only of interest to a lock that may move.
    has_met_many: bool,
}

impl<P: Protocol, I: Index> Acquisition for ListAcquisition<'_, P, I> {
    type Token = Token;
    type Blocker = Blocker;

    // A node leaves once, and wakes its sleepers then.
    const RESERVES: Reserves = Reserves::WhenWoken;

    #[inline]
    fn attempt(&mut self) -> Attempt<Token, Blocker> {
        match self.try_once() {
            Tried::Granted(token) => Attempt::Granted(token),
            Tried::Blocked(blocker) => Attempt::Blocked(blocker),
            Tried::Overtaken | Tried::Moved | Tried::Refused => Attempt::Overtaken,
        }
    }

    fn is_blocked_by(&self, blocker: &Blocker) -> bool {
        !blocker.is_gone()
    }

    fn sees_withdrawal_of(&self, blocker: &Blocker) -> bool {
        await_decision(blocker.node());
        blocker.is_gone()
    }

    fn deadlock_with(&self, blocker: &Blocker) -> Option<Deadlock> {
        let own = blocker.node();
        // A piece is granted whoever is in its way, and one that is not decided withdraws.
        let may_stay = !own.is_tentative() && !self.behalf.is_some_and(|behalf| behalf.is_piece());
        let is_ours = self.blocks(own.request(Link::NULL).owner) && may_stay && !self.replaces(own);
        (is_ours && !blocker.is_gone()).then(|| Deadlock {
            asked: self.request,
            held: own.request(own.load()),
            at: own.at(),
        })
    }

    fn mark(&self, blocker: &Blocker) -> Option<Holder> {
        let node = blocker.node();
        // [sleeper] One read-modify-write marks the link and loads it. Relaxed: both sides change this one word, and
        // the queue's mutex orders the entry.
        let link = node.link.set_sleeper(Ordering::Relaxed);
        let request = node.request(link);
        let has_left = link.is_gone() && prim::intact!("sleeper");
        (!has_left && request.conflicts(&self.request)).then(|| Holder {
            id: node.id(),
            request,
        })
    }

    fn held(&self) -> Vec<Request> {
        if !self.may_hold() {
            return Vec::new();
        }
        let mut held = self.list.holders(self.record);
        held.retain(|holder| self.blocks(holder.owner));
        held
    }

    fn may_hold(&self) -> bool {
        self.record.may_hold_nodes()
            || self
                .behalf
                .is_some_and(|behalf| behalf.owner.asks_or_holds() > 1)
    }

    fn adopt(&self, token: &Token, _: &Request) -> HolderId {
        token.node().as_ptr().addr()
    }

    fn adopted(&self, token: Token) -> Token {
        let node = token.node();
        // [inherit] As if each sleeper had marked the link itself. Relaxed: this thread's own release comes later.
        if prim::intact!("inherit") {
            // SAFETY: this thread holds the node, so it is in the list and not reused.
            unsafe { node.as_ref() }.link.set_sleeper(Ordering::Relaxed);
        }
        // [no-fast-release] A fast release does not check for sleepers.
        if prim::intact!("no-fast-release") {
            Token::new(Link::to(node))
        } else {
            token
        }
    }
}

impl<'a, P: Protocol, I: Index> ListAcquisition<'a, P, I> {
    pub(in crate::range) fn new(
        list: &'a List<P, I>,
        queue: &'a WaitQueue,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        behind: Option<Behind<'a, Token>>,
    ) -> Self {
        Self {
            list,
            queue,
            record,
            request,
            at,
            behind,
            behalf: None,
            node: list.fresh_node(record, &request, at),
            has_met_others: false,
            has_met_many: false,
        }
    }

    /// The request is an owner's.
    pub(in crate::range) fn on_behalf(self, behalf: Behalf<'a>) -> Self {
        let behalf = Some(behalf);
        Self { behalf, ..self }
    }

    /// Whether the request replaces that node, which then is not in the way.
    #[inline]
    fn replaces(&self, other: &Node) -> bool {
        self.behalf.is_some_and(|behalf| behalf.replaces(other))
    }

    /// Whether that one does not go on while the request waits: a request of an owner blocks the thread as well.
    pub(in crate::range) fn blocks(&self, owner: OwnerId) -> bool {
        owner == self.request.owner || owner == OwnerId::of_thread(self.record.thread())
    }

    /// How many ranges are held by whose request it is. A hint.
    fn holds(&self) -> usize {
        self.behalf.map_or_else(
            || self.record.list.holds(),
            |behalf| behalf.owner.asks_or_holds(),
        )
    }

    /// Ends the acquisition, with the token that its lock has granted, if any. The node stays in the list if it is that
    /// token's, or goes back to the pool.
    pub(in crate::range) fn end(self, granted: Option<&Token>) {
        if granted.is_some_and(|token| token.node() == self.node) {
            if self.behalf.is_none() {
                self.record.list.acquired();
            }
        } else {
            self.record.list.put_back(self.node);
        }
    }

    /// Whether the last attempt came across another thread's request, in a lock that may move.
    pub(in crate::range) fn has_met_others(&self) -> bool {
        self.has_met_others
    }

    /// Whether the last attempt found [`MANY`] nodes, in a lock that may move.
    pub(in crate::range) fn has_met_many(&self) -> bool {
        self.has_met_many
    }

    /// Whether at least [`MANY`] nodes follow this request's.
    fn is_before_many(&self, pin: &Pin) -> bool {
        let mut walk = Walk::behind(pin, &self.list.head, self.node());
        let mut pass = || walk.next().map(|(node, link)| walk.pass(node, link));
        (0..MANY).all(|_| pass().is_some())
    }

    /// Tries once to get the range in the list.
    #[inline]
    pub(in crate::range) fn try_once(&mut self) -> Tried {
        self.try_beside(|_| Ok(()))
    }

    /// The same, if `look` finds nothing outside of the list in the way. It looks once the node is inserted, after a
    /// fence. If that ends the acquisition, its node is used up: it is neither tried again nor [ended](Self::end).
    #[inline]
    pub(in crate::range) fn try_beside(
        &mut self,
        look: impl FnOnce(&Pin) -> Result<(), Outside>,
    ) -> Tried {
        let pin = self.record.pin();
        if self.record.list.is_sweep_due(|| self.record.random()) {
            self.record.list.swept(self.list.sweep(&pin));
        }
        self.has_met_others = false;
        let blocker = match self.insert_and_validate(&pin, look) {
            Insertion::Granted(token, steps) => {
                if I::MAY_MOVE {
                    let looks = || prim::wins(self.record.random(), MANY.ilog2()) > 0;
                    self.has_met_many = steps >= MANY || looks() && self.is_before_many(&pin);
                }
                // Where this thread holds many ranges, later walks will be long, although this one was short.
                let passed = steps.max(self.holds());
                self.list.index.enter(&pin, self.node, passed);
                return Tried::Granted(token);
            }
            Insertion::Overtaken => return Tried::Overtaken,
            Insertion::Moved => return Tried::Moved,
            Insertion::WithdrewMoved => {
                self.node = self.list.fresh_node(self.record, &self.request, self.at);
                return Tried::Moved;
            }
            Insertion::Refused => return Tried::Refused,
            Insertion::Blocked(blocker) => blocker,
            Insertion::Withdrew(blocker) => {
                // [fresh-node] The old node may still be linked.
                if prim::intact!("fresh-node") {
                    self.node = self.list.fresh_node(self.record, &self.request, self.at);
                }
                blocker
            }
        };
        // SAFETY: a walk under the pin has met the node.
        Tried::Blocked(unsafe { Blocker::new(blocker, pin) })
    }

    fn node(&self) -> &Node {
        // SAFETY: the request's own node, which is alive.
        unsafe { self.node.as_ref() }
    }

    /// Inserts the node where it belongs, and makes sure that no node in the list conflicts with it, and nothing
    /// outside of it.
    #[inline]
    fn insert_and_validate(
        &mut self,
        pin: &Pin,
        look: impl FnOnce(&Pin) -> Result<(), Outside>,
    ) -> Insertion {
        self.node().set_tentative(P::NEEDS_VALIDATION);
        let insertion = self.insert(pin);
        let mine = self.node();
        if let Insertion::Granted(token, _) = &insertion
            && P::NEEDS_VALIDATION
            // The fast path's node is alone in the list: there is no rival.
            && !token.link().is_fast()
            && let Err(withdrawal) = self.validate(pin).and_then(|()| look(pin).map_err(Insertion::from))
        {
            List::<P, I>::leave(self.queue, self.node);
            // After the mark, because rivals wait for the decision. The node is not reused before the pin is dropped.
            mine.set_tentative(false);
            return withdrawal;
        }
        mine.set_tentative(false);
        insertion
    }

    #[inline]
    fn insert(&mut self, pin: &Pin) -> Insertion {
        let mut has_met_others = false;
        let insertion = self.insert_among(pin, |other| {
            has_met_others |= I::MAY_MOVE && other.owner != self.request.owner;
        });
        self.has_met_others = has_met_others;
        insertion
    }

    #[inline]
    fn insert_among(&self, pin: &Pin, mut meets: impl FnMut(&Request)) -> Insertion {
        let list = self.list;
        let mine = self.node();
        let mut walk = self.walk(pin);
        let mut tries = 0;
        // A walk from the head would have passed at least the ranges that this thread holds before the place where this
        // walk begins.
        let mut steps = self.behind.map_or(0, |behind| behind.ranges);
        while tries < TRIES {
            // [cut-off] More than once, if the walk begins at a start hint that leaves just then.
            while walk.is_cut_off() {
                walk = self.walk(pin);
            }
            if I::MAY_MOVE && walk.has_left(&list.head) {
                return Insertion::Moved;
            }
            if let Some((other, link)) = walk.next() {
                let theirs = other.request(link);
                meets(&theirs);
                let relation = match relation(&theirs, &self.request) {
                    // Its range starts no later.
                    Relation::Conflict if self.replaces(other) => Relation::Earlier,
                    relation => relation,
                };
                match relation {
                    Relation::Earlier => {
                        steps += 1;
                        tries += u32::from(walk.step(other, link).is_err());
                        continue;
                    }
                    Relation::Conflict => return Insertion::Blocked(NonNull::from(other)),
                    Relation::Later => {}
                }
            }
            let is_quiet = list.policy.fast_path == FastPath::On && walk.is_empty();
            // The node of a fast release becomes the releasing thread's spare.
            let is_fast = is_quiet && !mine.is_tall() && self.behalf.is_none();
            let link = if is_fast {
                Link::to(self.node).fast()
            } else {
                walk.link_to(self.node)
            };
            mine.link.prepare(walk.following(), self.request.mode);
            if walk.insert(link).is_ok() {
                if list.is_crowded.load(Ordering::Relaxed) == is_quiet {
                    list.is_crowded.store(!is_quiet, Ordering::Relaxed);
                }
                let token = Token::new(if is_fast { link } else { Link::to(self.node) });
                return Insertion::Granted(token, steps);
            }
            tries += 1;
        }
        Insertion::Overtaken
    }

    /// A walk to the request's place, which meets all nodes that conflict with it and may be granted.
    ///
    /// It may begin behind the range that the thread holds before its request *in the same mode*. Two kinds of nodes
    /// before that range could conflict:
    ///
    /// - An exclusive node ends before that range starts (invariant 2), hence before the request does.
    /// - A shared node conflicts only with an exclusive request. The range held is then exclusive, too, and the shared
    ///   node overlaps it. So the shared node is not granted while the thread holds that range. If the reader's
    ///   validation finds the range released already, it also finds our node, which was inserted before that release.
    #[inline]
    fn walk<'p>(&'p self, pin: &'p Pin) -> Walk<'p> {
        let behind = || {
            let token = self.behind?.token;
            // [demote-own] The fast path's mark may still be there: begin at the head, to remove it.
            let is_regular = !token.link().is_fast() || !prim::intact!("demote-own");
            // SAFETY: this thread holds the range as long as the token is borrowed, so the node is in the list.
            is_regular.then(|| unsafe { token.node().as_ref() })
        };
        self.list.walk_to(pin, &self.request, behind)
    }

    /// Searches for a rival that was inserted elsewhere at about the same time, and stays.
    #[inline]
    fn validate(&self, pin: &Pin) -> Result<(), Insertion> {
        let mine = self.node();
        let request = &self.request;
        // Both sides insert, fence and then walk [reader-handshake] [writer-handshake].
        match request.mode {
            Mode::Shared if !prim::intact!("reader-handshake") => {}
            Mode::Exclusive if !prim::intact!("writer-handshake") => {}
            _ => fence_after_rmw(),
        }
        // [moved-check] Requests in slots do not meet a node that is inserted after their walk. Relaxed: the fence
        // orders it.
        if I::MAY_MOVE
            && self.list.head.load(Ordering::Relaxed).is_moved()
            && prim::intact!("moved-check")
        {
            return Err(Insertion::WithdrewMoved);
        }
        let mut walk = match request.mode {
            Mode::Shared => Walk::behind(pin, &self.list.head, mine),
            Mode::Exclusive => self.walk(pin),
        };
        while let Some((other, link)) = walk.next() {
            let theirs = other.request(link);
            if std::ptr::eq(other, mine) || theirs.span.start() > request.span.last() {
                break;
            }
            // [reader-validation] [writer-validation]
            let is_checked = match request.mode {
                Mode::Shared => prim::intact!("reader-validation"),
                Mode::Exclusive => prim::intact!("writer-validation"),
            };
            if is_checked && theirs.conflicts(request) && !self.replaces(other) {
                if self.list.policy.preference.favours(request.mode) {
                    await_decision(other);
                }
                // Relaxed: if the rival is gone or shared by now, the walk meets it again and acquires.
                let link = other.link.load(Ordering::Relaxed);
                if !link.is_gone() && other.request(link).conflicts(request) {
                    // [withdraw] A request that waited inside the list would block requests that conflict with it alone
                    // (invariant 4).
                    if prim::intact!("withdraw") {
                        return Err(Insertion::Withdrew(NonNull::from(other)));
                    }
                    prim::thread::yield_now();
                }
            } else {
                if request.mode == Mode::Shared {
                    walk.trim();
                }
                walk.pass(other, link);
            }
        }
        if request.mode == Mode::Shared {
            walk.trim();
        }
        Ok(())
    }
}
