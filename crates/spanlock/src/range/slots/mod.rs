//! The slot lock: a range lock that starts as a list and moves to a slot for each thread.
//!
//! A request is *announced* in its thread's slot, and then the thread looks at the slots of the others. A lock begins
//! as a [list lock](super::list). When its threads meet it makes a *board* for the slots; what is held in the list
//! stays there, as the *residue*. A narrow request may be *listed* in buckets, and looks only at the slots listed there
//! and at those that are *counted*. What a thread holds beside 32 ranges is in the *annex*, a [skip list](super::skip).
//! `docs/slot-locks.md` tells this in order, and argues why it is correct.
//!
//! Each file imports from those above it:
//!
//! | file | content |
//! |---|---|
//! | `state.rs` | the word that is a slot's state |
//! | `request.rs` | a request as it is announced, and which of several rivals stays |
//! | `advice/` | which plan is best. It knows nothing of what follows |
//! | `buckets.rs` | which slots a narrow request looks at |
//! | `slot.rs` | a slot: what its owner does there |
//! | `look.rs` | what others do there |
//! | `seats.rs` | where a thread finds its home slots, and those lent to it last: the lock's part of its record |
//! | `board.rs`, `lazy.rs` | all slots of a lock, and what goes with them |
//! | `token.rs` | tokens |
//! | `mod.rs` | the lock, and how it is built |
//! | `home.rs` | whose a slot is |
//! | `scan.rs` | how a request is announced, and how it looks at the others |
//! | `look_before.rs` | how a request that was blocked, or may not wait, looks before it is announced |
//! | `acquire.rs` | a range acquired at once, in the list or in a slot: asks for a plan, and tells what it met |
//! | `annex.rs` | whoever holds many ranges, and what owners have converted |
//! | `attempt.rs`, `moving.rs` | one attempt of a request that waits; the move from the list to a board |
//! | `owned.rs` | what owners hold: in lent slots, or in the annex |
//! | `release.rs` | release and downgrade |
//!
//! The waiting loop and the queue are in `range/wait/`. Below are the invariants and edges that the code cites.
//!
//! # Invariants
//!
//! 1. No two announcements that conflict are both decided to stay, unless the release of one of them has begun. No
//!    grant conflicts with what another thread holds, unless the grant is marked as contended.
//! 2. Only a slot's owner announces in it; or who has borrowed it, until it is given back. A slot's announcements are
//!    counted, and the count is in its state.
//! 3. A request that sleeps is not announced, so it blocks no other request. A writer that waits in place is announced.
//! 4. As long as the head leads to a board, nothing is inserted into the board's residue for good.
//! 5. Before the fence of an announcement, either the slot is listed in each bucket of the range, or it is counted. It
//!    stays so until the holder's release or the withdrawal, and counted as long as a grant is kept.
//! 6. The count of counted slots is never too small: a slot that has the flag is added before the fence, and it is
//!    taken off after the flag is gone.
//! 7. A lock that has moved keeps its board.
//! 8. A slot is in at most one thread's list of free slots. One that is in none has no successor.
//! 9. Boards have different numbers. A thread that knows a slot by the number of a board uses it only on that board.
//! 10. The state that the owner of a slot has noted is its state, but for marks by others while the slot is held, and
//!     but for the grant and the count, which others may end while it is not. What a thread has noted that had this
//!     thread's record before counts only once the slot has been found free. So does what a release has noted in a lent
//!     slot, which gives it back before it makes that state.
//!
//! # Edges: memory ordering
//!
//! - **slot-handshake**: each request is announced, fences, and looks at the other slots. Of two requests that
//!   conflict, the one whose fence is second meets the other.
//! - **registry**: a slot is counted before a request is announced in it, and the slots are counted after the fence. So
//!   the handshake covers slots that are new.
//! - **slot-release**, **slot-downgrade** / **slot-acquire**: Release by ending or sharing an announcement, Acquire by
//!   looking at it: the holder's critical section.
//! - **heir**: Release by a release (as slot-release), Acquire by finding the slot free: what is noted on the
//!   owner's line. The release may be that of a thread that has exited and releases late, in a destructor. The thread
//!   that has got its record meanwhile, its *heir*, has its home slot, too.
//! - **lent**: Release by giving a lent slot back, Acquire by borrowing it: what was announced there, or its end.
//! - **rewrite**: Release by writing the range of the next announcement, Acquire by reading it. A thread may see the
//!   state of one announcement and the range of the next. It then comes after the release of the first one, and the
//!   handshake decides about the other.
//! - **grant-part**: Release by taking a grant again, Acquire by looking at the slot: which part of the grant is held.
//! - **board-part**: Release by publishing a chunk of slots, the buckets or the annex, Acquire by following the
//!   pointer.
//! - **bucket-release** / **bucket-acquire**: Release by striking an announcement off a bucket, Acquire by looking
//!   there: the holder's critical section, if the look finds no word that leads to the slot. A request that is listed
//!   acquires, too: it may strike its word before its fence, and then whoever looks meets only that strike.
//! - **uncount** / **uncount-acquire**: Release by taking an idle slot off the count, Acquire by loading the count:
//!   what was held in the slot.
//! - **move**: Release by putting the board into the head, Acquire by loading the head: the board.
//!
//! # Edges: steps that must not be left out
//!
//! - **slot-validation**: a request that meets an announcement in its way withdraws.
//! - **slot-try-looks**: a request that may not wait looks for what is in its way before it is announced. So a try that
//!   somebody refuses for as long as it lasts was never announced, and no other request was refused because of it.
//! - **annex-try-looks**: the same of a request in the annex, before it is inserted there.
//! - **heir-waits**: a thread remembers a home slot, and then goes by what is noted there, only once it has found it
//!   free. A late release notes that the slot is free before it frees it. An heir that went by that would announce a
//!   request there, which the release then ends.
//! - **lent-waits**: a slot that is given back is borrowed only once it is found free. A release gives it back before
//!   it ends what was announced, since after that the user may drop the lock.
//! - **stay-bounded**: a writer that waits in place for a holder withdraws after a time. The holder may be waiting for
//!   that very announcement.
//! - **slot-sleeper**, **slot-wake**: a request that goes to sleep marks its blocker's state, and does not sleep if the
//!   same operation shows that the announcement has ended. The end of an announcement wakes if the same operation shows
//!   the mark. Both are read-modify-writes of one word, so one of them sees the other.
//! - **slot-downgrade-wake**: a downgrade wakes the readers that sleep behind the writer.
//! - **slot-inherit**: a request that is granted while others sleep behind it marks its own slot for them.
//! - **grant-revoke**: a request whose look meets a kept grant in its way frees that slot. The owner takes the grant
//!   again, and others revoke it, by compare-exchanges of one word, so one of them comes first.
//! - **grant-contended**: a request that has a grant in its way, but not what is held of it, marks the grant. The owner
//!   keeps the grant only by a compare-exchange of a state without the mark.
//! - **grant-mode**: a shared grant does not do for a writer. The mode of a grant is the mode in which it was
//!   announced.
//! - **grant-whole**: a request that asks for a larger grant than it needs does not keep it, if its look meets another
//!   grant in the way of the rest.
//! - **bucket-listed**: a request that is not counted is listed in each bucket of its range. So two that overlap have a
//!   bucket in common, and by the handshake one of them finds the other there.
//! - **bucket-look**: a listed request looks at the slots that are listed in its buckets.
//! - **counted** / **counted-look**: a request that is not listed, or finds no free word, is counted before its fence.
//!   A listed one loads the count after its fence, and looks at the slots that are counted.
//! - **counted-only**: it passes by the others only if one slot alone is counted. Then the count says which.
//! - **counted-again**: another thread may uncount a slot that is idle. The operation that announces the next request
//!   shows whether that has happened, and then the owner counts it again.
//! - **uncount-idle**: a slot in which a range is held is not uncounted. The owner announces, and others uncount, by
//!   read-modify-writes of one word.
//! - **annex-look** / **annex-insert**: a request in a slot is announced, fences, and looks into the annex. A request
//!   in the annex is inserted, fences, and looks at all slots. So of two that conflict, the one whose fence is second
//!   meets the other. It withdraws, or has waited until that one has left.
//! - **annex-whole**: a request in a slot looks into the annex for its own range alone. So it has no larger grant,
//!   unless the annex was empty after its fence. Whoever comes to the annex later meets the whole grant.
//! - **moved-check** / **residue**: a request that was inserted into the list after the move withdraws. It inserts,
//!   fences, and loads the head. A request on the board is announced, fences, and walks the residue. If the former's
//!   fence is first, the walk meets its node. If the latter's fence is first, the former finds that the lock has moved.

