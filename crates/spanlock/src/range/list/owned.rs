//! What owners hold: nodes like those of threads, but for the fast path, and released by any thread.
//!
//! A request may replace a node that its owner holds: then that node is not in its way. The edges cited are the parent
//! module's.

use super::node::Node;
use super::skip::Index;
use super::{List, ListAcquisition, RawList, SharedExclusive, Token};
use crate::range::inspect::Request;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Mode, RawOwned, Replaced};
use crate::range::span::Span;
use crate::range::thread;
use crate::range::wait::{Refused, Waiter};
use std::panic::Location;
use std::ptr::NonNull;

/// For whom a request is made, and which node of that owner it replaces.
#[derive(Clone, Copy)]
pub(in crate::range) struct Behalf<'a> {
    pub(in crate::range) owner: &'a Owner,
    replaced: Replaces,
}

#[derive(Clone, Copy)]
enum Replaces {
    Nothing,
    /// This node, which is shared. The request is to have some of its range alone, and all that is shared is within the
    /// span.
    Shared(NonNull<Node>, Span),
    /// This node, of which the request is a piece.
    Larger(NonNull<Node>),
}

impl<'a> Behalf<'a> {
    /// `node_of` says which node a token of the lock stands for.
    pub(in crate::range) fn of<T>(
        ask: &AskBy<'a, T>,
        node_of: impl Fn(&T) -> NonNull<Node>,
    ) -> Self {
        let replaced = match ask.replaced() {
            Replaced::Nothing => Replaces::Nothing,
            Replaced::Shared(token, shares) => Replaces::Shared(node_of(token), *shares),
            Replaced::Larger(token) => Replaces::Larger(node_of(token)),
        };
        let owner = ask.owner;
        Self { owner, replaced }
    }

    /// Whether the request replaces that node, which then is not in its way.
    #[inline]
    pub(in crate::range) fn replaces(&self, other: &Node) -> bool {
        match self.replaced {
            Replaces::Nothing => false,
            // [replaced] That node, and no other.
            Replaces::Shared(node, _) | Replaces::Larger(node) => {
                std::ptr::eq(node.as_ptr(), other) || !prim::intact!("replaced")
            }
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
            Replaces::Larger(_) => waiter,
        }
    }
}

// SAFETY: as for `RawRangeLock`. What a request replaces is its owner's, and only that node is not in its way. Any
// thread may release a node: it marks the node, and whoever unlinks it retires it.
unsafe impl<I: Index> RawOwned for RawList<SharedExclusive, I> {
    fn lock_by(&self, ask: AskBy<'_, Token>) -> Result<Token, Refusal> {
        let at = Location::caller();
        let (list, queue) = (&self.list, &self.wait_queue);
        let outcome = thread::with_record(|record| {
            let request = Request::new(ask.span, ask.mode, ask.owner.id());
            let behalf = Behalf::of(&ask, Token::node);
            if ask.mode == Mode::Shared {
                list.index.announce_shared(ask.span);
            }
            let mut acquisition =
                ListAcquisition::new(list, queue, record, request, at, None).on_behalf(behalf);
            let patience = list.policy.patience(queue.patience(), ask.mode);
            let waiter = behalf.waiter(Waiter::new(queue, record, request, ask.wait, patience));
            let outcome = waiter.acquire(&mut acquisition, None);
            acquisition.end(outcome.as_ref().ok());
            outcome
        });
        // Outside the closure, so that a panic names the caller's line.
        Refused::answer_owner(outcome)
    }

    unsafe fn unlock_by(&self, token: Token) {
        List::<SharedExclusive, I>::leave(&self.wait_queue, token.node());
    }

    unsafe fn share_by(&self, token: &Token) {
        // SAFETY: this lock granted the token, as the caller promises.
        unsafe { self.make_shared(token) };
    }
}
