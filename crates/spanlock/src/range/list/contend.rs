//! Waiting, as far as it is the list's own: how a blocker is looked at and marked, and what an arrival inherits.

use super::index::Index;
use super::node::{Link, Node};
use super::{Protocol, RawList, Token};
use crate::local::Pin;
use crate::range::raw::Wait;
use crate::range::waiting::{Contender, Refused};
use prim::atomic::Ordering;
use prim::spin::{self, Spin};
use std::ptr::NonNull;

impl<P: Protocol, I: Index> RawList<P, I> {
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
        if contender.wait() == Wait::Never {
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
                return self.room.hurry(contender);
            }
        }
        if would_wait_for(contender, blocker) && !is_gone() {
            return Err(Refused::WaitsForItself);
        }
        let claim = *contender.claim();
        let ticket = self.room.enter(contender, || {
            // [sleeper] Marked and looked at by one read-modify-write. Relaxed: it is one word, and what the queue
            // says is ordered by its mutex.
            let link = blocker.link.set_sleeper(Ordering::Relaxed);
            let behind = blocker.claim(link);
            if (link.is_gone() && prim::intact!("sleeper")) || !behind.conflicts(&claim) {
                return None;
            }
            Some((std::ptr::from_ref(blocker).addr(), behind))
        });
        // [barrier] Whoever sleeps walks no list, and so holds nobody's nodes back.
        let _still_walking = Some(pin).filter(|_| !prim::intact!("barrier"));
        self.room.rest(contender, ticket)
    }

    /// Leaves the queue as a holder; those asleep behind the request now are behind the holder.
    pub(super) fn arrive(&self, contender: &Contender, token: Token) -> Token {
        let node = token.node();
        if !self.room.arrive(contender, |_| node.as_ptr().addr()) {
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
}

/// Whether to sleep behind that node is to sleep forever. Looked for in debug builds.
fn would_wait_for(contender: &Contender, blocker: &Node) -> bool {
    cfg!(debug_assertions)
        && contender.wait() == Wait::Forever
        && blocker.claim(Link::NULL).thread == contender.local().thread()
}

/// Waits a little until a rival knows whether it stays.
pub(super) fn await_decision(rival: &Node) {
    let mut spin = Spin::new(spin::ON_DECISION);
    while rival.is_tentative() && !rival.link.load(Ordering::Relaxed).is_gone() && spin.round() {}
}
