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

mod validate;

use super::attempt::{Insertion, Outside};
use super::node::{Link, Node};
use super::policy::FastPath;
use super::skip::Index;
use super::walk::Walk;
use super::{Behalf, Blocker, List, Protocol, RawList, Token, Tried};
use crate::range::id::OwnerId;
use crate::range::inspect::{Request, SelfDeadlock};
use crate::range::order::{Order, Relation};
use crate::range::raw::{Ask, Behind, Mode, Wait};
use crate::range::thread::{self, Pin, ThreadRecord};
use crate::range::wait::{Acquisition, Attempt, Holder, HolderId};
use crate::range::wait::{Refused, Standing, WaitQueue, Waiter};
use prim::atomic::Ordering;
use prim::debug;
use std::cell::Cell;
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
        let fast = match ask.behind() {
            // The list is not empty.
            Some(_) => None,
            None if I::NAMING => {
                let at = Location::caller();
                self.list
                    .acquire_fast_naming(&self.wait_queue, ask.span, mode, at)
            }
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
                ListAcquisition::new(list, queue, record, request, at, wait, ask.behind());
            let patience = list.policy.patience(self.wait_queue.patience(), mode);
            let waiter = Waiter::new(queue, record, request, wait, patience, at);
            let outcome = waiter.acquire(&mut acquisition, None);
            acquisition.end(outcome.as_ref().ok());
            outcome
        });
        // Outside the closure, so that a panic names the caller's line.
        Refused::answer(outcome)
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
    wait: Wait,
    /// What the thread holds before the range, if that is known. The range of the token ends before the request's range
    /// starts, and is held in this lock and in the request's mode.
    behind: Option<Behind<'a, Token>>,
    /// Whose request it is, if not the thread's.
    behalf: Option<&'a Behalf<'a>>,
    /// The node to insert. Alive, and known to this thread only unless it is in the list.
    node: NonNull<Node>,
    /// Whether an attempt came across another thread. Only of interest to a lock that may move.
    has_met_others: bool,
    /// Whether it found [`MANY`] nodes. Only of interest to a lock that may move.
    has_met_many: bool,
    /// What it holds elsewhere, as far as it has looked.
    kept: I::Noted,
    /// Whether the node is not this acquisition's any more: it is, or was, in the list, or has gone back.
    is_over: Cell<bool>,
    /// Whether foreign code has panicked while the node was in the list.
    has_panicked: Cell<bool>,
}

impl<P: Protocol, I: Index> Acquisition for ListAcquisition<'_, P, I> {
    type Token = Token;
    type Blocker = Blocker;

    #[inline]
    fn attempt(&mut self) -> Attempt<Token, Blocker> {
        match self.try_once() {
            Tried::Granted(token) => Attempt::Granted(token),
            Tried::Blocked(blocker) => Attempt::Blocked(blocker),
            Tried::Overtaken | Tried::Moved | Tried::Refused => Attempt::Overtaken,
        }
    }

    fn look(&self, blocker: &Blocker) -> Standing {
        if blocker.is_gone() {
            Standing::Gone
        } else if blocker.is_tentative() {
            Standing::Undecided
        } else {
            Standing::Stays
        }
    }

    fn deadlock_with(&self, blocker: &Blocker) -> Option<SelfDeadlock> {
        let own = blocker.node();
        // A piece is granted whoever is in its way, and one that is not decided withdraws.
        let may_stay = !own.is_tentative() && !self.behalf.is_some_and(|behalf| behalf.is_piece());
        // What another thread has locked for the owner, that one may release.
        let is_here =
            self.blocks(own.request(Link::NULL).owner) && own.thread() == self.record.thread();
        let is_ours = is_here && may_stay && !self.replaces(own);
        (is_ours && !blocker.is_gone()).then(|| {
            let (asked, held) = (self.request, own.request(own.load()));
            let index = &self.list.index;
            SelfDeadlock {
                asked,
                held,
                at: own.at(),
                ranges: index.describe(asked.span).zip(index.describe(held.span)),
            }
        })
    }

    fn mark(&self, blocker: &Blocker) -> Option<Holder> {
        let node = blocker.node();
        // [sleeper] One read-modify-write marks the link and loads it. Relaxed: both sides change this one word, and
        // the queue's mutex orders the entry.
        let link = node.link.set_sleeper(Ordering::Relaxed);
        let request = node.request(link);
        let has_left = link.is_gone() && prim::intact!("sleeper");
        // The attempt has found that the ranges overlap. The mode may have changed since.
        let may_stay = request.mode.conflicts(self.request.mode);
        (!has_left && may_stay).then(|| Holder {
            id: node.id(),
            request,
            at: debug::CHECKS.then(|| node.at()),
        })
    }

    fn held(&self) -> Vec<Request> {
        if !self.may_hold() {
            return Vec::new();
        }
        let mut held = Vec::new();
        self.list.each_holder(self.record, |node, holder| {
            if self.blocks(holder.owner) {
                // Another thread of the owner may release it meanwhile.
                self.list.index.keep(&self.kept, node);
                held.push(holder);
            }
        });
        held.extend(self.replaced());
        held
    }

    fn adopt(&self, token: &mut Token, _: &Request) -> HolderId {
        let node = token.node();
        // [inherit] As if each sleeper had marked the link itself. Relaxed: this thread's own release comes later.
        if prim::intact!("inherit") {
            // SAFETY: this thread holds the node, so it is in the list and not reused.
            unsafe { node.as_ref() }.link.set_sleeper(Ordering::Relaxed);
        }
        // [no-fast-release] A fast release does not check for sleepers.
        if prim::intact!("no-fast-release") {
            *token = Token::new(Link::to(node));
        }
        node.as_ptr().addr()
    }
}

