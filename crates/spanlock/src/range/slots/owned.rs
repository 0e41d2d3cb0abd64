//! What owners hold of a slot lock: nodes, of the list or the annex, and never slots, which belong to threads.
//!
//! The waiting loop is that of threads' requests (`attempt.rs`). The edges cited are the parent module's.

use super::attempt::SlotAcquisition;
use super::board::Annex;
use super::look::Blocker;
use super::token::Token;
use super::{Growth, RawSlots};
use crate::range::inspect::Request;
use crate::range::list::Behalf;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Asked, Mode, RawOwned, RawOwnedMutex};
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{Attempt, Refused, Runner, Waiter, at_once};
use std::panic::Location;
use std::task::{Poll, Waker};

// SAFETY: as for `RawRangeMutex`. What an owner holds is a node, of the list or the annex. What a request replaces is
// its owner's, and only that node is not in its way. Any thread may release a node.
unsafe impl RawOwnedMutex for RawSlots {
    #[inline]
    fn lock_by(&self, ask: AskBy<'_, Token>) -> Result<Token, Refusal> {
        let at = Location::caller();
        if let Some(token) = self.acquire_fast_by(ask, at) {
            return Ok(token);
        }
        let outcome = self.acquire_slowly_by(&{ ask }, at, Runner::Thread);
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
        let outcome = self.acquire_slowly_by(&{ ask }, at, Runner::Task { kept, waker });
        outcome.map(|outcome| Refused::answer_owner(outcome, ask.owner))
    }

    fn forget_by(&self, owner: &Owner, _: Mode, asked: &mut Asked) {
        self.wait_queue.forget(&mut asked.kept, owner);
    }

    #[inline]
    unsafe fn unlock_by(&self, token: Token) {
        if token.is_of_annex() {
            // A release touches the node alone.
            Annex::leave(&self.wait_queue, token.node());
        } else {
            // SAFETY: the list granted it to an owner, as the caller promises.
            unsafe {
                self.list
                    .release_owned(&self.wait_queue, token.as_list_token())
            };
        }
    }
}

impl RawSlots {
    /// The fast path of an owner: the lock has not moved, and its list is empty.
    #[inline]
    fn acquire_fast_by(
        &self,
        ask: AskBy<'_, Token>,
        at: &'static Location<'static>,
    ) -> Option<Token> {
        let fast = self.list.acquire_fast_by(&self.wait_queue, ask, at);
        fast.map(|token| Token::of_list(&token))
    }

    #[inline(never)] // The lock is in use, or has moved.
    fn acquire_slowly_by(
        &self,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        thread::with_record(|record| self.go_on_by(record, ask, at, runner))
    }

    /// Goes on with a request of an owner.
    fn go_on_by(
        &self,
        record: &'static ThreadRecord,
        ask: &AskBy<'_, Token>,
        at: &'static Location<'static>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        let request = Request::new(ask.span, ask.mode, ask.owner.id());
        let behalf = Behalf::of(ask, Token::node, &runner);
        let mut blocker = None;
        if runner.tries_first() && !self.wait_queue.has_reservations() {
            match self.try_once_by(record, request, at, &behalf) {
                Attempt::Granted(token) => return Poll::Ready(Ok(token)),
                Attempt::Blocked(met) => blocker = Some(met),
                Attempt::Overtaken => {}
            }
        }
        let mut list = self.in_list(record, request, at, None);
        list.on_behalf(&behalf);
        let acquisition = SlotAcquisition::new(self, record, request, at, list).on_behalf(&behalf);
        let queue = &self.wait_queue;
        let waiter = Waiter::new(queue, record, request, ask.wait, queue.patience(), at);
        acquisition.run(behalf.waiter(waiter), blocker, runner)
    }

    /// One attempt of an owner, without all that a wait needs.
    fn try_once_by<'a>(
        &'a self,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        behalf: &'a Behalf<'a>,
    ) -> Attempt<Token, Blocker<'a>> {
        if let Some(board) = self.board() {
            return self.try_in_annex(board, record, request, at, Some(behalf));
        }
        if self.setup().growth != Growth::WhenMet {
            return Attempt::Overtaken; // It moves first.
        }
        let mut list = self.in_list(record, request, at, None);
        list.on_behalf(behalf);
        let attempt = self.attempt_in_list(&mut list, record);
        let granted = match &attempt {
            Some(Attempt::Granted(token)) => Some(token.as_list_token()),
            _ => None,
        };
        list.end(granted.as_ref());
        attempt.unwrap_or(Attempt::Overtaken)
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
