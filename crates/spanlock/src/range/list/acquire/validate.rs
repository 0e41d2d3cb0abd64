//! Whether a request whose node is in the list may stay: no conflicting node is in the list, or in its way elsewhere.
//!
//! The edges and invariants cited are the list's.

use super::{ListAcquisition, MANY};
use crate::range::list::attempt::{Insertion, await_decision};
use crate::range::list::skip::Index;
use crate::range::list::{Node, Protocol, Walk};
use crate::range::mode::Mode;
use crate::range::order::{Order, Relation};
use crate::range::thread::Pin;
use prim::atomic::{Ordering, fence_after_rmw};
use std::ptr::NonNull;

impl<P: Protocol, I: Index> ListAcquisition<'_, P, I> {
    /// Validates. If foreign code panics meanwhile, the request leaves the list.
    #[inline]
    pub(super) fn validate_published(&self, pin: &Pin) -> Result<(), Insertion> {
        let published = I::NAMING.then(|| Published(self));
        let outcome = self.validate(pin);
        std::mem::forget(published);
        outcome
    }

    /// What is in the way of a reader behind the place where that walk has stopped. (A writer's walk has met all that
    /// is in its way.)
    pub(super) fn blocker_ahead(&self, place: &Walk<'_>) -> Option<NonNull<Node>> {
        if self.request.mode == Mode::Exclusive {
            return None;
        }
        let order = self.list.index.order();
        let mut walk = place.clone();
        while let Some((other, link)) = walk.next() {
            let theirs = other.request(link);
            if order.is_behind(theirs.span, self.request.span) {
                break;
            }
            if order.conflict(&theirs, &self.request) && !self.replaces(other) {
                return Some(NonNull::from(other));
            }
            walk.pass(other, link);
        }
        None
    }

    /// Whether at least [`MANY`] nodes follow this request's.
    pub(super) fn is_before_many(&self, pin: &Pin) -> bool {
        let mut walk = Walk::behind(pin, &self.list.head, self.node());
        let mut pass = || walk.next().map(|(node, link)| walk.pass(node, link));
        (0..MANY).all(|_| pass().is_some())
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
        // Whoever conflicts starts in its range, so one of the two has found the other where it was inserted.
        // [upgrade-validates] Unless a reader was inserted before the node that this one replaces and is behind.
        if request.mode == Mode::Exclusive
            && (self.replaced().is_none() || !prim::intact!("upgrade-validates"))
            && self.list.index.shares_points_alone()
        {
            return Ok(());
        }
        let mut walk = match request.mode {
            Mode::Shared => Walk::behind(pin, &self.list.head, mine),
            Mode::Exclusive => self.walk(pin),
        };
        let order = self.list.index.order();
        while let Some((other, link)) = walk.next() {
            if std::ptr::eq(other, mine) {
                break;
            }
            let theirs = other.request(link);
            let relation = match request.mode {
                Mode::Exclusive => order.relation(&theirs, request),
                // Others that share some of its range may start later.
                Mode::Shared if order.is_behind(theirs.span, request.span) => Relation::Later,
                Mode::Shared if order.conflict(&theirs, request) => Relation::Conflict,
                Mode::Shared => Relation::Earlier,
            };
            if relation == Relation::Later {
                break;
            }
            // [reader-validation] [writer-validation]
            let is_checked = match request.mode {
                Mode::Shared => prim::intact!("reader-validation"),
                Mode::Exclusive => prim::intact!("writer-validation"),
            };
            if is_checked && relation == Relation::Conflict && !self.replaces(other) {
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
        // [key-life] Until it has left the queue, others compare it there, and only the node has its keys.
        request.list.index.keep(&request.kept, request.node);
        // [panic-leaves]
        if prim::intact!("panic-leaves") {
            request.list.retract(request.queue, request.node);
        }
        request.node().set_tentative(false);
        request.is_over.set(true);
        request.has_panicked.set(true);
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
        if self.has_panicked.get() {
            // Those that the withdrawal has woken: the walk is over.
            self.record.call_tasks();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ListAcquisition;
    use crate::range::inspect::Request;
    use crate::range::keys::KeyRangeLock;
    use crate::range::list::attempt::Tried;
    use crate::range::order::Ranges;
    use crate::range::raw::{Mode, Wait};
    use crate::range::thread;
    use prim::sync::Arc;
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

    thread_local! {
        /// How many comparisons are left until one panics; 0: none does.
        static LEFT: Cell<usize> = const { Cell::new(0) };
    }

    /// A number, and what lives as long as it does.
    #[derive(Debug, Clone)]
    struct Key(u32, #[expect(dead_code, reason = "it is counted")] Arc<()>);

    fn compare(one: &Key, other: &Key) -> Ordering {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        if left == 1 {
            // Without a word of the panic hook.
            resume_unwind(Box::new("a comparison panics"));
        }
        one.0.cmp(&other.0)
    }

    /// The queue may compare a request that was asleep until that has left the queue, whatever has panicked.
    #[test]
    fn keys_live_until_a_request_that_panics_is_over() {
        let lock = KeyRangeLock::ordered_by(compare);
        let other = |number| Key(number, Arc::default());
        let held = [0, 8].map(|at| lock.read(other(at)..other(at + 1)));
        for count in 1.. {
            let life = Arc::new(());
            let mine = |number| Key(number, Arc::clone(&life));
            let sought = lock.raw.order().sought(&(mine(3)..mine(4)));
            let span = sought.expect("it is not empty").offer();
            let has_returned = thread::with_record(|record| {
                let (list, queue) = (&lock.raw.list, &lock.raw.wait_queue);
                let request = Request::new(span, Mode::Exclusive, record.thread());
                let at = Location::caller();
                let mut request =
                    ListAcquisition::new(list, queue, record, request, at, Wait::Never, None);
                LEFT.set(count);
                let tried = catch_unwind(AssertUnwindSafe(|| request.try_once()));
                LEFT.set(0);
                // Others walk, and use nodes again.
                for _ in 0..1000 {
                    drop(lock.try_write(other(5)..other(6)));
                }
                assert_eq!(Arc::strong_count(&life), 3, "two keys of it live");
                if let Ok(Tried::Granted(token)) = tried {
                    request.end(Some(&token));
                    // SAFETY: the list has granted it.
                    unsafe { list.release(queue, token) };
                    return true;
                }
                false
            });
            if has_returned {
                assert!(count > 4, "it compares as it walks, and once more");
                break;
            }
        }
        drop(held);
    }
}
