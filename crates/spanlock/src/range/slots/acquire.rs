//! How a range is acquired without a wait: in the list while the lock is small, then in the thread's home slot.
//!
//! ```text
//!   acquire --> the list's fast path ------------------------------------------> granted
//!      |
//!      +------> if the lock has not moved: the list ---------------------------> granted
//!      |
//!      +------> if it has:    the thread's grant, taken again -----------------> granted
//!      |                         |
//!      |                         +--> its home slot, or another of its slots --> granted
//!      |
//!      +------> the waiting loop: `attempt.rs`
//! ```
//!
//! The edges cited are the parent module's.

use super::advice::{Advice, Met, Plan, Previous, is_sample};
use super::board::Board;
use super::buckets::Buckets;
use super::home;
use super::look::{Blocker, SlotBlocker};
use super::request::Entry;
use super::scan::WholeGrant;
use super::slot::Slot;
use super::state::State;
use super::token::{Granted, Token};
use super::{Growth, ListToken, RawSlots};
use crate::range::inspect::Request;
use crate::range::list::Tried;
use crate::range::parts::Local;
use crate::range::raw::{Ask, Behind, Mode, Wait};
use crate::range::span::Span;
use crate::range::thread::{self, ThreadRecord};
use prim::atomic::Ordering;
use prim::clock;
use std::panic::Location;

impl RawSlots {
    #[inline]
    #[track_caller]
    pub(super) fn acquire(&self, mode: Mode, ask: Ask<'_, Token>) -> Option<Token> {
        if let Some(behind) = ask.behind() {
            return self.acquire_after(behind, mode, ask);
        }
        // SAFETY: this thread runs.
        let local = unsafe { thread::local().as_ref() };
        match self
            .list
            .acquire_fast(&self.wait_queue, local, ask.span, mode)
        {
            Some(token) => Some(Token::of_list(&token)),
            None => self.acquire_on_board(mode, &Ask::new(ask.span, ask.wait), local),
        }
    }

    /// Takes the thread's grant again, if the lock has moved and the thread keeps a grant that covers the range.
    ///
    /// All else it leaves to other functions, which it calls last. So it needs no stack frame.
    #[inline(never)]
    #[track_caller]
    fn acquire_on_board(
        &self,
        mode: Mode,
        ask: &Ask<'_, ListToken>,
        local: &Local,
    ) -> Option<Token> {
        let Some(board) = self.board() else {
            return self.acquire_elsewhere(mode, ask);
        };
        let Some(home) = local.seats.first_on(board.id()) else {
            return self.acquire_elsewhere(mode, ask);
        };
        // SAFETY: the slot is on this board, whose slots live as long as the lock.
        let home = unsafe { home.as_ref() };
        if self.wait_queue.has_reservations() {
            return self.acquire_elsewhere(mode, ask);
        }
        let state = home.noted_state();
        if home.take_again(state, ask.span, mode, Location::caller()) {
            return Some(Token::of_slot(home, true));
        }
        if ask.wait == Wait::Never {
            return self.try_on_board(mode, ask, home, board);
        }
        if state.is_held() {
            return self.acquire_beside(mode, ask, home, board);
        }
        self.acquire_in_home(mode, ask, home, board)
    }

    /// Looks for what is in the way of a request that may not wait, before it is announced [slot-try-looks]. Not, if it
    /// is about to go to the waiting loop, whose attempt looks.
    #[inline(never)]
    #[track_caller]
    fn try_on_board(
        &self,
        mode: Mode,
        ask: &Ask<'_, ListToken>,
        home: &Slot,
        board: &Board,
    ) -> Option<Token> {
        let request = Request::new(ask.span, mode, home.asked_by());
        let is_held = home.noted_state().is_held();
        if is_held && board.buckets().is_none() {
            return self.acquire_slowly(mode, *ask, None);
        }
        match board.look_for_refusal(&request) {
            Err(met) => self.acquire_slowly(mode, *ask, met.map(Blocker::Slot)),
            Ok(()) if is_held => self.acquire_beside(mode, ask, home, board),
            Ok(()) => self.acquire_in_home(mode, ask, home, board),
        }
    }

