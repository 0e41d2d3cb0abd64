//! The protocol: insert, validate, release. The edges and invariants cited are the parent module's.

use super::contend::await_decision;
use super::index::Index;
use super::node::{Link, Node};
use super::policy::FastPath;
use super::tower::TallNode;
use super::walk::Walk;
use super::{Protocol, RawList, Token};
use crate::local::{self, Local, Pin};
use crate::range::inspect::{Claim, Deadlock};
use crate::range::raw::{Behind, Mode, Wait};
use crate::range::span::Span;
use crate::range::waiting::{Ageing, Contender, Refused};
use prim::atomic::{Ordering, fence_after_rmw};
use std::panic::Location;
use std::ptr::NonNull;

/// Insertions that may fail because others were faster, before that counts as having waited.
const TRIES: u32 = 16;

/// What became of one attempt to get a node in.
enum Attempt {
    /// In the list, after a walk of so many steps.
    Granted(Token, usize),
    /// A conflicting request is in the way. The node was never in the list.
    Blocked(NonNull<Node>),
    /// The same, but the node was in the list, and may still be linked (invariant 3).
    Withdrew(NonNull<Node>),
    /// Others inserted faster, time and again.
    Overtaken,
}

impl<P: Protocol, I: Index> RawList<P, I> {
    #[inline]
    #[track_caller]
    pub(super) fn acquire(&self, span: Span, mode: Mode, wait: Wait) -> Option<Token> {
        if mode == Mode::Shared {
            self.index.announce_shared(span);
        }
        match self.acquire_fast(span, mode) {
            Some(token) => Some(token),
            None => self.acquire_slowly(span, mode, wait, None),
        }
    }

    /// The same for a thread that holds ranges before this one: there is nothing for the fast path.
    ///
    /// # Safety
    /// `behind` tells of a range that ends before `span` starts, and that this thread holds in this lock, in that mode.
    #[track_caller]
    pub(super) unsafe fn acquire_behind(
        &self,
        span: Span,
        mode: Mode,
        wait: Wait,
        behind: Behind<'_, Token>,
    ) -> Option<Token> {
        if mode == Mode::Shared {
            self.index.announce_shared(span);
        }
        self.acquire_slowly(span, mode, wait, Some(behind))
    }

    /// The fast path: the list is empty, and this thread holds nothing by it already.
    #[inline]
    #[track_caller]
    fn acquire_fast(&self, span: Span, mode: Mode) -> Option<Token> {
        // Hints. The head itself is not looked at beforehand: that would cost more than all else here but the
        // compare-exchange.
        if self.is_crowded.load(Ordering::Relaxed) || self.room.has_claims() {
            return None;
        }
        let node = local::take_spare()?;
        // SAFETY: a spare node is known to its thread only.
        unsafe { Node::prepare(node, span, mode, Location::caller()) };
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
    #[track_caller]
    fn acquire_slowly(
        &self,
        span: Span,
        mode: Mode,
        wait: Wait,
        behind: Option<Behind<'_, Token>>,
    ) -> Option<Token> {
        let at = Location::caller();
        let outcome = local::with(|local| {
            let claim = Claim::new(span, mode, local.thread());
            self.contend(local, claim, at, wait, behind)
        });
        match outcome {
            Ok(token) => Some(token),
            Err(None) => None,
            // Here, and not where it was found, so that the panic is the caller's.
            Err(Some(deadlock)) => panic!("{deadlock}"),
        }
    }

    /// Tries and waits until the request is granted, may wait no longer, or would wait for its own thread.
    fn contend(
        &self,
        local: &'static Local,
        claim: Claim,
        at: &'static Location<'static>,
        wait: Wait,
        behind: Option<Behind<'_, Token>>,
    ) -> Result<Token, Option<Deadlock>> {
        let take_node = || {
            let node = self.index.take_node(local);
            // SAFETY: `take_node` makes it ours alone.
            unsafe { Node::prepare(node, claim.span, claim.mode, at) };
            node
        };
        let mut node = take_node();
        let mut contender = {
            let patience = self.policy.patience(self.room.patience(), claim.mode);
            Contender::new(local, claim, wait, patience, Ageing::Awake)
        };
        let outcome = loop {
            if let Err(refused) = self.room.gate(&mut contender, || self.held_by(local)) {
                debug_assert_eq!(refused, Refused::NoTime);
                break Err(None);
            }
            let pin = local.pin();
            if local.is_sweep_due() {
                local.swept(self.sweep(&pin));
            }
            let blocker = match self.attempt(&pin, node, &claim, behind) {
                Attempt::Granted(token, steps) => {
                    self.index.enter(&pin, node, steps);
                    break Ok(token);
                }
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
                    self.room.hurry(&mut contender)
                }
            };
            match wait {
                Ok(()) => {}
                Err(Refused::NoTime) => break Err(None),
                Err(Refused::WaitsForItself) => break Err(blocker),
            }
        };
        match outcome {
            Ok(token) => {
                local.acquired();
                Ok(self.arrive(&contender, token))
            }
            Err(own) => {
                local.put_back(node);
                self.room.give_up(&contender);
                Err(own.map(|own| {
                    // SAFETY: this thread holds it, so it is in the list.
                    let own = unsafe { own.as_ref() };
                    Deadlock {
                        asked: claim,
                        held: own.claim(own.look()),
                        at: own.at(),
                    }
                }))
            }
        }
    }

