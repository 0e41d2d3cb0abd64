//! What owners hold: nodes like those of threads, and released by any thread.
//!
//! A fast path takes the node that the thread keeps ready for owners, or one of its pool. The thread that releases
//! takes the node over, since no other thread has read it while the mark stood [demote].
//!
//! A request may replace a node that its owner holds: then that node is not in its way. The edges cited are the parent
//! module's.

use super::node::{Link, Node};
use super::skip::Index;
use super::{List, ListAcquisition, Protocol, RawList, SharedExclusive, Token};
use crate::range::inspect::Request;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Asked, Mode, RawOwned, RawOwnedMutex, Replaced};
use crate::range::sought::Sought;
use crate::range::span::Span;
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{
    Acquisition, Attempt, HolderId, Refused, Runner, WaitQueue, Waiter, at_once,
};
use std::panic::Location;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

/// For whom a request is made, and what of that owner it replaces.
#[derive(Clone, Copy)]
pub(in crate::range) struct Behalf<'a> {
    pub(in crate::range) owner: &'a Owner,
    replaced: Replaces,
    /// Whether a thread waits for it, and not a task.
    blocks_thread: bool,
}

#[derive(Clone, Copy)]
enum Replaces {
    Nothing,
    /// This, which is shared. The request is to have some of its range alone, and all that is shared is within the
    /// span.
    Shared(InPlace, Span),
    /// This, of which the request is a piece.
    Larger(InPlace),
}

/// What is held, and the id of the node or the slot that it is held in.
#[derive(Clone, Copy)]
pub(in crate::range) struct InPlace {
    pub(in crate::range) place: HolderId,
    pub(in crate::range) held: Request,
}

impl InPlace {
    /// # Safety
    /// The node is held.
    pub(in crate::range) unsafe fn in_node(node: NonNull<Node>) -> Self {
        // SAFETY: the caller's promise.
        let node = unsafe { node.as_ref() };
        Self {
            place: node.id(),
            held: node.request(node.load()),
        }
    }
}

impl<'a> Behalf<'a> {
    /// `place_of` says what a token of the lock stands for.
    #[inline]
    pub(in crate::range) fn of<T>(
        ask: &AskBy<'a, T>,
        place_of: impl Fn(&T) -> InPlace,
        runner: &Runner<'_>,
    ) -> Self {
        let replaced = match ask.replaced() {
            Replaced::Nothing => Replaces::Nothing,
            Replaced::Shared(token, shares) => Replaces::Shared(place_of(token), *shares),
            Replaced::Larger(token) => Replaces::Larger(place_of(token)),
        };
        Self {
            owner: ask.owner,
            replaced,
            blocks_thread: matches!(runner, Runner::Thread),
        }
    }

    /// Whether the running thread cannot go on while the request waits.
    pub(in crate::range) fn blocks_thread(&self) -> bool {
        self.blocks_thread
    }

    /// Whether the request replaces what is held in the node or slot of that id, which then is not in its way.
    #[inline]
    pub(in crate::range) fn replaces(&self, place: HolderId) -> bool {
        match self.replaced {
            Replaces::Nothing => false,
            // [replaced] That one, and no other.
            Replaces::Shared(own, _) | Replaces::Larger(own) => {
                own.place == place || !prim::intact!("replaced")
            }
        }
    }

    /// What the owner holds that the request replaces.
    pub(in crate::range) fn replaced(&self) -> Option<Request> {
        match self.replaced {
            Replaces::Nothing => None,
            Replaces::Shared(own, _) | Replaces::Larger(own) => Some(own.held),
        }
    }

    /// Whether it is a piece of what the owner holds, so that whoever is in its way is about to withdraw.
    pub(in crate::range) fn is_piece(&self) -> bool {
        matches!(self.replaced, Replaces::Larger(_))
    }

