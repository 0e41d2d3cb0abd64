//! The phase-fair ticket lock PF-T of Brandenburg and Anderson, with sleep.
//!
//! Readers and writers take turns: a writer's phase, then one of all readers who came during it, then the next writer's. Readers count
//! themselves *in* on one word and *out* on another. A writer takes a ticket, waits for its turn among writers,
//! announces itself on the readers' first word, and waits until as many have gone out as had come in by then.
//!
//! An announcement carries the parity of the ticket. A reader that meets one waits until that announcement is gone or
//! replaced by one of the other parity, whose writer counted the reader and waits for it. So the same parity cannot
//! come round while the reader sleeps.
//!
//! Each word has a mark for those who sleep on it, set by a read-modify-write before they do and found by the one that
//! changes the word.
//!
//! # Memory ordering
//!
//! - **ticket-phase**: Release by the writer that takes its announcement back, Acquire by readers who come or wait.
//! - **ticket-out**: Release by the reader that leaves, Acquire by the writer that waits for it.
//! - **ticket-turn**: Release by the writer that passes the turn on, Acquire by the next.
//! - **ticket-parity**: a waiting reader goes on also when another writer is announced.
//! - **ticket-wake** (-writer, -readers, -turn): whoever changes a word and finds the mark takes it off and wakes.

use super::park;
use super::raw::raw_rwlock;
use crate::range::raw::Wait;
use lock_api::GuardSend;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex;

/// Somebody sleeps on the word: in each of the three it is the lowest bit.
const SLEEPER: u32 = 1;
/// A writer is inside or waits for readers to leave.
const PRESENT: u32 = 2;
/// The parity of its ticket.
const PARITY: u32 = 4;
/// What a waiting reader looks at.
const ANNOUNCEMENT: u32 = PRESENT | PARITY;
/// One reader.
const READER: u32 = 8;
/// The readers.
const COUNT: u32 = !(READER - 1);
/// One turn.
const TURN: u32 = 2;
/// Readers there may be at a time, far below where the count would start over.
const MOST_READERS: i32 = 1 << 27;

/// A phase-fair reader-writer lock: readers wait for one writer at most, writers are served in order.
///
/// - **Size**: 16 bytes.
/// - **Cost**: one atomic operation to read and one to leave; a write is two and two.
/// - **Fairness**: a reader waits for the writer inside and no other; a writer waits for those who came before it, and for one
///   phase of readers before each of them.
/// - **Recursion**: a thread that reads must not read again: it may wait for a writer that waits for it.
/// - **Waiting**: no timed forms: a ticket cannot be given back. A try does not wait.
/// - **Panics** when 2^27 guards are held or were leaked.
/// - Not when many writers wait: all wake to look whose turn it is. Nor when many processors read often: put
///   [`Bravo`](super::Bravo) around it.
/// - Guards may be sent to and dropped by other threads.
///
/// Source: Brandenburg and Anderson, *Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems*,
/// Real-Time Systems 46 (2010), PF-T; sleeping is ours.
#[derive(Debug)]
pub struct PhaseFairTicket {
    /// Readers that came, an announcement, a mark.
    came: AtomicU32,
    /// Readers that left, a mark.
    left: AtomicU32,
    /// Tickets given to writers, in turns.
    tickets: AtomicU32,
    /// Whose turn it is, a mark.
    turn: AtomicU32,
}

/// The ticket of the writer inside.
#[derive(Debug)]
pub struct Ticket(u32);

