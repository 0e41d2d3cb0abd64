//! How a range is released, downgraded, and how the nodes of released ranges are swept out of the list.
//!
//! A release never walks the list. It marks the node as gone, and a later walk unlinks it. The edges and invariants
//! cited are the parent module's.

use super::node::Node;
use super::skip::{Index, TallNode};
use super::walk::Walk;
use super::{List, RawList, Token};
use crate::range::thread::{self, Pin, ThreadRecord};
use crate::range::wait::WaitQueue;
use prim::atomic::Ordering;
use std::ptr::NonNull;

impl<P, I: Index> RawList<P, I> {
    /// # Safety
    /// This lock granted the token.
    #[inline]
    pub(super) unsafe fn release(&self, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.list.release(&self.wait_queue, token) };
    }

    /// # Safety
    /// This lock granted the token.
    pub(super) unsafe fn make_shared(&self, token: &Token) {
        // SAFETY: the caller's promise.
        unsafe { self.list.make_shared(&self.wait_queue, token) };
    }
}

#[cold] // It is one of several that the thread has released for owners, or bears keys.
fn pool(node: NonNull<Node>) {
    thread::with_record(|record| record.parts.list.take_over(node));
}

impl<P, I: Index> List<P, I> {
    /// Releases a range, and wakes those in the queue that sleep behind it.
    ///
    /// # Safety
    /// The node of the token was inserted into this list and granted.
    #[inline]
    pub(in crate::range) unsafe fn release(&self, queue: &WaitQueue, token: Token) {
        let node = token.node();
        if token.link().is_fast() && self.remove_fast(token.link()) {
            // The mark stood all the time, so no other thread has read the node [demote]. No level leads to it
            // [plain-node].
            if I::NAMING {
                self.take_over(node);
                thread::with_record(|record| record.parts.list.released());
            } else {
                thread::with_local(|local| local.return_spare(node));
            }
            return;
        }
        self.release_slowly(queue, node);
    }

    /// A node that was taken for this list, and not inserted.
    pub(super) fn put_back(&self, record: &ThreadRecord, node: NonNull<Node>) {
        self.index.ended(self.index.announced(node));
        record.parts.list.put_back(node);
    }

    /// The node of an owner's fast path is out of the list again, or that of a range between keys.
    #[inline]
    pub(super) fn take_over(&self, node: NonNull<Node>) {
        self.index.ended(self.index.announced(node));
        let kept = match I::NAMING {
            true => Err(node),
            false => thread::with_local(|local| local.owners_spare.put(node)),
        };
        if let Err(node) = kept {
            pool(node);
        }
    }

    #[cold] // Another thread has walked the list meanwhile.
    fn release_slowly(&self, queue: &WaitQueue, node: NonNull<Node>) {
        self.retract(queue, node);
        thread::with_record(ThreadRecord::released);
    }

    /// [Leaves](Self::leave) this list, and makes it known in the index.
    #[inline]
    pub(super) fn retract(&self, queue: &WaitQueue, node: NonNull<Node>) {
        let announced = self.index.announced(node);
        Self::leave(queue, node);
        self.index.ended(announced);
    }

    /// Marks a node as gone, whose token the caller has, and wakes the requests asleep behind it. The thread need not
    /// be that which has acquired it: the hand-over of the token orders the two.
    pub(in crate::range) fn leave(queue: &WaitQueue, node: NonNull<Node>) {
        let holder = node.as_ptr().addr();
        // SAFETY: the caller has the node's token. It is not marked yet, so it stays in the list and is not reused.
        if let Some(tall) = unsafe { TallNode::of(node) } {
            // SAFETY: the same node, and it is a tall one.
            let tall = unsafe { tall.as_ref() };
            // SAFETY: the caller has its token, and its link in the list is marked only below.
            unsafe { tall.leave_levels() };
        }
        // [release] Release: pairs with the [release-acquire] in `Walk::next`. After it the node may be reused any
        // time. SAFETY: not marked yet, so it stays in the list and is not reused.
        let link = unsafe { node.as_ref() }
            .link
            .set_gone(prim::order!("release", Ordering::Release));
        debug_assert!(!link.is_gone(), "a range was released twice");
        // [wake] The same read-modify-write that marked the node has loaded the sleepers' mark [sleeper].
        if link.has_sleeper() && prim::intact!("wake") {
            queue.with_queue(|queue, wakeups| queue.holders_left([holder], wakeups));
        }
    }

    /// Turns an exclusive hold into a shared one.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    pub(in crate::range) unsafe fn make_shared(&self, queue: &WaitQueue, token: &Token) {
        let node = token.node();
        // SAFETY: the token is proof that this thread holds the node, so it is in the list and not reused.
        let mine = unsafe { node.as_ref() };
        self.index.announce_shared(node, mine.span());
        let link = mine
            .link
            // [downgrade] Release: pairs with the [release-acquire] in `Walk::next`.
            .set_shared(prim::order!("downgrade", Ordering::Release));
        // [downgrade-wake] The readers that sleep behind it may enter now.
        if link.has_sleeper() && prim::intact!("downgrade-wake") {
            queue.with_queue(|queue, wakeups| queue.holders_downgraded([mine.id()], wakeups));
        }
    }

    /// Unlinks the nodes that are gone from the whole list and its index, and returns how many other nodes there are.
    ///
    /// An insertion unlinks what it passes, so nodes would pile up where no walk passes.
    #[cold] // A pool ran out of nodes.
    pub(super) fn sweep(&self, pin: &Pin) -> usize {
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
}
