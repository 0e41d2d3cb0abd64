//! Whether a request whose node is in the list may stay: no conflicting node is in the list, or in its way elsewhere.
//!
//! The edges and invariants cited are the list's.

use super::ListAcquisition;
use crate::range::list::attempt::{Insertion, await_decision};
use crate::range::list::skip::Index;
use crate::range::list::{Protocol, Walk};
use crate::range::order::Order;
use crate::range::raw::Mode;
use crate::range::thread::Pin;
use prim::atomic::{Ordering, fence_after_rmw};
use std::ptr::NonNull;

impl<P: Protocol, I: Index> ListAcquisition<'_, P, I> {
    /// Validates. If foreign code panics meanwhile, the request leaves the list.
    #[inline]
    pub(super) fn validate_published(&self, pin: &Pin) -> Result<(), Insertion> {
        let published = I::KEYED.then(|| Published(self));
        let outcome = self.validate(pin);
        std::mem::forget(published);
        outcome
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
        let order = self.list.index.order();
        while let Some((other, link)) = walk.next() {
            let theirs = other.request(link);
            if std::ptr::eq(other, mine) || order.is_behind(theirs.span, request.span) {
                break;
            }
            // [reader-validation] [writer-validation]
            let is_checked = match request.mode {
                Mode::Shared => prim::intact!("reader-validation"),
                Mode::Exclusive => prim::intact!("writer-validation"),
            };
            if is_checked && order.conflict(&theirs, request) && !self.replaces(other) {
                if self.list.policy.preference.favours(request.mode) {
                    await_decision(other);
                }
                // Relaxed: if the rival is gone or shared by now, the walk meets it again and acquires.
                let link = other.link.load(Ordering::Relaxed);
                if !link.is_gone() && link.mode().conflicts(request.mode) {
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

/// A request whose node is in the list and which is not granted yet. Dropping it withdraws the node: that is done only
/// when foreign code panics.
struct Published<'a, 'l, P: Protocol, I: Index>(&'a ListAcquisition<'l, P, I>);

impl<P: Protocol, I: Index> Drop for Published<'_, '_, P, I> {
    fn drop(&mut self) {
        let Self(request) = self;
        // [panic-leaves]
        if prim::intact!("panic-leaves") {
            request.list.retract(request.queue, request.node);
        }
        request.node().set_tentative(false);
        request.is_over.set(true);
    }
}

impl<P, I: Index> Drop for ListAcquisition<'_, P, I> {
    /// Foreign code has panicked, a comparison or a waker: the node goes back, which is in no list.
    fn drop(&mut self) {
        if !self.is_over.get() {
            // SAFETY: the request's own node, which is alive.
            unsafe { self.node.as_ref() }.set_tentative(false);
            self.list.put_back(self.record, self.node);
        }
    }
}