impl<'a, P: Protocol, I: Index> ListAcquisition<'a, P, I> {
    /// Whether it may hold a range of the lock.
    pub(in crate::range) fn may_hold(&self) -> bool {
        self.blocks_thread() && self.record.may_hold_nodes()
            || self
                .behalf
                .is_some_and(|behalf| behalf.owner.asks_or_holds() > 1)
            || self.replaced().is_some()
    }

    pub(in crate::range) fn new(
        list: &'a List<P, I>,
        queue: &'a WaitQueue,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        wait: Wait,
        behind: Option<Behind<'a, Token>>,
    ) -> Self {
        Self {
            list,
            queue,
            record,
            request,
            at,
            wait,
            behind,
            behalf: None,
            node: list.fresh_node(record, &request, at),
            has_met_others: false,
            has_met_many: false,
            kept: I::Noted::default(),
            is_over: Cell::new(false),
            has_panicked: Cell::new(false),
        }
    }

    /// The request is an owner's.
    #[inline]
    pub(in crate::range) fn on_behalf(&mut self, behalf: &'a Behalf<'a>) {
        self.behalf = Some(behalf);
    }

    /// Whether the request replaces that node, which then is not in the way.
    #[inline]
    fn replaces(&self, other: &Node) -> bool {
        self.behalf
            .is_some_and(|behalf| behalf.replaces(other.id()))
    }

    /// What the request replaces. It is held, also if its owner is anonymous and nobody knows what else that one holds.
    pub(in crate::range) fn replaced(&self) -> Option<Request> {
        self.behalf?.replaced()
    }

    /// Whether that one does not go on while the request waits: a request of an owner blocks the thread as well, unless
    /// it is a task's.
    pub(in crate::range) fn blocks(&self, owner: OwnerId) -> bool {
        let thread = OwnerId::of_thread(self.record.thread());
        owner.is_same(self.request.owner) || self.blocks_thread() && owner == thread
    }

    /// Whether the running thread waits for it, so that what the thread holds stays held. A task's does not.
    pub(in crate::range) fn blocks_thread(&self) -> bool {
        self.behalf.is_none_or(Behalf::blocks_thread)
    }

    /// How many ranges are held by whose request it is. A hint.
    fn holds(&self) -> usize {
        self.behalf.map_or_else(
            || self.record.parts.list.holds(),
            |behalf| behalf.owner.asks_or_holds(),
        )
    }

    /// Ends the acquisition, with the token that its lock has granted, if any. The node stays in the list if it is that
    /// token's, or goes back to the pool.
    pub(in crate::range) fn end(self, granted: Option<&Token>) {
        self.is_over.set(true);
        if granted.is_some_and(|token| token.node() == self.node) {
            if self.behalf.is_none() {
                self.record.parts.list.acquired();
            }
        } else {
            self.list.put_back(self.record, self.node);
        }
    }

    /// Whether the last attempt came across another thread, in a lock that may move.
    pub(in crate::range) fn has_met_others(&self) -> bool {
        self.has_met_others
    }