impl PhaseFairTicket {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                came: AtomicU32::new(0),
                left: AtomicU32::new(0),
                tickets: AtomicU32::new(0),
                turn: AtomicU32::new(0),
            }
        }
    }

    /// How many more came than left since. Less than none, if others came and left after `came` was looked at.
    fn readers(&self, came: u32) -> i32 {
        let left = self.left.load(Ordering::Relaxed);
        (came & COUNT).wrapping_sub(left & COUNT).cast_signed() / READER.cast_signed()
    }

    fn is_locked(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed);
        came & PRESENT != 0 || self.readers(came) > 0
    }

    /// Also while a writer waits for readers to leave: from there on nobody else gets in.
    fn is_locked_exclusive(&self) -> bool {
        self.came.load(Ordering::Relaxed) & PRESENT != 0
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<GuardSend> {
        // [ticket-phase] Acquire: pairs with the Release in `let_readers_in`.
        let acquire = prim::order!("ticket-phase-acquire", Ordering::Acquire);
        let came = if wait == Wait::Never {
            let come = |came: u32| (came & PRESENT == 0).then(|| came.wrapping_add(READER));
            self.came
                .fetch_update(acquire, Ordering::Relaxed, come)
                .ok()?
        } else {
            self.came.fetch_add(READER, acquire)
        };
        if came & PRESENT != 0 {
            let met = came & ANNOUNCEMENT;
            // [ticket-parity]
            let gone = |now: u32| {
                if prim::intact!("ticket-parity") {
                    now & ANNOUNCEMENT != met
                } else {
                    now & PRESENT == 0
                }
            };
            park::until(&self.came, SLEEPER, acquire, gone);
        }
        if self.readers(came) >= MOST_READERS {
            self.turn_away();
        }
        Some(GuardSend::new())
    }

    #[cold]
    fn turn_away(&self) -> ! {
        self.leave_shared(GuardSend::new());
        panic!("more than {MOST_READERS} readers of one lock");
    }

    #[inline]
    fn leave_shared(&self, _: GuardSend) {
        // [ticket-out] Release: pairs with the Acquire in `announce`.
        let release = prim::order!("ticket-out", Ordering::Release);
        let before = self.left.fetch_add(READER, release);
        if before & SLEEPER != 0 {
            self.wake_writer();
        }
    }

    #[cold] // A writer sleeps until all readers it counted have left.
    fn wake_writer(&self) {
        self.left.fetch_and(!SLEEPER, Ordering::Relaxed);
        // [ticket-wake]
        if prim::intact!("ticket-wake-writer") {
            futex::wake_all(&self.left);
        }
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<Ticket> {
        match wait {
            Wait::Never => self.try_write(),
            Wait::Forever | Wait::Until(_) => {
                let ticket = self.tickets.fetch_add(TURN, Ordering::Relaxed);
                // [ticket-turn] Acquire: pairs with the Release in `leave_exclusive`.
                let acquire = prim::order!("ticket-turn-acquire", Ordering::Acquire);
                park::until(&self.turn, SLEEPER, acquire, |turn| {
                    turn & !SLEEPER == ticket
                });
                let came = self.announce(ticket);
                // [ticket-out] Acquire: pairs with the Release in `leave_shared`.
                let acquire = prim::order!("ticket-out-acquire", Ordering::Acquire);
                park::until(&self.left, SLEEPER, acquire, |left| left & COUNT == came);
                Some(Ticket(ticket))
            }
        }
    }

    /// From now on readers wait. How many came before.
    fn announce(&self, ticket: u32) -> u32 {
        let parity = if ticket & TURN == 0 { 0 } else { PARITY };
        self.came.fetch_add(PRESENT | parity, Ordering::Relaxed) & COUNT
    }

    fn try_write(&self) -> Option<Ticket> {
        if self.is_locked() {
            return None;
        }
        // [ticket-turn] Acquire: pairs with the Release in `leave_exclusive`.
        let turn = self.turn.load(Ordering::Acquire) & !SLEEPER;
        self.tickets
            .compare_exchange(
                turn,
                turn.wrapping_add(TURN),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .ok()?;
        let ticket = Ticket(turn);
        let came = self.announce(turn);
        // [ticket-out] Acquire: pairs with the Release in `leave_shared`.
        if self.left.load(Ordering::Acquire) & COUNT == came {
            return Some(ticket);
        }
        // A reader came in between.
        self.leave_exclusive(ticket);
        None
    }

    #[inline]
    fn leave_exclusive(&self, Ticket(ticket): Ticket) {
        // [ticket-phase] Release: pairs with the Acquire in `read`.
        let release = prim::order!("ticket-phase", Ordering::Release);
        let before = self.came.fetch_and(!(ANNOUNCEMENT | SLEEPER), release);
        // [ticket-wake]
        if before & SLEEPER != 0 && prim::intact!("ticket-wake-readers") {
            futex::wake_all(&self.came);
        }
        // [ticket-turn] Release: pairs with the Acquire in `write`.
        let release = prim::order!("ticket-turn", Ordering::Release);
        let before = self.turn.swap(ticket.wrapping_add(TURN), release);
        // [ticket-wake]
        if before & SLEEPER != 0 && prim::intact!("ticket-wake-turn") {
            futex::wake_all(&self.turn);
        }
    }
}

impl Default for PhaseFairTicket {
    fn default() -> Self {
        Self::new()
    }
}

// A writer is alone among writers by its turn, and enters when all readers who came before its announcement have left;
// those who came after wait until it is taken back.
raw_rwlock!([] PhaseFairTicket, GuardSend, Ticket);
