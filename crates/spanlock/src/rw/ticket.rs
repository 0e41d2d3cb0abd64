//! The phase-fair ticket lock PF-T of Brandenburg and Anderson, with sleep.
//!
//! `phases.rs` tells how readers and writers take turns. A writer here takes a ticket and waits for its turn among
//! writers. Readers sleep on the word that has the announcement, writers on the word that says whose turn it is, and
//! each word has a mark for those who sleep on it. A ticket is not given back, so a timed writer takes none until it
//! would be inside with it.
//!
//! # Memory ordering
//!
//! - **ticket-turn** / **ticket-turn-acquire**: Release by the writer that passes the turn on, Acquire by the next.
//! - **ticket-parity**: a waiting reader goes on also when another writer is announced.
//! - **ticket-wake**: the writer that passes the turn on and finds the mark takes it off and wakes.

use super::park;
use super::phases::{Came, Parity, Phases, SLEEPER};
use super::raw::{Stays, raw_rwlock};
use super::watch;
use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;

/// One turn: the lowest bit is the mark.
const TURN: u32 = 2;

/// A phase-fair reader-writer lock: readers wait for one writer at most, writers are served in order.
///
/// - **Size**: 16 bytes.
/// - **Cost**: one atomic operation to read and one to leave; a write is two and two.
/// - **Fairness**: a reader waits for the writer inside and no other; a writer waits for those who came before it,
///   and for one phase of readers before each of them.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting**: a try does not wait. Timed forms are not fair: a place cannot be given up, so they take none, and
///   try whenever somebody has left. A timed write is starved by readers who keep coming, a timed read by writers.
/// - **Downgrade**: readers who wait get in beside the new one.
/// - **Panics** when 2^27 guards are held or were leaked.
/// - Not when many writers wait: all wake to look whose turn it is; [`PhaseFairQueue`](super::PhaseFairQueue) wakes
///   one. Nor when many processors read often: put [`Bravo`](super::Bravo) around it.
/// - Not in a forked child, unless no other thread of the parent used the lock at the time: a thread that waited keeps
///   its place, and the child would wait for it.
/// - Guards stay on their threads, unless the feature `send_guard` is on.
///
/// Source: Brandenburg and Anderson, *Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems*,
/// Real-Time Systems 46 (2010), PF-T; sleeping is ours.
#[derive(Debug)]
pub struct PhaseFairTicket {
    phases: Phases,
    /// Tickets given to writers, in turns.
    tickets: AtomicU32,
    /// Whose turn it is, a mark.
    turn: AtomicU32,
}

/// The ticket of the writer inside.
#[derive(Debug)]
pub struct Ticket(u32, Stays);

impl Ticket {
    const fn new(turn: u32) -> Self {
        Self(turn, Stays::new())
    }
}

impl PhaseFairTicket {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                phases: Phases::new(),
                tickets: AtomicU32::new(0),
                turn: AtomicU32::new(0),
            }
        }
    }

    fn is_locked(&self) -> bool {
        self.phases.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.phases.is_announced()
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<Stays> {
        let came = self.phases.come(wait)?;
        if let Some(met) = came.met() {
            self.await_writer(met);
        }
        self.phases.stay(came);
        Some(Stays::new())
    }

    #[cold] // A writer is there.
    fn await_writer(&self, met: Parity) {
        // [ticket-parity]
        let gone = |now: u32| {
            let now = Came::of(now).met();
            now.is_none_or(|now| now != met && prim::intact!("ticket-parity"))
        };
        let came = &self.phases.came;
        park::until(came, SLEEPER, Phases::acquire(), Wait::Forever, gone);
    }

    #[inline]
    fn leave_shared(&self, _: Stays) {
        self.phases.leave();
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<Ticket> {
        if wait != Wait::Forever {
            return self.phases.poll(wait, || self.try_write());
        }
        let ticket = self.tickets.fetch_add(TURN, Ordering::Relaxed);
        let mine = |turn: u32| turn & !SLEEPER == ticket;
        park::until(&self.turn, SLEEPER, Self::acquire(), wait, mine);
        let before = self.phases.announce(Ordering::Relaxed);
        self.phases.drain(before);
        Some(Ticket::new(ticket))
    }

    /// The order of looks at `turn` by writers.
    fn acquire() -> Ordering {
        // [ticket-turn] Acquire: pairs with the Release in `pass_on`.
        prim::order!("ticket-turn-acquire", Ordering::Acquire)
    }

    fn try_write(&self) -> Option<Ticket> {
        if self.is_locked() {
            return None;
        }
        let turn = self.turn.load(Self::acquire()) & !SLEEPER;
        let next = turn.wrapping_add(TURN);
        self.tickets
            .compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        let ticket = Ticket::new(turn);
        if !self.phases.announce_if_free(Ordering::Relaxed) {
            self.pass_on(ticket);
            return None;
        }
        Some(ticket)
    }

    #[inline]
    fn leave_exclusive(&self, ticket: Ticket) {
        self.phases.take_back();
        self.pass_on(ticket);
    }

    #[inline]
    fn pass_on(&self, Ticket(ticket, _): Ticket) {
        // [ticket-turn] Release: pairs with the Acquire in `write`.
        let release = prim::order!("ticket-turn", Ordering::Release);
        let before = self.turn.swap(ticket.wrapping_add(TURN), release);
        // [ticket-wake]
        if before & SLEEPER != 0 && prim::intact!("ticket-wake") {
            futex::wake_all(&self.turn);
        }
    }
}

impl Default for PhaseFairTicket {
    fn default() -> Self {
        Self::new()
    }
}

// A writer is alone among writers by its turn, and enters when all readers who came before its announcement have
// left; those who came after wait until it is taken back.
raw_rwlock!(timed [] PhaseFairTicket, Stays, Ticket);

// SAFETY: the next writer counts the new reader: `share` is before `leave_exclusive` lets it.
unsafe impl lock_api::RawRwLockDowngrade for PhaseFairTicket {
    unsafe fn downgrade(&self, ticket: Ticket) -> Stays {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.phases.share();
        self.leave_exclusive(ticket);
        Stays::new()
    }
}