mod acquire;
mod advice;
mod annex;
mod attempt;
mod board;
mod buckets;
mod home;
mod lazy;
mod look;
mod look_before;
mod moving;
mod owned;
mod release;
mod request;
mod scan;
pub(in crate::range) mod seats;
mod slot;
mod state;
mod token;

pub use super::wait::Fairness;

#[doc(hidden)]
pub use advice::{Advice, Plan};
pub use token::Token;

use super::inspect::{Request, Snapshot};
use super::list::{AtomicLink, Index, List, Policy, SharedExclusive, StartHints};
use super::list::{FastPath, ListAcquisition, Token as ListToken};
use super::order::Positions;
use super::raw::{Ask, Behind, Mode, RawRangeLock, RawRangeMutex, Wait, by_mode};
use super::span::Span;
use super::thread::{self, ThreadRecord};
use super::wait::{Patience, WaitQueue};
use crate::deadlock::Deadlocks;
use board::Board;
use prim::atomic::Ordering;
use std::fmt;
use std::panic::Location;
use token::Granted;

/// The slot lock, in raw form.
///
/// ```
/// use spanlock::range::RangeLock;
/// use spanlock::range::slots::RawSlots;
///
/// static FILE: RangeLock<RawSlots> = RangeLock::from_raw(RawSlots::new());
///
/// let head = FILE.write(0..4096);
/// assert!(FILE.try_read(100..200).is_none());
/// assert!(FILE.try_read(4096..).is_some());
/// # drop(head);
/// ```
///
/// # When not to use it
/// - Many ranges are always held at a time, by many threads: a [skip list](super::skip) has nothing else to look at.
/// - Many threads have used the lock, and one or two still do: an acquisition of a wide range that differs from the
///   last looks at the slots of all of them. The lock does not return to its list.
///
/// # Cost
/// Uncontended, as the [list lock](super::list): one compare-exchange to acquire and one to release. Once the lock has
/// moved to slots: one atomic operation on the thread's own line to acquire, one look at the slot of each other thread,
/// and one atomic operation to release. Where ranges are narrow and far apart: one atomic operation to acquire, on a
/// line of their bucket, and no look at other slots. While a thread holds more than 32 ranges, the others are in a skip
/// list: it costs each acquisition, but for a range that is taken again, a logarithmic search there. No allocation and
/// no system call once the thread and the lock are warm, except that writers that were blocked ask the system once for
/// each processor's node.
///
/// Memory: one cache line. A lock whose threads have met has a board of four lines besides, and for each thread that
/// has used it since then four lines, and four for each further range that the thread has held at the same time. If
/// requests are narrow and far apart, it gets buckets: 2 KB for each processor. For what owners and tasks hold, it
/// has up to two slots for each processor. What they hold beyond that, and what a thread holds besides 32 ranges, takes
/// one line, or three, as in a skip list.
///
/// Dropping the lock frees all of it.
///
/// # Fairness, what blocks, errors and panics
/// As [`RangeLock`](super::RangeLock). Of requests that ask for a free range at the same time, a writer that was
/// blocked before stays rather than a reader, and of several such writers the one that was blocked first.
///
/// # Source
/// The announcement is the registration of Dekker's algorithm, per range. The list is P1's, see [`list`](super::list).
#[repr(align(64))] // It fills a cache line, and should not lie across two.
pub struct RawSlots {
    list: List<SharedExclusive, Setup>,
    wait_queue: WaitQueue,
}

