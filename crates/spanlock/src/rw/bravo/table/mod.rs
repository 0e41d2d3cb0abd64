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
use prim::atomic::{self, AtomicUsize, Ordering};
use prim::barrier;
use prim::thread::{self, Tenure};
use slot::Slot;
use std::cell::Cell;
use std::ptr;

mod address;
mod anonymous;
mod slot;

pub use address::LockAddress;
pub(super) use anonymous::enable_foreign_unlocks;
pub use anonymous::{forget_all_but, forget_all_but_at};
pub use slot::Publication;

/// Slots in a row.
pub const COLUMNS: usize = prim::sized(8, 2);

/// The most own rows: enough for 512 processors. It is 128 KiB of address space.
const MOST_ROWS: usize = prim::sized(1024, 3);

/// The own rows on the smallest machine.
const FEWEST_ROWS: usize = prim::sized(16, 3);

/// The rows for threads that get none of their own.
const SHARED_ROWS: usize = prim::sized(16, 2);

/// The slots of a thread, or of a few.
#[derive(Debug)]
#[repr(align(128))] // Two cache lines, which processors fetch together: readers in the next row must not move this one.
struct Row {
    slots: [Slot; COLUMNS],
}

/// Rows, of which the first are in use.
struct Rows<const N: usize> {
    rows: [Row; N],
    /// Rows from this one on never had a reader.
    used: AtomicUsize,
}

impl<const N: usize> Rows<N> {
    prim::const_fn! {
        const fn new() -> Self {
            Self {
                rows: prim::array!(Row {
                    slots: prim::array!(Slot::new(); COLUMNS),
                }; N),
                used: AtomicUsize::new(0),
            }
        }
    }

    /// A row, from now on in use.
    fn take(&self, at: usize) -> &Row {
        // [row-in-use]
        if prim::intact!("row-in-use") {
            self.used.fetch_max(at + 1, Ordering::Relaxed);
        }
        &self.rows[at]
    }

    fn in_use(&self) -> &[Row] {
        // Relaxed: [row-in-use] is ordered by the fences of [bias-reader] and [bias-writer].
        let used = self.used.load(Ordering::Relaxed);
        &self.rows[..used]
    }
}

/// The table.
struct Table {
    own: Rows<MOST_ROWS>,
    shared: Rows<SHARED_ROWS>,
    /// How many own rows threads may have; zero until a thread asks.
    size: AtomicUsize,
}

impl Table {
    prim::const_fn! {
        const fn new() -> Self {
            Self {
                own: Rows::new(),
                shared: Rows::new(),
                size: AtomicUsize::new(0),
            }
        }
    }

    fn size(&self) -> usize {
        // Relaxed: every thread would store the same number.
        let known = self.size.load(Ordering::Relaxed);
        if known > 0 {
            return known;
        }
        let rows = (2 * thread::processors()).next_power_of_two();
        let rows = rows.clamp(FEWEST_ROWS, MOST_ROWS);
        self.size.store(rows, Ordering::Relaxed);
        rows
    }

    fn rows_in_use(&self) -> impl Iterator<Item = &Row> {
        self.own.in_use().iter().chain(self.shared.in_use())
    }

    fn slots_in_use(&self) -> impl Iterator<Item = &Slot> {
        self.rows_in_use().flat_map(|row| &row.slots)
    }
}

prim::global! {
    static TABLE: Table = Table::new();
}

prim::local! {
    static HERE: Cell<Option<ReaderRow>> = Cell::new(None);
}

/// The threads that publish in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenancy {
    /// One thread.
    Own,
    /// Any number of threads that have no row of their own.
    Shared,
}

// Whether the row is shared is in the address of a slot.
const _: () = assert!(align_of::<Slot>() > 1);

/// Where a thread publishes: a row, and the slot in it to try first. It stays with its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderRow(
    /// The address of the first slot to try, plus one if the row is shared. One word, so that the fast path loads and
    /// tests a thread-local at once.
    ptr::NonNull<Slot>,
);

impl ReaderRow {
    /// The running thread's. Costs a load of a thread-local, except the first time.
    ///
    /// # Safety
    /// The caller uses it at once and does not keep it. When the thread runs the destructors of its thread-locals it
    /// gives its row up, and the row may become another thread's.
    #[inline]
    #[must_use]
    pub unsafe fn here() -> Self {
        Self::known().unwrap_or_else(Self::take)
    }

    /// The running thread's, if it has one already. As for [`here`](Self::here), the caller does not keep it.
    #[inline(always)] // Part of the fast path.
    pub(super) fn known() -> Option<Self> {
        HERE.with(Cell::get)
    }