    /// What the thread holds in this lock. (What it holds by guards of a thread-local that is being destroyed may be
    /// missing.)
    fn held_by(&self, local: &'static Local) -> Vec<Claim> {
        if !local.may_hold_nodes() {
            return Vec::new();
        }
        let mut held = self.holders(local);
        held.retain(|holder| holder.thread == local.thread());
        held
    }

    /// Unlinks nodes that are gone from all of the list and its index: an insertion only does so on its way, and where
    /// nobody comes by they would pile up. Returns how many others there are.
    #[cold] // A pool ran out of nodes.
    fn sweep(&self, pin: &Pin) -> usize {
        let mut walk = Walk::from_head(pin, &self.head);
        let mut others = 0;
        while let Some((node, link)) = walk.next() {
            walk.trim();
            walk.pass(node, link);
            others += 1;
        }
        walk.trim();
        self.index.sweep(pin);
        others
    }

    /// Inserts a node where it belongs, and makes sure that nobody in the list conflicts with it.
    fn attempt(
        &self,
        pin: &Pin,
        node: NonNull<Node>,
        claim: &Claim,
        behind: Option<Behind<'_, Token>>,
    ) -> Attempt {
        // SAFETY: ours, and alive.
        let mine = unsafe { node.as_ref() };
        mine.set_tentative(P::NEEDS_VALIDATION);
        let attempt = self.insert(pin, node, claim, behind);
        if let Attempt::Granted(token, _) = &attempt
            && P::NEEDS_VALIDATION
            // The fast path's node is alone in the list: no rival, nothing to look for.
            && !token.link().is_fast()
            && let Err(rival) = self.validate(pin, mine, claim, behind)
        {
            self.leave(node);
            // Gone first, for rivals who wait for the decision. The node is not re-used before the pin is dropped.
            mine.set_tentative(false);
            return Attempt::Withdrew(rival);
        }
        mine.set_tentative(false);
        attempt
    }

    fn insert(
        &self,
        pin: &Pin,
        node: NonNull<Node>,
        claim: &Claim,
        behind: Option<Behind<'_, Token>>,
    ) -> Attempt {
        // SAFETY: ours, and alive.
        let mine = unsafe { node.as_ref() };
        let mut walk = self.walk_to(pin, claim, behind);
        let mut tries = 0;
        // As many as it takes who does not know where to begin.
        let mut steps = behind.map_or(0, |behind| behind.ranges);
        while tries < TRIES {
            // More than once, if the walk begins at a waypoint that leaves just then.
            while walk.is_cut_off() {
                walk = self.walk_to(pin, claim, behind);
            }
            if let Some((other, link)) = walk.next() {
                match place(claim, &other.claim(link)) {
                    Place::Behind => {
                        steps += 1;
                        tries += u32::from(walk.step(other, link).is_err());
                        continue;
                    }
                    Place::Conflict => return Attempt::Blocked(NonNull::from(other)),
                    Place::Before => {}
                }
            }
            let is_quiet = self.policy.fast_path == FastPath::On && walk.is_empty();
            let is_fast = is_quiet && !mine.is_tall();
            let link = if is_fast {
                Link::to(node).fast()
            } else {
                walk.link_to(node)
            };
            mine.link.prepare(walk.following(), claim.mode);
            if walk.insert(link).is_ok() {
                if self.is_crowded.load(Ordering::Relaxed) == is_quiet {
                    self.is_crowded.store(!is_quiet, Ordering::Relaxed);
                }
                let token = Token::new(if is_fast { link } else { Link::to(node) });
                return Attempt::Granted(token, steps);
            }
            tries += 1;
        }
        Attempt::Overtaken
    }