/// When the lock moves to slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// When threads have met in the list.
    WhenMet,
    /// At the first acquisition.
    AtOnce,
    /// At the first acquisition, with buckets for ranges of up to `2^digits` positions.
    Buckets(u8),
    /// At the first acquisition. Each thread has one slot, and its other ranges are in the annex.
    Annex,
}

/// What was chosen when the lock was built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    growth: Growth,
    advice: Advice,
}

/// A request to the list that a lock begins as.
type InList<'a> = ListAcquisition<'a, SharedExclusive, Setup>;

impl RawSlots {
    fn in_list<'a>(
        &'a self,
        record: &'static ThreadRecord,
        request: Request,
        at: &'static Location<'static>,
        wait: Wait,
        behind: Option<Behind<'a, ListToken>>,
    ) -> InList<'a> {
        let queue = &self.wait_queue;
        InList::new(&self.list, queue, record, request, at, wait, behind)
    }
}

impl Index for Setup {}

impl StartHints for Setup {
    const MAY_MOVE: bool = true;

    type Order = Positions;
    type Noted = ();

    fn order(&self) -> &Positions {
        &Positions
    }
}

/// A slot lock to be built.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    patience: Patience,
    deadlocks: Deadlocks,
    setup: Setup,
}

impl Builder {
    /// How to treat requests that others keep overtaking. The default is [`Fairness::DEFAULT`].
    pub const fn fairness(mut self, fairness: Fairness) -> Self {
        self.patience = Patience::of(fairness);
        self
    }

