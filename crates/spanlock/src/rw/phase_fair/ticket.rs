//! PF-T, the phase-fair ticket lock of Brandenburg and Anderson, with sleep.
//!
//! The header of `mod.rs` explains how readers and writers take turns. Here writers queue by tickets: a writer takes
//! the next ticket, and waits until the word `turn` shows it. Readers sleep on the word with the announcement, and
//! writers on `turn`.
//!
//! ```text
//!   tickets = 5     given to writers 0 to 4
//!   turn    = 3     writer 3 is inside or waits for readers; writer 4 waits for its turn
//! ```
//!
//! A ticket cannot be given back. So a writer that may give up takes one only when it would be inside with it at once.
//!
//! # Memory ordering
//!
//! - **ticket-turn** / **ticket-turn-acquire**: Release by the writer that passes the turn on, Acquire by the next.
//! - **ticket-parity**: a reader that waits for a writer's phase goes on also when another writer is announced.
//! - **ticket-wake**: the writer that passes the turn on and finds the mark of sleepers clears it and wakes them.

use super::{Entry, Parity, Phases, SLEEPER};
use crate::rw::raw::{ThreadBound, Token, raw_rwlock};
use crate::rw::watch;
use crate::rw::word::Awaited;
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;

/// One turn. The lowest bit is the mark of sleepers.
const TURN: u32 = 2;

/// A phase-fair reader-writer lock: readers wait for one writer at most, writers are served in order.
///
/// - **Size**: 16 bytes.
/// - **Cost**: one atomic operation to read and one to leave; a write is two and two.
/// - **Fairness**: a reader waits for the writer inside and for no other. A writer waits for the writers that came
///   before it, and for one phase of readers before each of them.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting**: a try does not wait. Timed forms are not fair. A place cannot be given up, so they take none, and try
///   again after each departure. Readers that keep coming starve a timed write, and writers starve a timed read.
/// - **Downgrade**: readers that wait get in beside the new one.
/// - **Panics** when 2^27 guards are held or were leaked.
/// - **Not for** many writers that wait, which all wake at each turn; [`PhaseFairQueue`](super::queue::PhaseFairQueue)
///   wakes one. Nor for many processors that read often: put [`Bravo`](crate::rw::Bravo) around it.
/// - **Not in a forked child**, unless no other thread of the parent used the lock at the time. A thread that waited
///   keeps its place, and the child would wait for it.
/// - **Threads**: guards stay on their threads, but for those of [`SendGuards`](crate::rw::SendGuards).
///
/// Source: Brandenburg and Anderson, *Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems*,
/// Real-Time Systems 46 (2010), PF-T; sleeping is ours.
#[derive(Debug)]
pub struct PhaseFairTicket {
    phases: Phases,
    /// Tickets given to writers, in turns.
    tickets: AtomicU32,
    /// The ticket whose turn it is; a mark of writers that sleep on the word.
    turn: AtomicU32,
}

/// The ticket of the writer inside.
pub type Ticket = Token<u32>;

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
    fn read(&self, wait: Wait) -> Option<ThreadBound> {
        self.phases.read(wait, |met| self.await_writer(met))
    }

    #[cold] // A writer is announced.
    fn await_writer(&self, met: Parity) {
        // [ticket-parity]
        let gone = |entries: u32| {
            let now = Entry(entries).writer_met();
            now.is_none_or(|now| now != met && prim::intact!("ticket-parity"))
        };
        self.phases.awaited().until(Wait::Forever, gone);
    }

    #[inline]
    fn leave_shared(&self, _: ThreadBound) {
        self.phases.count_out();
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<Ticket> {
        if wait != Wait::Forever {
            return self.phases.poll(wait, || self.try_write());
        }
        let ticket = self.tickets.fetch_add(TURN, Ordering::Relaxed);
        let mine = |turn: u32| turn & !SLEEPER == ticket;
        let turn = Awaited {
            word: &self.turn,
            mark: SLEEPER,
            acquire: Self::acquire(),
        };
        turn.until(wait, mine);
        let entered = self.phases.announce(Ordering::Relaxed);
        self.phases.drain(entered);
        Some(Ticket::new(ticket))
    }

    /// The order in which writers load `turn`.
    fn acquire() -> Ordering {
        // [ticket-turn-acquire] Acquire: pairs with [ticket-turn].
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
        self.phases.end_phase();
        self.pass_on(ticket);
    }

    #[inline]
    fn pass_on(&self, ticket: Ticket) {
        let ticket = ticket.what();
        // [ticket-turn] Release: pairs with [ticket-turn-acquire].
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

// SAFETY (of the traits): its turn makes a writer alone among writers. It is inside when all readers that had entered
// before its announcement have exited. Readers that enter later wait until its phase ends.
raw_rwlock!(timed [] PhaseFairTicket, ThreadBound, Ticket);

// SAFETY: the new reader is counted in before `leave_exclusive` lets the next writer in, and that writer counts it.
unsafe impl lock_api::RawRwLockDowngrade for PhaseFairTicket {
    unsafe fn downgrade(&self, ticket: Ticket) -> ThreadBound {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.phases.keep_as_reader();
        self.leave_exclusive(ticket);
        ThreadBound::new()
    }
}