    /// A walk to where a request belongs, which will meet all that conflict with it and may be granted.
    ///
    /// It may begin behind what the thread holds before the range asked for, *in the same mode*. An exclusive node before
    /// that one ends before it starts (invariant 2), and so does not conflict. A shared one that starts before it and
    /// conflicts with an exclusive request behind it overlaps the thread's own range as well, which is exclusive. So it is
    /// not granted while the thread holds that; and if it finds that released in the end, it finds what was inserted
    /// before the release as well.
    fn walk_to<'a>(
        &'a self,
        pin: &'a Pin,
        claim: &Claim,
        behind: Option<Behind<'a, Token>>,
    ) -> Walk<'a> {
        let waypoint = self.index.waypoint(pin, claim).or_else(|| {
            let token = behind?.token;
            // [fast-behind] The mark is still there, perhaps: begin at the head, to remove it.
            let is_regular = !token.link().is_fast() || !prim::intact!("fast-behind");
            // SAFETY: the range is held by this thread as long as the token is borrowed, so the node is in the list.
            is_regular.then(|| unsafe { token.node().as_ref() })
        });
        match waypoint {
            Some(waypoint) => Walk::behind(pin, &self.head, waypoint),
            None => Walk::from_head(pin, &self.head),
        }
    }

    /// Looks for a rival that was inserted elsewhere at about the same time, and stays.
    fn validate(
        &self,
        pin: &Pin,
        mine: &Node,
        claim: &Claim,
        behind: Option<Behind<'_, Token>>,
    ) -> Result<(), NonNull<Node>> {
        // [handshake] Both sides: the insertion is before the look.
        match claim.mode {
            Mode::Shared if !prim::intact!("reader-handshake") => {}
            Mode::Exclusive if !prim::intact!("writer-handshake") => {}
            _ => fence_after_rmw(),
        }
        let mut walk = match claim.mode {
            Mode::Shared => Walk::behind(pin, &self.head, mine),
            Mode::Exclusive => self.walk_to(pin, claim, behind),
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
                if claim.mode == Mode::Shared {
                    walk.trim();
                }
                walk.pass(other, link);
            }
        }
        if claim.mode == Mode::Shared {
            walk.trim();
        }
        Ok(())
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
        self.release_slowly(node);
    }

    #[cold] // Somebody else has walked the list meanwhile.
    fn release_slowly(&self, node: NonNull<Node>) {
        self.leave(node);
        local::with(Local::released);
    }

    /// Marks a node of ours as gone, and wakes those asleep behind it.
    fn leave(&self, node: NonNull<Node>) {
        let holder = node.as_ptr().addr();
        // SAFETY: ours, so it stays in the list until it is marked.
        if let Some(tall) = unsafe { TallNode::of(node) } {
            // SAFETY: as above.
            let tall = unsafe { tall.as_ref() };
            // SAFETY: as above.
            unsafe { tall.leave_levels() };
        }
        // [release] Release: pairs with the Acquire in `Walk::next`. After it the node may be re-used any time.
        // SAFETY: as above.
        let link = unsafe { node.as_ref() }
            .link
            .set_gone(prim::order!("release", Ordering::Release));
        debug_assert!(!link.is_gone(), "a range was released twice");
        // [sleeper] Read and marked at once.
        if link.has_sleeper() && prim::intact!("wake") {
            self.room
                .with_queue(|queue, wakeups| queue.holder_left(holder, wakeups));
        }
    }

    /// # Safety
    /// The token is this lock's.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        let node = token.node();
        // SAFETY: the token is proof that we hold the node.
        let mine = unsafe { node.as_ref() };
        self.index.announce_shared(mine.span());
        let link = mine
            .link
            // [downgrade] Release: pairs with the Acquire in `Walk::next`.
            .set_shared(prim::order!("downgrade", Ordering::Release));
        if link.has_sleeper() && prim::intact!("downgrade-wake") {
            let holder = node.as_ptr().addr();
            self.room
                .with_queue(|queue, wakeups| queue.holder_downgraded(holder, wakeups));
        }
    }
}

impl Token {
    #[inline]
    pub(super) fn new(link: Link) -> Self {
        Self(link.non_null())
    }

    #[inline]
    fn link(&self) -> Link {
        Link::from_non_null(self.0)
    }

    #[inline]
    pub(super) fn node(&self) -> NonNull<Node> {
        self.link().node().expect("a token has a node")
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