    /// Whether to look for deadlocks. The default is [`Deadlocks::BY_ENVIRONMENT`].
    pub const fn deadlocks(mut self, deadlocks: Deadlocks) -> Self {
        self.deadlocks = deadlocks;
        self
    }

    /// The lock moves to slots at its first acquisition: for a lock that is known to be contended, and for tests.
    pub const fn slots_at_once(mut self) -> Self {
        self.setup.growth = Growth::AtOnce;
        self
    }

    /// The lock moves to slots at its first acquisition and has buckets from then on: for a lock that is known to serve
    /// ranges of up to `width` positions, at random places.
    pub const fn buckets_at_once(mut self, width: u64) -> Self {
        let digits = u64::BITS - width.saturating_sub(1).leading_zeros();
        self.setup.growth = Growth::Buckets(digits as u8);
        self
    }

    /// The lock moves to slots at its first acquisition, and what a thread holds besides one range goes to the annex:
    /// for tests, which hold few ranges.
    #[doc(hidden)]
    pub const fn annex_at_once(mut self) -> Self {
        self.setup.growth = Growth::Annex;
        self
    }

    /// The lock's acquisitions follow that advice: for tests.
    #[doc(hidden)]
    pub const fn advice(mut self, advice: Advice) -> Self {
        self.setup.advice = advice;
        self
    }

    prim::const_fn! {
        /// The lock.
        #[must_use]
        pub const fn build(self) -> RawSlots {
            let fast_path = match self.setup.growth {
                Growth::WhenMet => FastPath::On,
                Growth::AtOnce | Growth::Buckets(_) | Growth::Annex => FastPath::Off,
            };
            let policy = Policy { fast_path, ..Policy::DEFAULT };
            RawSlots {
                list: List::new(policy, self.setup),
                wait_queue: WaitQueue::new(self.patience, self.deadlocks),
            }
        }
    }
}

