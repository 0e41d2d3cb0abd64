//! The table of visible readers: one for the process, shared by all biased locks.
//!
//! A reader *publishes* the address of its lock in a slot, and *retracts* it when it leaves. A writer *scans* the
//! slots, and waits until none holds its lock's address. The table knows addresses and no locks: whether a published
//! reader may enter is agreed between the readers and writers of that lock (`state.rs` does so).
//!
//! ```
//! use spanlock::range::raw::Wait;
//! use spanlock::rw::pthread::table::{self, LockAddress, ReaderRow};
//!
//! let lock = 0_u64; // Anything that has an address.
//! let address = LockAddress::of(&lock);
//! // SAFETY: the row is used at once.
//! let row = unsafe { ReaderRow::here() };
//! let publication = table::publish(address, row).expect("nothing else is published here");
//! assert!(!table::drain(address, Wait::Never));
//! // SAFETY: it is retracted once.
//! unsafe { publication.retract() };
//! assert!(table::drain(address, Wait::Forever)); // Sleeps until all readers have left: here there are none.
//! ```
//!
//! # Layout
//!
//! ```text
//!                    slot 0      slot 1      ...     slot 7
//!   own rows       +-----------+-----------+-------+-----------+
//!     thread 0     |  lock A   |           |       |           |   reads A
//!     thread 1     |  lock A   |  lock B   |       |           |   reads A and B
//!     thread 2     |           |           |       |           |
//!       ...        +-----------+-----------+-------+-----------+
//!   shared rows    +-----------+-----------+-------+-----------+
//!     threads that |           |  lock B   |       |  lock A   |   publish by compare-exchange
//!     have none    +-----------+-----------+-------+-----------+
//!
//!   slot: | lock's address or 0 | awaited | clearing |     16 bytes; a row is two cache lines
//! ```
//!
//! A thread publishes in the slots of its [`ReaderRow`]. Threads have small dense numbers. As long as there are no more
//! threads than rows, each thread has a row of its *own*, whatever locks it uses, and publishes there by a plain store:
//! nobody else does. Threads beyond that *share* a few rows, and publish by compare-exchange. There are twice as many
//! own rows as processors, within bounds. (The paper hashes thread and lock instead, so that two threads may meet in
//! one cache line.)
//!
//! A scan covers the rows that ever had a thread. So its length is that of the program's threads, however large the
//! machine. The memory is reserved for the largest machine and zero; a part that is not touched costs nothing.
//!
//! A slot may be taken, because the thread holds another lock there or because the row is shared. That is a
//! *collision*, and the reader tries the other slots of the row, which are in its cache already. If the row is full the
//! reader takes the slow path.
//!
//! # A departure against a sleeping writer
//!
//! A writer that waits for a slot spins briefly and then sleeps on the word `awaited` beside it. A reader that leaves
//! has to wake it, and must not pay for that while there is no such writer.
//!
//! ```text
//!   reader that leaves                       writer that waits
//!   ------------------                       -----------------
//!   slot.lock := 0         (depart)          slot.awaited |= AWAITED
//!   light fence            (slot-leave)      heavy fence            (slot-await)
//!   slot.awaited has AWAITED?                slot.lock still holds the address?
//!     yes: count the departure                 yes: sleep while slot.awaited is unchanged
//!          (slot-wake-count), wake             no:  go on
//!          the writers     (slot-wake)
//! ```
//!
//! # Memory ordering
//!
//! - **depart**, **depart-any** / **depart-acquire**: Release by a retraction, Acquire by the scan. The reader's
//!   critical section happens before the writer's. (`depart-any` is a retraction that may be another thread's:
//!   `anonymous.rs`.)
//! - **slot-free**: the publication Acquires the departure that made the slot free, and Releases it with everything
//!   that the publishing thread did before. A scan may see this publication and not the departure before it. (A model
//!   cannot test the Release. There the light fence is a full fence, and one follows each departure.)
//! - **slot-leave** / **slot-await**: the two fences above. One of the two is first in the order of all fences: either
//!   the reader observes the mark, or the writer observes the departure. The light side costs nothing: readers leave
//!   often, and writers sleep seldom.
//! - **slot-wake-count**: the reader changes `awaited` to a value that it never had, and then wakes (**slot-wake**). A
//!   writer that observed the slot taken and `awaited` unchanged cannot fall asleep any more, even if another writer
//!   marks the slot again meanwhile, for a later reader.
//! - **row-in-use**: a row counts as used before anything is published in it. A writer loads that count after its heavy
//!   fence (`state.rs`). If it misses a row, that row's reader fences later, and observes the arrival.
//! - A thread gives up its own row before another thread gets it. (`prim::thread` orders that. No model tests it.)