    /// Acquires a range where [`acquire_on_board`](Self::acquire_on_board) cannot: the lock has not moved, the thread
    /// has used another lock since, or others have waited for long.
    #[inline(never)]
    #[track_caller]
    fn acquire_elsewhere(&self, mode: Mode, ask: &Ask<'_, ListToken>) -> Option<Token> {
        let Some(board) = self.board() else {
            return self.acquire_in_list(mode, ask);
        };
        if self.wait_queue.has_reservations() || home::known(board).is_none() {
            return self.acquire_slowly(mode, *ask, None);
        }
        // Its seat is the first now.
        // SAFETY: this thread runs.
        self.acquire_on_board(mode, ask, unsafe { thread::local().as_ref() })
    }

    /// Announces the request in the thread's home slot on that board, in which nothing is held, and whose grant would
    /// not do.
    #[inline(never)]
    #[track_caller]
    fn acquire_in_home(
        &self,
        mode: Mode,
        ask: &Ask<'_, ListToken>,
        home: &Slot,
        board: &Board,
    ) -> Option<Token> {
        let span = ask.span;
        let at = Location::caller();
        let state = home.noted_state();
        debug_assert!(!state.is_held(), "an announcement would end that hold");
        let mut blocker = None;
        if board.residue_is_empty() {
            let (plan, buckets) = self.plan(board, home, state, mode, span);
            let entry = Entry::newcomer(Request::new(span, mode, home.asked_by()), at);
            let entered = match (plan, buckets) {
                (Plan::Once, _) => board.enter(home, state, &entry),
                (Plan::Listed, Some(buckets)) => {
                    self.enter_listed(board, buckets, home, home, entry)
                }
                _ => self.enter_to_keep(board, home, state, entry, plan),
            };
            match self.grant(mode, span, board, home, entered) {
                Ok(()) => return Some(Token::of_slot(home, true)),
                Err(met) => blocker = met,
            }
        }
        self.acquire_slowly(mode, *ask, blocker)
    }

    /// Tries once to get a range in the list, if the lock has not moved: a thread that holds others has nobody in its
    /// way, as a rule.
    #[inline(never)]
    #[track_caller]
    fn acquire_in_list(&self, mode: Mode, ask: &Ask<'_, ListToken>) -> Option<Token> {
        if self.setup().growth != Growth::WhenMet || self.wait_queue.has_reservations() {
            return self.acquire_slowly(mode, *ask, None);
        }
        let at = Location::caller();
        let outcome = thread::with_record(|record| {
            let request = Request::new(ask.span, mode, record.thread());
            let mut attempt = self.in_list(record, request, at, ask.wait, ask.behind());
            let tried = attempt.try_once();
            self.consider_move(&attempt, record);
            match &tried {
                Tried::Granted(token) => attempt.end(Some(token)),
                _ => attempt.end(None),
            }
            match tried {
                Tried::Granted(token) => Ok(Token::of_list(&token)),
                // A thread that is exiting has borrowed the record, and the walk must not last longer.
                Tried::Blocked(node) if record.is_here() => Err(Some(Blocker::Node(node))),
                Tried::Blocked(_) | Tried::Overtaken | Tried::Moved | Tried::Refused => Err(None),
            }
        });
        match outcome {
            Ok(token) => Some(token),
            Err(blocker) => self.acquire_slowly(mode, *ask, blocker),
        }
    }

    /// For a thread that holds something in its home slot: announces a request that can be listed in another of the
    /// thread's slots, since most likely nobody is in its way. Any other goes on as a blocked one.
    #[inline(never)]
    #[track_caller]
    fn acquire_beside(
        &self,
        mode: Mode,
        ask: &Ask<'_, ListToken>,
        home: &Slot,
        board: &Board,
    ) -> Option<Token> {
        let at = Location::caller();
        let mut blocker = None;
        if board.buckets().is_some()
            && board.residue_is_empty()
            && let Some(buckets) = self.buckets_for(board, home, home, ask.span)
            && let Some(slot) = board.take_other(home)
        {
            let entry = Entry::newcomer(Request::new(ask.span, mode, home.asked_by()), at);
            let entered = self.enter_listed(board, buckets, home, slot, entry);
            match self.grant(mode, ask.span, board, slot, entered) {
                Ok(()) => return Some(Token::of_slot(slot, false)),
                Err(met) => {
                    board.give_back(slot);
                    blocker = met;
                }
            }
        }
        self.acquire_slowly(mode, *ask, blocker)
    }

