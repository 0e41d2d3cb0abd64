//! How a range is acquired that the thread does not get at once: the attempt of the waiting loop (`range/wait/`).
//!
//! ```text
//!   not moved:  as in a list lock; if others are there, the lock may move
//!   moved:      announce --> fence --> look at all slots --> walk the residue --> granted
//!                                             |                     |
//!                                             v                     v
//!                                 withdraw; the other announcement or node is the blocker
//! ```
//!
//! The edges cited are the parent module's.

use super::advice::Blocked;
use super::board::Board;
use super::home::{self, FreeSlot};
use super::look::Blocker;
use super::request::{Entry, Seniority};
use super::token::{Granted, Token};
use super::{Growth, InList, ListToken, RawSlots};
use crate::range::inspect::{Request, SelfDeadlock};
use crate::range::list::{Behalf, MANY, Tried};
use crate::range::raw::{Ask, Mode, Wait};
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{
    Acquisition, Attempt, Holder, HolderId, Refused, Runner, Standing, Waiter,
};
use crate::wait::Stay;
use prim::atomic::Ordering;
use prim::{clock, debug, thread as threads};
use std::panic::Location;
use std::task::Poll;

impl RawSlots {
    #[cold] // The lock is in use.
    #[track_caller]
    pub(super) fn acquire_slowly<'a>(
        &'a self,
        mode: Mode,
        ask: Ask<'a, ListToken>,
        blocker: Option<Blocker<'a>>,
    ) -> Option<Token> {
        let Ask { span, wait, .. } = ask;
        let at = Location::caller();
        let outcome = thread::with_record(|record| {
            let request = Request::new(span, mode, record.thread());
            let list = self.in_list(record, request, at, wait, ask.behind());
            let mut acquisition = SlotAcquisition::new(self, record, request, at, wait, list);
            let blocker = acquisition.blocked_by(blocker);
            let queue = &self.wait_queue;
            let waiter = Waiter::new(queue, record, request, wait, queue.patience(), at);
            acquisition.acquire(waiter, blocker)
        });
        // Outside the closure, so that a panic names the caller's line.
        Refused::answer(outcome)
    }

    /// One attempt in the list. `None`: the lock has moved meanwhile.
    pub(super) fn attempt_in_list<'a>(
        &'a self,
        list: &mut InList<'a>,
        record: &ThreadRecord,
    ) -> Option<Attempt<Token, Blocker<'a>>> {
        let attempt = match list.try_once() {
            Tried::Moved => return None,
            Tried::Granted(token) => Attempt::Granted(Token::of_list(&token)),
            Tried::Blocked(node) => Attempt::Blocked(Blocker::Node(node)),
            Tried::Overtaken | Tried::Refused => Attempt::Overtaken,
        };
        self.consider_move(list, record);
        Some(attempt)
    }
}

/// One request to a slot lock, in the waiting loop.
pub(super) struct SlotAcquisition<'a> {
    lock: &'a RawSlots,
    record: &'static ThreadRecord,
    request: Request,
    at: &'static Location<'static>,
    seniority: Seniority,
    was_blocked: bool,
    /// How long it waits in place.
    stay: Stay<'a>,
    wait: Wait,
    /// Whose request it is, if not the thread's.
    behalf: Option<&'a Behalf<'a>>,
    /// The request as one to the list, for as long as the lock has not moved.
    list: InList<'a>,
}

impl<'a> SlotAcquisition<'a> {
    pub(super) fn new(
        lock: &'a RawSlots,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        wait: Wait,
        list: InList<'a>,
    ) -> Self {
        Self {
            lock,
            record,
            request,
            at,
            seniority: Seniority::NEWCOMER,
            was_blocked: false,
            stay: Stay::new(&record.spins),
            wait,
            behalf: None,
            list,
        }
    }

    /// Makes it an owner's request.
    pub(super) fn on_behalf(self, behalf: &'a Behalf<'a>) -> Self {
        Self {
            behalf: Some(behalf),
            ..self
        }
    }

    /// Waits for the request and ends it.
    fn acquire(
        mut self,
        waiter: Waiter<'a>,
        blocker: Option<Blocker<'a>>,
    ) -> Result<Token, Refused> {
        let outcome = waiter.acquire(&mut self, blocker);
        self.end(outcome.as_ref().ok());
        outcome
    }

    /// Goes on with an owner's request.
    pub(super) fn run(
        mut self,
        waiter: Waiter<'a>,
        blocker: Option<Blocker<'a>>,
        runner: Runner<'_>,
    ) -> Poll<Result<Token, Refused>> {
        let outcome = waiter.run(&mut self, blocker, runner);
        self.end(match &outcome {
            Poll::Ready(Ok(token)) => Some(token),
            _ => None,
        });
        outcome
    }

    pub(super) fn end(self, granted: Option<&Token>) {
        let granted = granted.filter(|token| token.is_of_list());
        self.list.end(granted.map(Token::as_list_token).as_ref());
    }