impl RawSlots {
    prim::const_fn! {
        /// A fair lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().build()
        }
    }

    /// Begins a lock with another policy.
    pub const fn builder() -> Builder {
        Builder {
            patience: Patience::of(Fairness::DEFAULT),
            deadlocks: Deadlocks::BY_ENVIRONMENT,
            setup: Setup {
                growth: Growth::WhenMet,
                advice: Advice::Learnt,
            },
        }
    }

    fn setup(&self) -> Setup {
        self.list.index
    }

    /// The board, if the lock has moved.
    #[inline]
    fn board(&self) -> Option<&Board> {
        // Acquire: pairs with the Release in `move_to_slots` [move]. A board begins with its residue.
        let head = self.list.head.load(Ordering::Acquire);
        // SAFETY: a lock that has moved keeps its board.
        head.new_head()
            .map(|board| unsafe { board.cast().as_ref() })
    }

    /// Takes the slots off the count that are idle, as threads do now and then: for tests.
    #[doc(hidden)]
    pub fn tidy(&self) {
        self.board().into_iter().for_each(Board::tidy);
    }

    /// Makes buckets for ranges of up to `2^digits` positions in a lock that has moved, as threads do when their ranges
    /// are far apart: for tests.
    #[doc(hidden)]
    pub fn make_buckets(&self, digits: u32) {
        self.board()
            .into_iter()
            .for_each(|board| board.make_buckets(digits));
    }

    /// The requests that hold their ranges, in order of range start.
    fn holders(&self, record: &'static ThreadRecord) -> Vec<Request> {
        let mut holders = self.list.holders(record);
        if let Some(board) = self.board() {
            board.find(|slot| {
                holders.extend(slot.holder());
                None::<()>
            });
            holders.extend(
                board
                    .annex()
                    .into_iter()
                    .flat_map(|annex| annex.holders(record)),
            );
        }
        holders.sort_by_key(|holder| holder.span.start());
        holders
    }
}

// SAFETY: conflicting announcements are not both decided to stay, unless one is about to end, by the handshake of
// slots; nodes in the list exclude each other as in a list lock; and the residue is checked by its own handshake. The
// edges above order the critical sections. `docs/slot-locks.md` has the argument; the models in `spanlock-loom` check
// it.
unsafe impl RawRangeMutex for RawSlots {
    by_mode!(exclusive: Token);

    fn is_taken(&self, span: Span, mode: Mode) -> bool {
        thread::with_record(|record| {
            let request = Request::new(span, mode, record.thread());
            let in_list = || self.list.is_taken(record, &request);
            let Some(board) = self.board() else {
                return in_list();
            };
            let held = board.find(|slot| slot.blocks(&request).filter(|met| !met.is_rival));
            let annex = board.annex().filter(|_| !board.annex_is_empty());
            // The list is the residue now.
            held.is_some()
                || annex.is_some_and(|annex| annex.is_taken(record, &request))
                || !board.residue_is_empty() && in_list()
        })
    }

    unsafe fn span_of(&self, token: &Token) -> Option<Span> {
        // SAFETY: this lock granted the token, as the caller promises.
        match unsafe { token.granted() } {
            // SAFETY: the node is not reused while it is held.
            Granted::List(token) | Granted::Annex(token) => unsafe { Some(token.span()) },
            Granted::Slot(slot) => Some(slot.request(slot.load(Ordering::Relaxed)).span),
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let holders = thread::with_record(|record| self.holders(record));
        Some(Snapshot::new(holders, self.wait_queue.waiters()))
    }
}

// SAFETY: as for `RawRangeMutex`.
unsafe impl RawRangeLock for RawSlots {
    by_mode!(shared: Token);
}

impl Default for RawSlots {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RawSlots {
    fn drop(&mut self) {
        let Some(residue) = self.list.head.load(Ordering::Relaxed).new_head() else {
            return;
        };
        // SAFETY: `move_to_slots` has put a board into the head, which comes from a box and begins with its residue.
        // Nobody else uses the lock.
        let board = unsafe { Box::from_raw(residue.cast::<Board>().as_ptr()) };
        // The list frees what is left of it.
        self.list.head = AtomicLink::holding(board.residue().load(Ordering::Relaxed));
    }
}

impl fmt::Debug for RawSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut described = f.debug_struct("RawSlots");
        described
            .field("patience", &self.wait_queue.patience())
            .field("has_moved", &self.board().is_some());
        self.snapshot().unwrap_or_default().finish(&mut described)
    }
}

#[cfg(test)]
mod tests {
    use super::{RawSlots, Token};

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn an_idle_lock_is_one_cache_line() {
        assert_eq!(size_of::<RawSlots>(), 64);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn a_slot_and_a_board_are_two_pairs_of_cache_lines_and_a_token_is_a_pointer() {
        assert_eq!(size_of::<super::slot::Slot>(), 256);
        assert_eq!(size_of::<super::Board>(), 256);
        assert_eq!(size_of::<Option<Token>>(), 8);
    }
}