    /// Whether the last attempt found [`MANY`] nodes, in a lock that may move.
    pub(in crate::range) fn has_met_many(&self) -> bool {
        self.has_met_many
    }

    /// Tries once to get the range in the list.
    #[inline]
    pub(in crate::range) fn try_once(&mut self) -> Tried {
        self.try_beside(|_| Ok(()))
    }

    /// Tries once, where `look` must find nothing in the way, too. It looks once the node is inserted, after a fence.
    /// If that ends the acquisition, its node is used up: it is neither tried again nor [ended](Self::end).
    #[inline]
    pub(in crate::range) fn try_beside(
        &mut self,
        look: impl FnOnce(&Pin) -> Result<(), Outside>,
    ) -> Tried {
        let pin = self.record.pin();
        if self.record.parts.list.is_sweep_due(|| self.record.random()) {
            self.record.parts.list.swept(self.list.sweep(&pin));
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
                self.take_fresh_node();
                return Tried::Moved;
            }
            Insertion::Refused => return Tried::Refused,
            Insertion::Blocked(blocker) => blocker,
            Insertion::Withdrew(blocker) => {
                // [fresh-node] The old node may still be linked.
                if prim::intact!("fresh-node") {
                    self.take_fresh_node();
                }
                blocker
            }
        };
        // SAFETY: a walk under the pin has met the node.
        Tried::Blocked(unsafe { Blocker::new(blocker, pin) })
    }

    /// Takes a node in place of one that was in the list.
    fn take_fresh_node(&mut self) {
        self.node = self.list.fresh_node(self.record, &self.request, self.at);
        self.is_over.set(false);
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
            && let Err(withdrawal) = self.validate_published(pin).and_then(|()| look(pin).map_err(Insertion::from))
        {
            self.list.retract(self.queue, self.node);
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
        let insertion = self.insert_among(pin, |asked| {
            has_met_others |= I::MAY_MOVE && self.is_another_thread(asked);
        });
        self.has_met_others = has_met_others;
        insertion
    }

    /// Whether another thread is in the list: it has asked for what the walk has met; or it has changed a link that the
    /// walk was about to change, and `asked` is `None`. Which thread has asked for what an owner holds is not known.
    #[inline]
    fn is_another_thread(&self, asked: Option<OwnerId>) -> bool {
        let here = self.record.thread();
        asked.is_none_or(|owner| owner.thread().is_some_and(|there| there != here))
    }

    #[inline]
    fn insert_among(&self, pin: &Pin, mut meets: impl FnMut(Option<OwnerId>)) -> Insertion {
        let list = self.list;
        let mine = self.node();
        let mut walk = self.walk(pin);
        let mut tries = 0;
        // From the head, the walk would have passed at least what this thread holds before the place where it begins.
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
                meets(Some(theirs.owner));
                let relation = match list.index.order().relation(&theirs, &self.request) {
                    // Its range starts no later.
                    Relation::Conflict if self.replaces(other) => Relation::Earlier,
                    relation => relation,
                };
                match relation {
                    Relation::Earlier => {
                        steps += 1;
                        if walk.step(other, link).is_err() {
                            tries += 1;
                            meets(None);
                        }
                        continue;
                    }
                    Relation::Conflict => return Insertion::Blocked(NonNull::from(other)),
                    Relation::Later => {}
                }
            }
            // [try-looks]
            if self.wait == Wait::Never
                && prim::intact!("try-looks")
                && let Some(other) = self.blocker_ahead(&walk)
            {
                return Insertion::Blocked(other);
            }
            let is_quiet = list.policy.fast_path == FastPath::On && walk.is_empty();
            // So it leaves no node behind that is gone, which would keep all later requests from the fast path.
            let is_fast = is_quiet && list.index.make_plain(self.node);
            let link = if is_fast {
                Link::to(self.node).fast()
            } else {
                walk.link_to(self.node)
            };
            mine.link.prepare(walk.following(), self.request.mode);
            if walk.insert(link).is_ok() {
                // Whatever panics from here on: the node does not go back to the pool.
                self.is_over.set(true);
                if list.is_crowded.load(Ordering::Relaxed) == is_quiet {
                    list.is_crowded.store(!is_quiet, Ordering::Relaxed);
                }
                let token = Token::new(if is_fast { link } else { Link::to(self.node) });
                return Insertion::Granted(token, steps);
            }
            tries += 1;
            meets(None);
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
}