use crate::wait::Wait;
use prim::atomic;
use slot::Tenancy;

mod address;
mod anonymous;
mod rows;
mod slot;

pub use address::LockAddress;
pub(super) use anonymous::enable_foreign_unlocks;
pub use anonymous::{forget_all_but, forget_all_but_at};
pub use rows::{COLUMNS, ReaderRow};
pub use slot::Publication;

/// Publishes that the row's thread is about to read a lock; `None` if the row has no free slot.
///
/// A publication alone lets nobody in: the reader has to check that no writer is inside or revoking.
#[inline]
#[must_use]
pub fn publish(lock: LockAddress, row: ReaderRow) -> Option<Publication> {
    publish_as(lock, row, row.tenancy())
}

/// Publishes by a read-modify-write, whatever the row, for a reader that fences next.
#[inline]
pub(super) fn publish_by_exchange(lock: LockAddress, row: ReaderRow) -> Option<Publication> {
    publish_as(lock, row, Tenancy::Shared)
}

#[inline]
fn publish_as(lock: LockAddress, row: ReaderRow, tenancy: Tenancy) -> Option<Publication> {
    let first = row.first();
    first
        .publish(lock, tenancy)
        .or_else(|| probe(lock, row, tenancy))
}

/// Publishes if that is one store: in the first slot of a row of the thread's own. Most publications are.
#[inline(always)] // It is all that the fast path is.
pub(super) fn publish_by_store(lock: LockAddress, row: ReaderRow) -> Option<Publication> {
    match row.tenancy() {
        Tenancy::Own => row.first().publish(lock, Tenancy::Own),
        Tenancy::Shared => None,
    }
}

#[cold] // Nested readers, and threads that share a row.
fn probe(lock: LockAddress, row: ReaderRow, tenancy: Tenancy) -> Option<Publication> {
    let mut others = row.others();
    others.find_map(|slot| slot.publish(lock, tenancy))
}

/// Retracts one publication of a lock, any of them: for a release that does not say which acquisition it ends. Scans
/// the table.
///
/// `false`: there is none.
///
/// # Safety
/// A reader of that lock leaves, or all publications of it were leaked.
#[must_use]
pub unsafe fn retract_any(lock: LockAddress) -> bool {
    rows::slots().any(|slot| slot.holds(lock) && slot.clear(lock))
}

/// Whether a lock is published at all, now. Scans the table.
#[must_use]
pub fn is_published(lock: LockAddress) -> bool {
    rows::slots().any(|slot| slot.holds(lock))
}

/// Scans the table and waits until no slot holds that lock; `false` if that takes longer than `wait` allows.
///
/// It ends only if readers that publish meanwhile retract at once. So the caller first makes itself known to
/// readers, and fences before the scan. Spins briefly, then sleeps.
#[must_use]
pub fn drain(lock: LockAddress, wait: Wait) -> bool {
    // Most readers publish in their first slot, on the first line of a row, and each has that line in its cache. So the
    // lines are asked for side by side.
    rows::rows().for_each(atomic::prefetch);
    rows::slots().all(|slot| !slot.holds(lock) || slot.await_departure(lock, wait))
}

/// Retracts every publication of a lock that is about to be gone: their guards were leaked.
///
/// # Safety
/// Nobody reads that lock any more.
pub unsafe fn forget(lock: LockAddress) {
    // SAFETY: the caller promises that nobody reads the lock, so every publication of it was leaked.
    while unsafe { retract_any(lock) } {}
}
