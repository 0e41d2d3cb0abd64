//! The annex of a board: a skip list beside the slots, for threads that hold many ranges.
//!
//! A scan looks at every slot, so slots are for few ranges of each thread. What a thread holds beyond that is in nodes
//! of the annex, where a walk begins near its place.
//!
//! ```text
//!   slots     A [ 0..=9 ]   A [ 20..=29 ]   ...   B [ 5000..=5009 ? ]
//!                                                       |
//!                                                       | looks there, too, unless it is empty
//!                                                       v
//!   annex     [ 640..=649 ] ---> [ 660..=669 ] ---> [ 5000..=5001 ] ---> ...        all A's
//! ```
//!
//! ```text
//!   request in a slot:     announce --> fence --> look at slots --> look into the annex --> granted
//!   request in the annex:  insert ----> fence --> validate there --> look at all slots ---> granted
//! ```
//!
//! By the two fences, of two requests that conflict at least one meets the other. A request in the annex that meets an
//! announcement withdraws, decided or not; one in a slot first waits until it is decided whether the node stays. So of
//! two rivals one stays.
//!
//! The edges cited are the parent module's.

use super::board::Board;
use super::look::{Blocker, Look, SlotBlocker};
use super::{RawSlots, Token};
use crate::range::inspect::Request;
use crate::range::list::{Behalf, Blocker as NodeBlocker, Link, ListAcquisition, Node, Outside};
use crate::range::list::{Tried, Walk, await_decision};
use crate::range::raw::Wait;
use crate::range::thread::{Pin, ThreadRecord};
use crate::range::wait::{Attempt, HolderId};
use prim::atomic::Ordering;
use std::panic::Location;
use std::ptr::NonNull;

impl Board {
    /// Whether nothing is in the annex. A request in a slot asks this after its fence [annex-look].
    #[inline]
    pub(super) fn annex_is_empty(&self) -> bool {
        // Acquire: what was held there comes before.
        self.annex()
            .is_none_or(|annex| annex.head.load(Ordering::Acquire) == Link::NULL)
            || !prim::intact!("annex-look")
    }

    /// Whether a request in a slot may have a larger grant than it asked for: it looks into the annex for its range
    /// alone.
    pub(super) fn annex_allows_more(&self) -> bool {
        // [annex-whole]
        self.annex_is_empty() || !prim::intact!("annex-whole")
    }

    /// Makes sure that nothing in the annex is in the way of a request that is announced in a slot. Takes what is gone
    /// at its beginning out of it: so it is empty soon after the last release.
    #[cold] // Somebody holds many ranges, or has converted one.
    pub(super) fn look_in_annex<'a>(
        &self,
        record: &'static ThreadRecord,
        request: &Request,
    ) -> Result<(), Blocker<'a>> {
        let Some(annex) = self.annex() else {
            return Ok(());
        };
        let pin = record.pin();
        let mut first = Walk::from_head(&pin, &annex.head);
        let _ = first.next();
        first.trim();
        let mut walk = annex.walk_to(&pin, request, || None);
        let met = loop {
            let Some((node, link)) = walk.next() else {
                break None;
            };
            let theirs = node.request(link);
            if theirs.span.start() > request.span.last() {
                break None;
            }
            if theirs.conflicts(request) {
                await_decision(node);
                // Relaxed: if the node is gone or shared by now, the walk meets it again and acquires.
                let link = node.link.load(Ordering::Relaxed);
                if !link.is_gone() && node.request(link).conflicts(request) {
                    break Some(NonNull::from(node));
                }
            } else {
                walk.trim();
                walk.pass(node, link);
            }
        };
        walk.trim();
        match met {
            // SAFETY: the walk has met the node under this pin.
            Some(node) => Err(Blocker::Node(unsafe { NodeBlocker::new(node, pin) })),
            None => Ok(()),
        }
    }

    /// Makes sure that nothing is in the way of a request which was in the list when the lock moved; but for the node
    /// that it replaces.
    pub(super) fn look_in_residue<'a>(
        &self,
        record: &'static ThreadRecord,
        request: &Request,
        behalf: Option<&Behalf<'_>>,
    ) -> Result<(), Blocker<'a>> {
        if self.residue_is_empty() {
            return Ok(());
        }
        let pin = record.pin();
        match self.residue_in_the_way_of(&pin, request, behalf) {
            // SAFETY: a walk has met the node under this pin.
            Some(node) => Err(Blocker::Node(unsafe { NodeBlocker::new(node, pin) })),
            None => Ok(()),
        }
    }

    /// A node in the way of a request, of those that were in the list when the lock moved; not the one that it
    /// replaces.
    fn residue_in_the_way_of(
        &self,
        pin: &Pin,
        request: &Request,
        behalf: Option<&Behalf<'_>>,
    ) -> Option<NonNull<Node>> {
        let mut walk = Walk::from_head(pin, self.residue());
        let mut met = None;
        while let Some((node, link)) = walk.next() {
            // [residue]
            let is_met = node.request(link).conflicts(request) && prim::intact!("residue");
            if is_met && !is_replaced(behalf, node.id()) {
                met = Some(NonNull::from(node));
                break;
            }
            walk.trim();
            walk.pass(node, link);
        }
        walk.trim();
        met
    }

    /// What is in the way of a request that may not wait, and is to be inserted into the annex: outside of that. The
    /// walk to its place meets what is there.
    fn look_for_refusal_beside_annex<'a>(
        &'a self,
        record: &'static ThreadRecord,
        request: &Request,
        behalf: Option<&Behalf<'_>>,
    ) -> Result<(), Blocker<'a>> {
        match self.find(|slot| {
            slot.blocks(request)
                .filter(|_| !is_replaced(behalf, slot.id()))
        }) {
            Some(met) => Err(Blocker::Slot(met)),
            None => self.look_in_residue(record, request, behalf),
        }
    }

    /// What is announced in a slot in the way of a request that is in the annex, after its fence. Grants that are kept
    /// and in its way are revoked, and others are not kept. What it replaces is not in its way.
    fn slot_in_the_way_of(
        &self,
        request: &Request,
        behalf: Option<&Behalf<'_>>,
    ) -> Option<SlotBlocker<'_>> {
        self.find(|slot| match slot.look(request, request.span) {
            Look::Held(state) if !is_replaced(behalf, slot.id()) => {
                Some(SlotBlocker::new(slot, state))
            }
            _ => None,
        })
    }
}