    /// A waiter for the request.
    pub(in crate::range) fn waiter(self, waiter: Waiter<'a>) -> Waiter<'a> {
        match self.replaced {
            Replaces::Nothing => waiter.cancelled_by(self.owner),
            Replaces::Shared(_, shares) => {
                let shares = Request::new(shares, Mode::Shared, self.owner.id());
                waiter.cancelled_by(self.owner).sharing(shares)
            }
            // It is granted as soon as those who try in vain have withdrawn.
            Replaces::Larger(_) => waiter.for_piece(),
        }
    }

    /// As [`waiter`](Self::waiter), for a task, whose ranges the queue keeps [own-keys].
    fn task<I: Index>(mut self, waiter: Waiter<'a>, index: &I) -> Waiter<'a> {
        let mut kept = [index.own(waiter.asks()), None];
        if let Replaces::Shared(_, shares) = &mut self.replaced {
            kept[1] = index.own(*shares);
            *shares = kept[1].as_ref().map_or(*shares, Sought::span);
        }
        self.waiter(waiter).keeping(kept)
    }
}

impl<P: Protocol, I: Index> List<P, I> {
    /// The fast path of an owner: the list is empty.
    #[inline]
    pub(in crate::range) fn acquire_fast_by<T>(
        &self,
        queue: &WaitQueue,
        ask: AskBy<'_, T>,
        at: &'static Location<'static>,
    ) -> Option<Token> {
        if !matches!(ask.replaced(), Replaced::Nothing) || !self.may_be_fast(queue) {
            return None;
        }
        let spare = match I::NAMING {
            true => None,
            false => thread::with_local(|local| local.owners_spare.take()),
        };
        let node = spare.unwrap_or_else(|| self.pooled_node());
        let request = Request::new(ask.span, ask.mode, ask.owner.id());
        self.insert_alone(node, &request, at)
    }

    #[cold] // The thread holds several ranges for owners, or ranges between keys.
    fn pooled_node(&self) -> NonNull<Node> {
        thread::with_record(|record| self.index.take_plain_node(record))
    }

    /// Inserts a node with the mark of the fast path, if the list is empty. It is alive, and no other thread knows it.
    #[inline]
    pub(super) fn insert_alone(
        &self,
        node: NonNull<Node>,
        request: &Request,
        at: &'static Location<'static>,
    ) -> Option<Token> {
        // SAFETY: the node is alive, and known to this thread only.
        unsafe { Node::assign(node, request.owner) };
        // SAFETY: the same.
        unsafe { self.prepare(node, request.span, request.mode, at) };
        let fast = Link::to(node).fast();
        if !self.insert_fast(fast) {
            if I::NAMING {
                // [key-life] The request goes on by another node, and until that has them only this one bears the keys.
                // So it is not one too many, which would be freed.
                thread::with_record(|record| self.put_back(record, node));
            } else {
                self.take_over(node);
            }
            return None;
        }
        Some(Token::new(fast))
    }

    /// Releases what an owner holds, and wakes those in the queue that sleep behind it.
    ///
    /// # Safety
    /// The node of the token was inserted into this list, or into its residue or annex, and granted to an owner.
    #[inline]
    pub(in crate::range) unsafe fn release_owned(&self, queue: &WaitQueue, token: Token) {
        let node = token.node();
        if token.link().is_fast() && self.remove_fast(token.link()) {
            // The mark stood all the time, so no other thread has read the node [demote]. No level leads to it
            // [plain-node].
            self.take_over(node);
        } else {
            self.retract(queue, node);
        }
    }
}

// SAFETY: as for `RawRangeMutex`. What a request replaces is its owner's, and only that node is not in its way. Any
// thread may release a node: it marks the node, and whoever unlinks it retires it.
unsafe impl<P: Protocol, I: Index> RawOwnedMutex for RawList<P, I> {
    #[inline]
    fn lock_by(&self, ask: AskBy<'_, Token>) -> Result<Token, Refusal> {
        let at = Location::caller();
        if let Some(token) = self.acquire_fast_by(ask, at) {
            return Ok(token);
        }
        let outcome = self.acquire_slowly_by(ask, at, Runner::Thread);
        // Here, so that a panic names the caller's line.
        Refused::answer_owner(at_once(outcome), ask.owner)
    }

    #[inline]
    fn poll_by(
        &self,
        ask: AskBy<'_, Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<Token, Refusal>> {
        let Asked { at, kept, .. } = asked;
        if kept.is_new()
            && let Some(token) = self.acquire_fast_by(ask, at)
        {
            return Poll::Ready(Ok(token));
        }
        let outcome = self.acquire_slowly_by(ask, at, Runner::Task { kept, waker });
        outcome.map(|outcome| Refused::answer_owner(outcome, ask.owner))
    }

    fn forget_by(&self, owner: &Owner, _: Mode, asked: &mut Asked) {
        self.wait_queue.forget(&mut asked.kept, owner);
    }

    #[inline]
    unsafe fn unlock_by(&self, token: Token) {
        // SAFETY: this lock granted the token to an owner, as the caller promises.
        unsafe { self.list.release_owned(&self.wait_queue, token) };
    }
}

impl<P: Protocol, I: Index> RawList<P, I> {
    /// The mode in which the lock grants what is asked for in that one.
    #[inline]
    fn granted(mode: Mode) -> Mode {
        if P::NEEDS_VALIDATION {
            mode
        } else {
            Mode::Exclusive
        }
    }

    /// The fast path of an owner: the list is empty.
    #[inline]
    fn acquire_fast_by(
        &self,
        mut ask: AskBy<'_, Token>,
        at: &'static Location<'static>,
    ) -> Option<Token> {
        ask.mode = Self::granted(ask.mode);
        self.list.acquire_fast_by(&self.wait_queue, ask, at)
    }

    #[inline(never)] // The list is not empty, or newcomers have to give way.
    fn acquire_slowly_by(
        &self,
        mut ask: AskBy<'_, Token>,
        at: &'static Location<'static>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        ask.mode = Self::granted(ask.mode);
        thread::with_record(|record| self.go_on_by(record, &ask, at, runner))
    }

    /// Goes on with a request of an owner.
    fn go_on_by(
        &self,
        record: &'static ThreadRecord,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        let (list, queue) = (&self.list, &self.wait_queue);
        let request = Request::new(ask.span, ask.mode, ask.owner.id());
        // SAFETY: the owner holds it as long as the request borrows its token, so it is in the list and not reused.
        let in_place = |token: &Token| unsafe { InPlace::in_node(token.node()) };
        let behalf = Behalf::of(ask, in_place, &runner);
        let mut acquisition =
            ListAcquisition::new(list, queue, record, request, at, ask.wait, None);
        acquisition.on_behalf(&behalf);
        let mut blocker = None;
        if runner.tries_first() && !queue.has_reservations() {
            match acquisition.attempt() {
                Attempt::Granted(token) => {
                    acquisition.end(Some(&token));
                    return Poll::Ready(Ok(token));
                }
                Attempt::Blocked(met) => blocker = Some(met),
                Attempt::Overtaken => {}
            }
        }
        let patience = list.policy.patience(queue.patience(), ask.mode);
        let waiter = Waiter::new(queue, record, request, ask.wait, patience, at);
        let waiter = match runner {
            Runner::Task { .. } if I::NAMING => behalf.task(waiter, &list.index),
            _ => behalf.waiter(waiter),
        };
        let outcome = waiter.run(&mut acquisition, blocker, runner);
        acquisition.end(match &outcome {
            Poll::Ready(Ok(token)) => Some(token),
            _ => None,
        });
        outcome
    }
}

// SAFETY: as for `RawRangeLock` and `RawOwnedMutex`.
unsafe impl<I: Index> RawOwned for RawList<SharedExclusive, I> {
    unsafe fn share_by(&self, token: &Token) {
        // SAFETY: this lock granted the token, as the caller promises.
        unsafe { self.make_shared(token) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AtomicLink, ListRw};
    use super::Link;
    use crate::range::keys::KeyRangeLock;
    use crate::range::{Owner, RangeLock};
    use prim::atomic::Ordering;
    use std::ops::Range;

    fn leaves_the_fast_path<H>(head: &AtomicLink, hold: impl Fn(Range<u64>) -> H) {
        drop((hold(0..1), hold(1..2)));
        drop(hold(0..1)); // It takes out of the list what is gone.
        assert!(head.load(Ordering::Relaxed) == Link::NULL);
    }

    #[test]
    fn an_acquisition_that_walks_does_not_keep_later_ones_from_the_fast_path() {
        let somebody = Owner::anonymous();
        let lock = RangeLock::from_raw(ListRw::new());
        leaves_the_fast_path(&lock.raw().list.head, |range| {
            lock.by(&somebody).write(range).expect("nobody cancels it")
        });
        let keys = KeyRangeLock::<u64>::new();
        let head = &keys.raw.list.head;
        leaves_the_fast_path(head, |range| keys.write(range));
        leaves_the_fast_path(head, |range| {
            keys.by(&somebody).write(range).expect("nobody cancels it")
        });
    }
}
