//! What owners hold of a slot lock: slots that are lent to them, and nodes of the list or the annex.
//!
//! The waiting loop is that of threads' requests (`attempt.rs`). The edges cited are the parent module's.

use super::attempt::SlotAcquisition;
use super::board::Annex;
use super::look::Blocker;
use super::request::Entry;
use super::token::{Granted, Token};
use super::{Growth, RawSlots};
use crate::range::inspect::Request;
use crate::range::list::Behalf;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Asked, Mode, RawOwned, RawOwnedMutex, Replaced, Wait};
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{Refused, Runner, Waiter, at_once};
use prim::debug;
use std::panic::Location;
use std::task::{Poll, Waker};

// SAFETY: as for `RawRangeMutex`. What an owner holds is a node, of the list or the annex, or in a slot that is lent.
// What a request replaces is its owner's, and only that is not in its way. Any thread may release a node, and what
// is held in a lent slot.
unsafe impl RawOwnedMutex for RawSlots {
    #[inline]
    fn lock_by(&self, ask: AskBy<'_, Token>) -> Result<Token, Refusal> {
        let at = Location::caller();
        let blocker = match self.acquire_fast_by(&ask, at) {
            Ok(token) => return Ok(token),
            Err(met) => met,
        };
        let outcome = self.acquire_slowly_by(&ask, at, blocker, Runner::Thread);
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
        let mut blocker = None;
        if kept.is_new() {
            match self.acquire_fast_by(&ask, at) {
                Ok(token) => return Poll::Ready(Ok(token)),
                Err(met) => blocker = met,
            }
        }
        let runner = Runner::Task { kept, waker };
        let outcome = self.acquire_slowly_by(&ask, at, blocker, runner);
        outcome.map(|outcome| Refused::answer_owner(outcome, ask.owner))
    }

    fn forget_by(&self, owner: &Owner, _: Mode, asked: &mut Asked) {
        self.wait_queue.forget(&mut asked.kept, owner);
    }

    #[inline]
    unsafe fn unlock_by(&self, token: Token) {
        // SAFETY: this lock granted the token, and is alive.
        match unsafe { token.granted() } {
            Granted::Slot(slot) => self.release_lent(self.board_of_held(), slot),
            // A release touches the node alone.
            Granted::Annex(token) => Annex::leave(&self.wait_queue, token.node()),
            // SAFETY: the list granted it to an owner, as the caller promises.
            Granted::List(token) => unsafe { self.list.release_owned(&self.wait_queue, token) },
        }
    }
}

impl RawSlots {
    /// The fast paths of an owner: the list is empty, or the lock has moved and a slot is lent for the request.
    /// Otherwise, says what is in the way, if that is known.
    #[inline]
    fn acquire_fast_by<'a>(
        &'a self,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
    ) -> Result<Token, Option<Blocker<'a>>> {
        match self.list.acquire_fast_by(&self.wait_queue, *ask, at) {
            Some(token) => Ok(Token::of_list(&token)),
            None => self.acquire_lent(ask, at),
        }
    }

    #[inline(never)] // The list is not empty.
    fn acquire_lent<'a>(
        &'a self,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
    ) -> Result<Token, Option<Blocker<'a>>> {
        let board = self.board().filter(|board| board.residue_is_empty());
        let is_for_slot = self.lends_for(ask) && !self.wait_queue.has_reservations();
        let Some(board) = board.filter(|_| is_for_slot) else {
            return Err(None);
        };
        let request = Request::new(ask.span, ask.mode, ask.owner.id());
        if ask.wait == Wait::Never {
            // [slot-try-looks]
            board
                .look_for_refusal(&request)
                .map_err(|met| met.map(Blocker::Slot))?;
        }
        let slot = board.lend().ok_or(None)?;
        if debug::CHECKS {
            slot.note_borrower(thread::id());
        }
        let buckets = self.buckets_for(board, slot, slot, ask.span);
        let entered = self.enter(board, buckets, slot, slot, Entry::newcomer(request, at));
        self.grant(ask.mode, ask.span, board, slot, entered)
            .inspect_err(|_| slot.give_back())?;
        Ok(Token::of_slot(slot, false))
    }

    /// Whether a request may be announced in a slot: it replaces nothing that its owner holds.
    #[inline]
    fn lends_for(&self, ask: &AskBy<'_, Token>) -> bool {
        matches!(ask.replaced(), Replaced::Nothing) && self.setup().growth != Growth::Annex
    }

    #[inline(never)] // The lock is in use.
    fn acquire_slowly_by(
        &self,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
        blocker: Option<Blocker<'_>>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        thread::with_record(|record| self.go_on_by(record, ask, at, blocker, runner))
    }

    /// Goes on with a request of an owner.
    fn go_on_by(
        &self,
        record: &'static ThreadRecord,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
        blocker: Option<Blocker<'_>>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        let request = Request::new(ask.span, ask.mode, ask.owner.id());
        // SAFETY: this lock has granted it to the owner, which holds it as long as the request borrows it.
        let behalf = Behalf::of(ask, |token| unsafe { token.in_place() }, &runner);
        let mut list = self.in_list(record, request, at, ask.wait, None);
        list.on_behalf(&behalf);
        let mut acquisition =
            SlotAcquisition::new(self, record, request, at, ask.wait, list).on_behalf(&behalf);
        let queue = &self.wait_queue;
        let blocker = acquisition.blocked_by(blocker);
        let waiter = Waiter::new(queue, record, request, ask.wait, queue.patience(), at);
        acquisition.run(behalf.waiter(waiter), blocker, runner)
    }
}

// SAFETY: as for `RawRangeLock` and `RawOwnedMutex`.
unsafe impl RawOwned for RawSlots {
    unsafe fn share_by(&self, token: &Token) {
        // SAFETY: this lock granted the token, as the caller promises.
        unsafe { self.make_shared(token) };
    }
}

#[cfg(test)]
mod tests {
    use super::{AskBy, Asked, Mode, Owner, RawOwnedMutex, RawSlots, Waker};
    use crate::range::raw::{Ask, RawRangeMutex, Wait};
    use crate::range::span::Span;

    /// What the thread that polls them may hold is not theirs. Each would be looked at whenever one goes.
    #[test]
    fn tasks_that_want_one_range_stand_in_one_line() {
        for moves in [false, true] {
            let lock = RawSlots::new();
            if moves {
                lock.move_to_slots();
            }
            let span = Span::of(0_u64..8).expect("it has positions");
            let elsewhere = Span::of(9_u64..10).expect("it has positions");
            let owners: Vec<_> = (0..3).map(|_| Owner::new()).collect();
            let ask = |owner| AskBy::new(owner, span, Mode::Exclusive, Wait::Forever);
            let held = lock.lock_by(ask(&owners[0])).expect("nobody holds it");
            let own = lock.lock_exclusive(Ask::new(elsewhere, Wait::Never));
            let mut asked = [Asked::new(), Asked::new()];
            for (asked, owner) in asked.iter_mut().zip(&owners[1..]) {
                assert!(lock.poll_by(ask(owner), asked, Waker::noop()).is_pending());
            }
            assert_eq!(lock.wait_queue.with_queue(|queue, _| queue.lines()), 1);
            for (asked, owner) in asked.iter_mut().zip(&owners[1..]) {
                lock.forget_by(owner, Mode::Exclusive, asked);
            }
            // SAFETY: the lock has granted it.
            unsafe { lock.unlock_by(held) };
            // SAFETY: the same.
            unsafe { lock.unlock(own.expect("nobody holds it")) };
        }
    }
}