    /// Acquires a range for a thread that holds others before it. So the lock is in use.
    #[track_caller]
    fn acquire_after(
        &self,
        behind: Behind<'_, Token>,
        mode: Mode,
        Ask { span, wait, .. }: Ask<'_, Token>,
    ) -> Option<Token> {
        // SAFETY: this lock granted the token, as `Ask::after` requires.
        match unsafe { behind.token.granted() } {
            Granted::List(token) => {
                let behind = Behind {
                    token: &token,
                    ranges: behind.ranges,
                };
                // SAFETY: the token of the list stands for the same range, in the same mode.
                self.acquire_in_list(mode, &unsafe { Ask::after(behind, span, wait) })
            }
            // SAFETY: this thread runs.
            Granted::Slot(_) => self.acquire_on_board(mode, &Ask::new(span, wait), unsafe {
                thread::local().as_ref()
            }),
            Granted::Annex(_) => self.acquire_slowly(mode, Ask::new(span, wait), None),
        }
    }

    /// The plan for a request in the thread's home slot, whose grant does not cover it; and the buckets, if it could be
    /// listed.
    #[inline]
    fn plan<'a>(
        &self,
        board: &'a Board,
        home: &Slot,
        state: State,
        mode: Mode,
        span: Span,
    ) -> (Plan, Option<&'a Buckets>) {
        if let Advice::Always(plan) = self.setup().advice {
            let buckets = Self::always(plan, board, span);
            return (plan.limited_to(mode, buckets.is_some()), buckets);
        }
        let buckets = Self::learn_where(board, home, home, span);
        let otherwise = buckets.map_or(Plan::Once, |_| Plan::Listed);
        let last = Previous {
            is_kept: home.keeps(state),
            is_repeated: home.announces(span),
            number: state.number(),
        };
        (home.advice().grants.plan(otherwise, last, mode), buckets)
    }

    /// The buckets, if there are any and the range is to be listed that is about to be announced in a slot, by the
    /// advice of another slot or of the same.
    pub(super) fn buckets_for<'a>(
        &self,
        board: &'a Board,
        adviser: &Slot,
        slot: &Slot,
        span: Span,
    ) -> Option<&'a Buckets> {
        match self.setup().advice {
            Advice::Always(plan) => Self::always(plan, board, span),
            Advice::Learnt => Self::learn_where(board, adviser, slot, span),
        }
    }

    #[cold] // In tests.
    fn always(plan: Plan, board: &Board, span: Span) -> Option<&Buckets> {
        let is_narrow = |buckets: &&Buckets| buckets.is_narrow(span.start(), span.last());
        let buckets = board.buckets().filter(|_| plan == Plan::Listed);
        buckets.filter(is_narrow)
    }

    /// Where it has turned out best to look: as [`buckets_for`](Self::buckets_for). Where there are no
    /// buckets, it may be time to make them.
    #[inline]
    fn learn_where<'a>(
        board: &'a Board,
        adviser: &Slot,
        slot: &Slot,
        span: Span,
    ) -> Option<&'a Buckets> {
        let Some(buckets) = board.buckets() else {
            if is_sample(slot.noted_state().number(), slot.number()) {
                Self::vote_on_buckets(board, adviser, slot, span);
            }
            return None;
        };
        if !buckets.is_narrow(span.start(), span.last()) {
            return None;
        }
        if adviser.advice().window.count_narrow() {
            Self::vote_on_rest(board, adviser);
        }
        board.advice.lists().then_some(buckets)
    }

    /// Makes buckets, if the threads' samples are far apart.
    #[cold]
    fn vote_on_buckets(board: &Board, adviser: &Slot, slot: &Slot, span: Span) {
        // What came before in the slot, or, in a new one, in the one that advises.
        let was_used = |slot: &&Slot| slot.load(Ordering::Relaxed).number() != 0;
        let Some(before) = [slot, adviser].into_iter().find(was_used) else {
            return;
        };
        let window = &adviser.advice().window;
        // The thread whose vote decides makes the buckets, for ranges of its own: a few long ranges of another thread
        // would make them useless for all.
        if let Some((ballot, digits)) = window.note_sample(before.announced(), span, board.len())
            && board.advice.vote(ballot)
        {
            board.make_buckets(digits);
        }
    }

    /// Ends a window of narrow requests. Now and then, takes the slots off the count that are idle.
    #[cold]
    fn vote_on_rest(board: &Board, adviser: &Slot) {
        let window = &adviser.advice().window;
        if window.is_to_tidy() && !board.counted().is_none() {
            board.tidy();
        }
        let ballot = window.judge(board.len() as u32);
        board.advice.vote_on_rest(ballot, clock::nanoseconds());
    }

    /// Announces a request in the thread's home slot, and keeps its grant if it may.
    #[inline(never)] // So that one that is not kept is announced without it.
    fn enter_to_keep<'a>(
        &self,
        board: &'a Board,
        home: &'a Slot,
        before: State,
        mut entry: Entry<'_>,
        plan: Plan,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        entry.grant = plan.grant(entry.request.span);
        let entered = board.enter(home, before, &entry);
        let grants = &home.advice().grants;
        match entered {
            Ok(WholeGrant::Allowed) => grants.granted(plan, home.noted_state().number()),
            Ok(WholeGrant::RuledOut) => grants.was_refused(),
            Err(_) => {}
        }
        entered
    }

    /// Announces a narrow request in a slot, where it is to be listed.
    #[inline(always)] // An entry that is handed on twice is written to memory twice, and read too soon after.
    pub(super) fn enter_listed<'a>(
        &self,
        board: &'a Board,
        buckets: &Buckets,
        adviser: &Slot,
        slot: &'a Slot,
        entry: Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        let mut met = Met::NOBODY;
        let entered = board.enter_buckets(buckets, slot, slot.noted_state(), entry, &mut met);
        if met != Met::NOBODY {
            adviser.advice().window.pay(met);
        }
        entered
    }

    /// Announces a request where it is to be listed, or else for all to see.
    #[inline(always)] // Most of a newcomer's entry is constant.
    pub(super) fn enter<'a>(
        &self,
        board: &'a Board,
        buckets: Option<&Buckets>,
        adviser: &Slot,
        slot: &'a Slot,
        entry: Entry<'_>,
    ) -> Result<WholeGrant, SlotBlocker<'a>> {
        match buckets {
            Some(buckets) => self.enter_listed(board, buckets, adviser, slot, entry),
            None => board.enter(slot, slot.noted_state(), &entry),
        }
    }

    /// Grants a request for that range, which is announced in that slot, if nothing is in its way. Otherwise it
    /// withdraws, and what is in its way is returned, if that is known.
    #[inline(always)] // As `settle`, which costs a fresh range more here.
    pub(super) fn grant<'a>(
        &self,
        mode: Mode,
        span: Span,
        board: &'a Board,
        slot: &Slot,
        entered: Result<WholeGrant, SlotBlocker<'a>>,
    ) -> Result<(), Option<Blocker<'a>>> {
        match entered {
            // [annex-look]
            Ok(_) if board.annex_is_empty() => {}
            entered => self.settle_outlined(mode, span, board, slot, entered)?,
        }
        slot.decide();
        Ok(())
    }

    /// As [`settle`](Self::settle), for a request for that range which is announced in that slot. It makes the request
    /// anew: if its caller used the entry again, the entry would not stay in registers, and that would cost more than
    /// all else between the announcement and the return.
    #[cold] // It has met another one, or the annex is in use.
    #[inline(never)]
    fn settle_outlined<'a>(
        &self,
        mode: Mode,
        span: Span,
        board: &'a Board,
        slot: &Slot,
        entered: Result<WholeGrant, SlotBlocker<'a>>,
    ) -> Result<(), Option<Blocker<'a>>> {
        let request = Request::new(span, mode, slot.asked_by());
        thread::with_record(
            |record| match self.settle(record, board, slot, entered, &request) {
                Ok(_) => Ok(()),
                // A thread that is exiting has borrowed the record, and the walk must not last longer.
                Err(Blocker::Node(_)) if !record.is_here() => Err(None),
                Err(met) => Err(Some(met)),
            },
        )
    }

    /// A request that met nothing in its way in the slots makes sure that nothing is in its way in the annex. One that
    /// is not granted withdraws.
    #[inline]
    pub(super) fn settle<'a>(
        &self,
        record: &'static ThreadRecord,
        board: &'a Board,
        slot: &Slot,
        entered: Result<WholeGrant, SlotBlocker<'a>>,
        request: &Request,
    ) -> Result<WholeGrant, Blocker<'a>> {
        let settled = match entered {
            // [annex-look]
            Ok(whole) if board.annex_is_empty() => Ok(whole),
            Ok(whole) => {
                let look = || board.look_in_annex(record, request);
                self.look_while_announced(board, slot, look).map(|()| whole)
            }
            Err(met) => Err(Blocker::Slot(met)),
        };
        settled.inspect_err(|_| self.withdraw(board, slot))
    }
}
