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
use crate::range::list::{Behalf, Blocker as NodeBlocker, MANY, Tried};
use crate::range::owner::OwnerId;
use crate::range::raw::{Ask, Mode, Wait};
use crate::range::thread::{self, ThreadRecord};
use crate::range::wait::{
    Acquisition, Attempt, Holder, HolderId, Refused, Reserves, Runner, Waiter,
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
            let list = self.in_list(record, request, at, ask.behind());
            let mut acquisition = SlotAcquisition {
                is_unlimited: wait == Wait::Forever,
                ..SlotAcquisition::new(self, record, request, at, list)
            };
            let mut blocker = blocker;
            if let Some(Blocker::Slot(_)) = &blocker {
                acquisition.note_block();
                // A request that waits in place waits for whatever is in its way now.
                blocker = blocker.filter(|_| acquisition.may_wait_in_place().is_none());
            }
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
    /// It has no deadline. One that has must not wait for holder after holder without a look at the time.
    is_unlimited: bool,
    /// Whose request it is, if not the thread's. What owners hold is not in slots.
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
            is_unlimited: false,
            behalf: None,
            list,
        }
    }

    /// The same for an owner's request.
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

    fn end(self, granted: Option<&Token>) {
        let granted = granted.filter(|token| token.is_of_list());
        self.list.end(granted.map(Token::as_list_token).as_ref());
    }

    /// Notes that it was blocked, and when a writer was for the first time. Readers stay newcomers: while one writer
    /// follows another they gather, and then they hold their ranges together.
    fn note_block(&mut self) {
        self.was_blocked = true;
        if self.seniority == Seniority::NEWCOMER && self.request.mode == Mode::Exclusive {
            self.seniority = Seniority::blocked_at(clock::nanoseconds());
        }
    }

    /// What the advice says about a request that was blocked. `None`: it was not.
    fn blocked(&self) -> Option<Blocked> {
        self.was_blocked.then(|| Blocked {
            mode: self.request.mode,
            is_unlimited: self.is_unlimited,
            may_spin: !self.stay.is_over() && self.stay.may_pay(),
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
        if self.behalf.is_some() {
            return self.attempt_in_annex(board);
        }
        let most_others = match self.lock.setup().growth {
            Growth::Annex => 0,
            _ => MANY - 1,
        };
        match board.free_slot(self.record, most_others) {
            Some(own) => self.attempt_in_slot(board, own),
            None => self.attempt_in_annex(board),
        }
    }

    fn attempt_in_annex(&self, board: &'a Board) -> Attempt<Token, Blocker<'a>> {
        let Self {
            record,
            request,
            at,
            behalf,
            ..
        } = *self;
        self.lock.try_in_annex(board, record, request, at, behalf)
    }

    /// One attempt in a slot of the thread's.
    fn attempt_in_slot(
        &mut self,
        board: &'a Board,
        own: FreeSlot<'a>,
    ) -> Attempt<Token, Blocker<'a>> {
        let slot = own.slot;
        let entry = Entry {
            seniority: self.seniority,
            in_place: self.may_wait_in_place(),
            ..Entry::newcomer(self.request, self.at)
        };
        let buckets = own
            .home
            .and_then(|home| self.lock.buckets_for(board, home, slot, self.request.span));
        if own.is_home() {
            slot.advice().grants.drop_next();
        }
        // It is likely to be blocked again, and an announcement in vain would cost all others a cache miss.
        let foreseen = match self.was_blocked {
            true => board.foresee(buckets, slot, &entry),
            false => Ok(None),
        };
        let turn = foreseen.as_ref().ok().copied().flatten();
        let entered = match (foreseen, own.home.zip(buckets)) {
            (Err(met), _) => Err(Blocker::Slot(met)),
            (Ok(_), announced) => {
                let entered = match announced {
                    Some((home, buckets)) => {
                        self.lock.enter_listed(board, buckets, home, slot, entry)
                    }
                    None => board.enter(slot, slot.noted_state(), &entry),
                };
                self.lock
                    .settle(self.record, board, slot, entered, &entry.request)
            }
        };
        let entered = match entered {
            Ok(_) => self
                .check_residue(board)
                .inspect_err(|_| self.lock.leave(board, slot)),
            Err(met) => Err(met),
        };
        match entered {
            Ok(()) => {
                match self.request.mode {
                    Mode::Shared => slot.decide(),
                    Mode::Exclusive => {
                        let turn = turn.unwrap_or_else(clock::nanoseconds);
                        slot.decide_on(threads::node(), turn);
                    }
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

    /// Makes sure that nothing is in the way which was in the list when the lock moved.
    fn check_residue(&self, board: &'a Board) -> Result<(), Blocker<'a>> {
        if board.residue_is_empty() {
            return Ok(());
        }
        let pin = self.record.pin();
        match board.residue_in_the_way_of(&pin, &self.request, None) {
            // SAFETY: a walk has met the node under this pin.
            Some(node) => Err(Blocker::Node(unsafe { NodeBlocker::new(node, pin) })),
            None => Ok(()),
        }
    }
}

impl<'a> Acquisition for SlotAcquisition<'a> {
    type Token = Token;
    type Blocker = Blocker<'a>;

    // Nodes and announcements end once, and wake their sleepers then.
    const RESERVES: Reserves = Reserves::WhenWoken;

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

    fn is_blocked_by(&self, blocker: &Blocker<'a>) -> bool {
        match blocker {
            Blocker::Node(node) => self.list.is_blocked_by(node),
            // A writer that has met another one in place goes on when that one holds its range: it may be the next.
            Blocker::Slot(slot) => {
                slot.is_in_the_way(self.request.mode)
                    && !(slot.is_decided() && self.may_wait_in_place().is_some())
            }
        }
    }

    fn has_waited_for(&self, blocker: &Blocker<'a>) -> bool {
        matches!(blocker, Blocker::Slot(slot) if slot.outlasts_us)
    }

    fn sees_withdrawal_of(&self, blocker: &Blocker<'a>) -> bool {
        match blocker {
            Blocker::Node(node) => self.list.sees_withdrawal_of(node),
            Blocker::Slot(slot) => slot.await_decision(self.request.mode),
        }
    }

    fn deadlock_with(&self, blocker: &Blocker<'a>) -> Option<SelfDeadlock> {
        match blocker {
            Blocker::Node(node) => self.list.deadlock_with(node),
            Blocker::Slot(met) => {
                let is_ours = self.list.blocks(OwnerId::of_thread(met.slot.thread()));
                (is_ours && met.is_in_the_way(self.request.mode)).then(|| SelfDeadlock {
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
        let mut held = self.lock.holders(self.record);
        held.retain(|holder| self.list.blocks(holder.owner));
        held.extend(self.list.replaced());
        held
    }

    fn may_hold(&self) -> bool {
        let holds_slot = |board: &Board| {
            home::known(board).is_none_or(|home| !home.is_free() || home.has_others())
        };
        self.list.may_hold()
            || self.list.blocks_thread() && self.lock.board().is_some_and(holds_slot)
    }

    fn adopt(&self, token: &Token, sleeper: &Request) -> HolderId {
        // SAFETY: this lock has granted the token just now.
        match unsafe { token.granted() } {
            Granted::List(token) | Granted::Annex(token) => self.list.adopt(&token, sleeper),
            Granted::Slot(slot) => slot.id(),
        }
    }

    fn adopted(&self, token: Token) -> Token {
        // SAFETY: this lock has granted the token just now.
        match unsafe { token.granted() } {
            Granted::List(token) => Token::of_list(&self.list.adopted(token)),
            Granted::Annex(token) => Token::of_annex(&self.list.adopted(token)),
            Granted::Slot(slot) => {
                // [slot-inherit] As if each sleeper had marked the slot itself.
                if prim::intact!("slot-inherit") {
                    slot.inherit_sleeper();
                }
                token
            }
        }
    }
}