/// Whether a request replaces what is held in the node or slot of that id.
fn is_replaced(behalf: Option<&Behalf<'_>>, id: HolderId) -> bool {
    behalf.is_some_and(|behalf| behalf.replaces(id))
}

impl RawSlots {
    /// Tries once to get a range in the annex.
    pub(super) fn try_in_annex<'a>(
        &'a self,
        board: &'a Board,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        wait: Wait,
        behalf: Option<&'a Behalf<'a>>,
    ) -> Attempt<Token, Blocker<'a>> {
        // [annex-try-looks]
        if wait == Wait::Never
            && prim::intact!("annex-try-looks")
            && let Err(met) = board.look_for_refusal_beside_annex(record, &request, behalf)
        {
            return Attempt::Blocked(met);
        }
        let (annex, queue) = (board.annex_or_new(), &self.wait_queue);
        let mut node = ListAcquisition::new(annex, queue, record, request, at, wait, None);
        if let Some(behalf) = behalf {
            node.on_behalf(behalf);
        }
        let mut met = None;
        let tried = node.try_beside(|pin| {
            // [annex-insert] [registry]
            if prim::intact!("annex-insert") {
                met = board.slot_in_the_way_of(&request, behalf);
            }
            if met.is_some() {
                return Err(Outside::Other);
            }
            // Before the request is decided: whoever tries to get some of its range waits for that.
            let met = board.residue_in_the_way_of(pin, &request, behalf);
            met.map_or(Ok(()), |node| Err(Outside::Node(node)))
        });
        match tried {
            Tried::Granted(token) => {
                node.end(Some(&token));
                Attempt::Granted(Token::of_annex(&token))
            }
            Tried::Blocked(blocker) => {
                node.end(None);
                Attempt::Blocked(Blocker::Node(blocker))
            }
            Tried::Overtaken | Tried::Moved => {
                node.end(None);
                Attempt::Overtaken
            }
            Tried::Refused => {
                let met = met.expect("a slot was in the way");
                Attempt::Blocked(Blocker::Slot(met))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, Blocker, RawSlots, Request, Token};
    use crate::range::raw::{Ask, Mode, RawRangeMutex, Wait};
    use crate::range::span::Span;
    use crate::range::thread;
    use std::ops::Range;
    use std::panic::{AssertUnwindSafe, Location, catch_unwind};

    fn asked_for(range: Range<u64>) -> Ask<'static, Token> {
        Ask::new(Span::of(range).expect("it has positions"), Wait::Forever)
    }

    /// As in a comparison of keys, which must not ask for ranges. It panics, and the lock is as it was.
    #[test]
    fn a_request_in_the_midst_of_a_walk_leaves_nothing() {
        let lock = RawSlots::new();
        lock.move_to_slots();
        let far = thread::with_record(|record| {
            let board = lock.board().expect("it has moved");
            let request = Request::new(asked_for(50..51).span, Mode::Exclusive, record.thread());
            let at = Location::caller();
            match lock.try_in_annex(board, record, request, at, Wait::Forever, None) {
                Attempt::Granted(token) => token,
                _ => panic!("nobody is there"),
            }
        });
        // In the first round the thread has no slot yet, in the last one it holds its home slot.
        let mut held = vec![far];
        for round in 0..3 {
            // Another range each time: one that was held before is taken again without a look.
            let range = round..round + 1;
            let nested = catch_unwind(AssertUnwindSafe(|| {
                thread::with_record(|record| {
                    let _walk = record.pin();
                    lock.lock_exclusive(asked_for(range.clone()))
                })
            }));
            assert!(nested.is_err(), "walks do not nest");
            let again = lock.lock_exclusive(asked_for(range)).expect("it is free");
            // SAFETY: the lock has granted it.
            unsafe { lock.unlock(again) };
            if round == 1 {
                held.push(lock.lock_exclusive(asked_for(20..21)).expect("it is free"));
            }
        }
        for token in held {
            // SAFETY: the lock has granted it.
            unsafe { lock.unlock(token) };
        }
    }

    /// A request that was decided, and then withdrew, would turn tries away from a range that is free.
    #[test]
    fn a_request_meets_the_residue_before_it_is_decided() {
        let lock = RawSlots::new();
        let span = |range| Span::of(range).expect("it has positions");
        let in_list = lock.lock_exclusive(Ask::new(span(8_u64..9), Wait::Never));
        lock.move_to_slots();
        thread::with_record(|record| {
            let board = lock.board().expect("it has moved");
            let request = Request::new(span(6..9), Mode::Exclusive, record.thread());
            let attempt = lock.try_in_annex(
                board,
                record,
                request,
                Location::caller(),
                Wait::Forever,
                None,
            );
            assert!(matches!(attempt, Attempt::Blocked(Blocker::Node(_))));
        });
        // SAFETY: the lock has granted it.
        unsafe { lock.unlock(in_list.expect("nobody holds it")) };
    }
}