    /// Notes what an attempt before it has met. Returns what it is to wait for before it tries again.
    pub(super) fn blocked_by<'b>(&mut self, met: Option<Blocker<'b>>) -> Option<Blocker<'b>> {
        if !matches!(met, Some(Blocker::Slot(_))) {
            return met;
        }
        self.note_block();
        // A request that waits in place waits for whatever is in its way now.
        met.filter(|_| self.may_wait_in_place().is_none())
    }

    /// Notes that it was blocked, and when a writer was for the first time. Readers stay newcomers: while one writer
    /// follows another they gather, and then they hold their ranges together. So do tries, which await nothing.
    fn note_block(&mut self) {
        self.was_blocked = true;
        let may_be_senior = self.request.mode == Mode::Exclusive && self.wait != Wait::Never;
        if self.seniority == Seniority::NEWCOMER && may_be_senior {
            self.seniority = Seniority::blocked_at(clock::nanoseconds());
        }
    }

    /// What the advice is to know of a request that was blocked. `None`: it was not.
    fn blocked(&self) -> Option<Blocked> {
        self.was_blocked.then(|| Blocked {
            mode: self.request.mode,
            // One that has a deadline must not wait for holder after holder without a look at the time. Nor may a task:
            // the holder may have to run on this very thread.
            is_unlimited: self.wait == Wait::Forever && self.list.blocks_thread(),
            may_spin: !self.stay.is_over()
                && self.stay.may_pay()
                && !self.lock.wait_queue.is_short_of_processors(),
        })
    }

    /// How long the request may wait in place, if it is to.
    fn may_wait_in_place(&self) -> Option<&Stay<'a>> {
        let waits = self
            .blocked()
            .is_some_and(|blocked| blocked.waits_in_place());
        waits.then_some(&self.stay)
    }

    /// One attempt on the board.
    fn attempt_on(&mut self, board: &'a Board) -> Attempt<Token, Blocker<'a>> {
        match self.free_slot(board) {
            Some(own) => self.attempt_in_slot(board, own),
            None => self.attempt_in_annex(board),
        }
    }

    /// A slot for the request. `None`: it belongs in the annex.
    fn free_slot(&self, board: &'a Board) -> Option<FreeSlot<'a>> {
        let is_for_annex = self.lock.setup().growth == Growth::Annex;
        match self.behalf {
            None => {
                let most_others = if is_for_annex { 0 } else { MANY - 1 };
                board.free_slot(self.record, most_others)
            }
            // A request that replaces what its owner holds is inserted beside that.
            Some(behalf) if is_for_annex || behalf.replaced().is_some() => None,
            Some(_) => board.lend().map(FreeSlot::lent),
        }
    }

    fn attempt_in_annex(&self, board: &'a Board) -> Attempt<Token, Blocker<'a>> {
        let Self {
            record,
            request,
            at,
            wait,
            behalf,
            ..
        } = *self;
        self.lock
            .try_in_annex(board, record, request, at, wait, behalf)
    }

    /// One attempt in a slot of the thread's, or a lent one.
    fn attempt_in_slot(
        &mut self,
        board: &'a Board,
        own: FreeSlot<'a>,
    ) -> Attempt<Token, Blocker<'a>> {
        let slot = own.slot;
        if debug::CHECKS && own.home.is_none() {
            slot.note_borrower(self.record.thread());
        }
        let entry = Entry {
            seniority: self.seniority,
            in_place: self.may_wait_in_place(),
            ..Entry::newcomer(self.request, self.at)
        };
        let adviser = own.adviser();
        let span = self.request.span;
        let buckets = self.lock.buckets_for(board, adviser, slot, span);
        if own.is_home() {
            slot.advice().grants.drop_next();
        }
        let looked = match (self.wait, self.was_blocked) {
            (Wait::Never, _) => self.look_for_refusal(board).map(|()| None),
            // It is likely to be blocked again, and an announcement in vain would cost all others a cache miss.
            (_, true) => board
                .look_before(buckets, slot, &entry)
                .map_err(Blocker::Slot),
            (_, false) => Ok(None),
        };
        let turn = looked.as_ref().ok().copied().flatten();
        let entered = match (looked, buckets) {
            (Err(met), _) => Err(met),
            (Ok(_), buckets) => {
                let entered = self.lock.enter(board, buckets, adviser, slot, entry);
                self.lock
                    .settle(self.record, board, slot, entered, &entry.request)
            }
        };
        let entered = match entered {
            Ok(_) if board.residue_is_empty() => Ok(()),
            Ok(_) => {
                let look = || board.look_in_residue(self.record, &self.request, None);
                let looked = self.lock.look_while_announced(board, slot, look);
                looked.inspect_err(|_| self.lock.leave(board, slot))
            }
            Err(met) => Err(met),
        };
        match entered {
            Ok(()) => {
                match self.request.mode {
                    Mode::Exclusive if self.was_blocked => {
                        let turn = turn.unwrap_or_else(clock::nanoseconds);
                        slot.decide_on(threads::node(), turn);
                    }
                    _ => slot.decide(),
                }
                Attempt::Granted(Token::of_slot(slot, own.is_home()))
            }
            Err(blocker) => {
                if !own.is_home() {
                    board.give_back(slot);
                }
                self.note_block();
                Attempt::Blocked(blocker)
            }
        }
    }

    /// What is in the way of a request that may not wait, anywhere on the board. It is not announced.
    fn look_for_refusal(&self, board: &'a Board) -> Result<(), Blocker<'a>> {
        if let Err(Some(met)) = board.look_for_refusal(&self.request) {
            return Err(Blocker::Slot(met));
        }
        if !prim::intact!("slot-try-looks") {
            return Ok(());
        }
        board.look_in_annex(self.record, &self.request)?;
        board.look_in_residue(self.record, &self.request, None)
    }

    /// Whether it may hold a range of the lock.
    fn may_hold(&self) -> bool {
        let holds_slot = |board: &Board| {
            home::known(board).is_none_or(|home| !home.is_free() || home.has_others())
        };
        self.list.may_hold()
            || self.list.blocks_thread() && self.lock.board().is_some_and(holds_slot)
    }
}

impl<'a> Acquisition for SlotAcquisition<'a> {
    type Token = Token;
    type Blocker = Blocker<'a>;

    fn attempt(&mut self) -> Attempt<Token, Blocker<'a>> {
        loop {
            if let Some(board) = self.lock.board() {
                if !self.lock.list.is_crowded.load(Ordering::Relaxed) {
                    // A request that was inserted just before the move has changed the hint.
                    self.lock.list.is_crowded.store(true, Ordering::Relaxed);
                }
                return self.attempt_on(board);
            } else if self.lock.setup().growth != Growth::WhenMet {
                self.lock.move_to_slots();
            } else if let Some(attempt) = self.lock.attempt_in_list(&mut self.list, self.record) {
                return attempt;
            }
        }
    }

    fn look(&self, blocker: &Blocker<'a>) -> Standing {
        match blocker {
            Blocker::Node(node) => self.list.look(node),
            Blocker::Slot(met) if !met.is_in_the_way(self.request.mode) => Standing::Gone,
            // A writer that has met another one in place goes on when that one holds its range: it may be the next.
            Blocker::Slot(met) if met.is_decided() && self.may_wait_in_place().is_some() => {
                Standing::Gone
            }
            Blocker::Slot(met) if met.outlasts_us => Standing::Outlasts,
            // A writer that was blocked awaits its range, maybe in place.
            Blocker::Slot(met) if met.slot.seniority() == Seniority::NEWCOMER => {
                Standing::Undecided
            }
            Blocker::Slot(_) => Standing::Stays,
        }
    }

    fn deadlock_with(&self, blocker: &Blocker<'a>) -> Option<SelfDeadlock> {
        match blocker {
            Blocker::Node(node) => self.list.deadlock_with(node),
            Blocker::Slot(met) => {
                // A piece is granted whoever is in its way.
                let may_stay = !self.behalf.is_some_and(Behalf::is_piece);
                let is_ours = may_stay && self.list.blocks(met.slot.asked_by());
                // What another thread has locked for the owner, that one may release.
                let is_here = met.slot.is_of(self.record.thread());
                (is_ours && is_here && met.is_in_the_way(self.request.mode)).then(|| SelfDeadlock {
                    asked: self.request,
                    held: met.slot.request(met.state),
                    at: met.slot.at(),
                    ranges: None,
                })
            }
        }
    }

    fn mark(&self, blocker: &Blocker<'a>) -> Option<Holder> {
        match blocker {
            Blocker::Node(node) => self.list.mark(node),
            Blocker::Slot(met) => {
                let state = met.mark(self.request.mode)?;
                Some(Holder {
                    id: met.slot.id(),
                    request: met.slot.request(state),
                    at: debug::CHECKS.then(|| met.slot.at()),
                })
            }
        }
    }

    fn held(&self) -> Vec<Request> {
        if !self.may_hold() {
            return Vec::new();
        }
        let mut held = self.lock.holders(self.record);
        held.retain(|holder| self.list.blocks(holder.owner));
        held.extend(self.list.replaced());
        held
    }

    fn adopt(&self, token: &mut Token, sleeper: &Request) -> HolderId {
        // SAFETY: this lock has granted the token just now.
        match unsafe { token.granted() } {
            Granted::List(mut listed) => {
                let holder = self.list.adopt(&mut listed, sleeper);
                *token = Token::of_list(&listed);
                holder
            }
            Granted::Annex(mut annexed) => {
                let holder = self.list.adopt(&mut annexed, sleeper);
                *token = Token::of_annex(&annexed);
                holder
            }
            Granted::Slot(slot) => {
                // [slot-inherit] As if each sleeper had marked the slot itself.
                if prim::intact!("slot-inherit") {
                    slot.inherit_sleeper();
                }
                slot.id()
            }
        }
    }
}