    #[cold] // A thread's first time, and any time in a destructor that runs after its thread-locals are gone.
    fn take() -> Self {
        let give_up = |number| HERE.with(|here| here.set(Some(Self::shared(number))));
        thread::with_index(give_up, |number, tenure| match tenure {
            Tenure::Thread => {
                // SAFETY: `prim::thread` gives the number to no other thread until it has called `give_up`, which
                // replaces the only copy of this row.
                let row = unsafe { Self::own(number) };
                HERE.with(|here| here.set(Some(row)));
                row
            }
            Tenure::Call => Self::shared(number),
        })
    }

    /// The own row of that number, or a shared one if there are not as many. Keep it: this is not for each publication.
    ///
    /// # Safety
    /// While this or a copy is used, no other thread uses the own row of that number.
    #[must_use]
    pub unsafe fn own(number: usize) -> Self {
        if number >= TABLE.size() {
            return Self::shared(number);
        }
        barrier::prepare();
        Self(ptr::NonNull::from_ref(&TABLE.own.take(number).slots[0]))
    }

    /// A row that any number of threads share. Threads with neighbouring numbers try different slots first.
    #[must_use]
    pub fn shared(number: usize) -> Self {
        barrier::prepare();
        let row = TABLE.shared.take(number % SHARED_ROWS);
        let first = ptr::NonNull::from_ref(&row.slots[number / SHARED_ROWS % COLUMNS]);
        Self(first.map_addr(|address| address | 1))
    }

    /// How many threads get a row of their own: those with smaller numbers.
    #[must_use]
    pub fn owners() -> usize {
        TABLE.size()
    }

    /// The number of an own row; `None` of a shared one.
    #[must_use]
    pub fn number(self) -> Option<usize> {
        let mut rows = TABLE.own.in_use().iter();
        rows.position(|row| ptr::eq(row, self.row()))
    }

    #[inline]
    fn tenancy(self) -> Tenancy {
        if self.0.addr().get() & 1 == 0 {
            Tenancy::Own
        } else {
            Tenancy::Shared
        }
    }

    /// The slot to try first.
    #[inline]
    fn first(self) -> &'static Slot {
        let slot = self.0.as_ptr().map_addr(|address| address & !1);
        // SAFETY: without its lowest bit this is the address of a slot of the table (`own` and `shared` make no other),
        // and the table is never freed.
        unsafe { &*slot }
    }

    fn row(self) -> &'static Row {
        let row = |rows: &'static [Row]| {
            let distance = ptr::from_ref(self.first()).addr() - rows.as_ptr().addr();
            rows.get(distance / size_of::<Row>())
        };
        match self.tenancy() {
            Tenancy::Own => row(&TABLE.own.rows),
            Tenancy::Shared => row(&TABLE.shared.rows),
        }
        .expect("every row is in the table")
    }

    /// The other slots of its row, beginning with the one after the first to try.
    fn others(self) -> impl Iterator<Item = &'static Slot> {
        let slots = &self.row().slots;
        let first = slots.iter().position(|slot| ptr::eq(slot, self.first()));
        let first = first.unwrap_or_default();
        (1..COLUMNS).map(move |step| &slots[(first + step) % COLUMNS])
    }
}

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
    TABLE
        .slots_in_use()
        .any(|slot| slot.holds(lock) && slot.clear(lock))
}

/// Whether a lock is published at all, now. Scans the table.
#[must_use]
pub fn is_published(lock: LockAddress) -> bool {
    TABLE.slots_in_use().any(|slot| slot.holds(lock))
}

/// Scans the table and waits until no slot holds that lock; `false` if that takes longer than `wait` allows.
///
/// It ends only if readers that publish meanwhile retract at once. So the caller first makes itself known to
/// readers, and fences before the scan. Spins briefly, then sleeps.
#[must_use]
pub fn drain(lock: LockAddress, wait: Wait) -> bool {
    // Most readers publish in their first slot, on the first line of a row, and each has that line in its cache. So the
    // lines are asked for side by side.
    TABLE.rows_in_use().for_each(atomic::prefetch);
    TABLE
        .slots_in_use()
        .all(|slot| !slot.holds(lock) || slot.await_departure(lock, wait))
}

/// Retracts every publication of a lock that is about to be gone: their guards were leaked.
///
/// # Safety
/// Nobody reads that lock any more.
pub unsafe fn forget(lock: LockAddress) {
    // SAFETY: the caller promises that nobody reads the lock, so every publication of it was leaked.
    while unsafe { retract_any(lock) } {}
}
