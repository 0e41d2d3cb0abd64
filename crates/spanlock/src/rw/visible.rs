//! The visible readers table (P2, ATC 2019, §3), one for the process.
//!
//! A reader of any lock *publishes* the lock's address in a slot, and *retracts* it when it leaves; a writer *scans*
//! the slots and waits until none holds its lock's address. The table knows addresses, not locks: whether a published
//! reader may enter is agreed between the reader and the writers of that lock, as `bias.rs` does.
//!
//! ```
//! use spanlock::range::raw::Wait;
//! use spanlock::rw::visible::{self, LockAddress, Seat};
//!
//! let lock = 0_u64; // Anything with an address will do.
//! let address = LockAddress::of(&lock);
//! // SAFETY: used at once.
//! let seat = unsafe { Seat::here() };
//! let slot = visible::publish(address, seat).expect("nothing else is published here");
//! assert!(!visible::drain(address, Wait::Never));
//! // SAFETY: retracted once.
//! unsafe { slot.retract() };
//! assert!(visible::drain(address, Wait::Forever)); // Parks until all have left: here there is nobody.
//! ```
//!
//! # Layout
//!
//! The table is made of rows of [`COLUMNS`] slots, as large as two cache lines. A thread's [`Seat`] is a row. Threads
//! have small dense numbers, and as long as there are no more of them than rows each has one of its *own*, whatever
//! locks it uses (a hash of thread and lock, as in the paper, makes neighbours of strangers). In its own row a thread
//! publishes by a plain store, for nobody else does: no atomic operation at all. Threads beyond that *share* a few rows and
//! publish by compare-exchange. There are twice as many rows as processors, within bounds.
//!
//! A scan covers the rows that ever had a thread: a process of few threads has a table of few lines, on however large
//! a machine. Memory is reserved for the largest machine and zero, so untouched parts of it cost nothing.
//!
//! A slot that is taken, because the thread holds another lock there or shares the row, is a *collision*; then every
//! other slot of the row is probed, which is in the cache already. If the row is full the reader goes elsewhere, that
//! is to the underlying lock.
//!
//! # Memory ordering
//!
//! - **depart**, or **depart-any** where it is not known to be the reader's own: Release by a retraction, Acquire by the
//!   scan: the reader's critical section.
//! - **slot-free**: who publishes acquires the departure that made the slot free, and releases that, and what it did
//!   itself before, with the publication: a scan may see that only, and not the departure. (That it releases no model
//!   can tell: its thread's last departure was followed by the cheap fence, which is a full one there.)
//! - **leave** / **await** (store, fence, look on both sides): a reader that leaves clears its slot and then looks
//!   whether somebody awaits that; a writer that goes to sleep says so in the slot and then looks whether it is
//!   clear. One of them sees the other. The reader's fence is free and the writer's dear (`prim::barrier`): readers
//!   leave often and writers sleep seldom.
//! - **rouse**: the reader that sees it changes the word that the writer sleeps on, to what it never was
//!   (**rouse-count**), and wakes it.
//! - **row-in-use**: a seat's row counts as used before anything is published in it. The count is read after the
//!   writer's fence (see `bias.rs`), so a reader whose row it misses fences later, and sees that a writer is there.
//! - **own-row**: a thread gives its own row up before another thread gets it. (`prim::thread` orders that, and no model.)

use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, AtomicUsize, Ordering};
use prim::barrier;
use prim::clock::Instant;
use prim::futex;
use prim::spin::{self, Spin};
use prim::thread::{self, Tenure};
use std::cell::Cell;
use std::ptr;

mod address;
mod tokenless;
pub use address::LockAddress;
pub(super) use tokenless::become_stranger;
pub use tokenless::{forget_all_but, forget_all_but_at};

/// Slots in a row.
pub const COLUMNS: usize = prim::sized(8, 2);

/// Rows there can be for one thread each: enough for 512 processors, which is 128 KiB of address space.
const MOST_ROWS: usize = prim::sized(1024, 3);

/// Those that there are on the smallest machine.
const FEWEST_ROWS: usize = prim::sized(16, 3);

/// Rows for the threads that get none of their own.
const SHARED_ROWS: usize = prim::sized(16, 2);

/// The lowest bit of [`Place::awaited`]; the rest counts departures that were awaited.
const AWAITED: u32 = 1;

/// Where one reader is visible.
#[derive(Debug)]
struct Place {
    /// The address of the lock that is read, or zero.
    lock: AtomicUsize,
    /// What those who wait for the slot to clear sleep on.
    awaited: AtomicU32,
    /// Not zero while the row's thread retracts what is here without a token (see `tokenless.rs`).
    clearing: AtomicU32,
}

/// The slots of a thread, or of a few.
#[derive(Debug)]
#[repr(align(128))] // Two cache lines, as processors fetch them: a neighbour's readers must not move ours.
struct Row {
    places: [Place; COLUMNS],
}

/// Rows, of which the first are in use.
struct Rows<const N: usize> {
    rows: [Row; N],
    /// Those from this one on never had a reader.
    used: AtomicUsize,
}

impl<const N: usize> Rows<N> {
    prim::const_fn! {
        const fn new() -> Self {
            Self {
                rows: prim::array!(Row {
                    places: prim::array!(Place {
                        lock: AtomicUsize::new(0),
                        awaited: AtomicU32::new(0),
                        clearing: AtomicU32::new(0),
                    }; COLUMNS),
                }; N),
                used: AtomicUsize::new(0),
            }
        }
    }

    /// A row, from now on in use.
    fn take(&self, at: usize) -> &Row {
        if prim::intact!("row-in-use") {
            self.used.fetch_max(at + 1, Ordering::Relaxed);
        }
        &self.rows[at]
    }

    fn in_use(&self) -> &[Row] {
        // Relaxed: [row-in-use] is ordered by the fences on both sides.
        let used = self.used.load(Ordering::Relaxed);
        &self.rows[..used]
    }
}

/// The table.
struct Table {
    own: Rows<MOST_ROWS>,
    shared: Rows<SHARED_ROWS>,
    /// How many own rows are given to threads; zero until somebody asks.
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
        // Relaxed: everybody would compute the same.
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

    fn places_in_use(&self) -> impl Iterator<Item = &Place> {
        self.rows_in_use().flat_map(|row| &row.places)
    }
}

prim::global! {
    static TABLE: Table = Table::new();
}

prim::local! {
    static HERE: Cell<Option<Seat>> = Cell::new(None);
}

/// Who publishes in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenancy {
    /// One thread.
    Own,
    /// Any that got none of its own.
    Shared,
}

/// Where a thread publishes. It stays with its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat(
    /// The place where it looks first; plus one if others publish there as well. As one word a thread-local is read and
    /// tested at once.
    ptr::NonNull<Place>,
);

impl Seat {
    /// The running thread's. Costs a load of a thread-local, but for the first time.
    ///
    /// # Safety
    /// It is used at once and not kept: the row may be another thread's when this one runs its thread-locals'
    /// destructors.
    #[inline]
    #[must_use]
    pub unsafe fn here() -> Self {
        HERE.with(Cell::get).unwrap_or_else(Self::take)
    }

    #[cold] // A thread's first, and any in a destructor that runs after its thread-locals are gone.
    fn take() -> Self {
        // [own-row]
        let give_up = |number| HERE.with(|here| here.set(Some(Self::shared(number))));
        thread::with_index(give_up, |number, tenure| match tenure {
            Tenure::Thread => {
                // SAFETY: the number is this thread's until `give_up` is called.
                let seat = unsafe { Self::own(number) };
                HERE.with(|here| here.set(Some(seat)));
                seat
            }
            Tenure::Call => Self::shared(number),
        })
    }

    /// In the row of that number, if there is one; else shared. Not for every publication: keep it.
    ///
    /// # Safety
    /// As long as it, or a copy, is used, no other thread uses the seat of that number.
    #[must_use]
    pub unsafe fn own(number: usize) -> Self {
        if number >= TABLE.size() {
            return Self::shared(number);
        }
        barrier::prepare();
        Self(ptr::NonNull::from_ref(&TABLE.own.take(number).places[0]))
    }

    /// In a row that any number of threads share. Those whose numbers are near do not look at the same slots first.
    #[must_use]
    pub fn shared(number: usize) -> Self {
        barrier::prepare();
        let row = TABLE.shared.take(number % SHARED_ROWS);
        let first = ptr::NonNull::from_ref(&row.places[number / SHARED_ROWS % COLUMNS]);
        Self(first.map_addr(|address| address | 1))
    }

    /// How many threads get a row of their own: those with smaller numbers.
    #[must_use]
    pub fn owners() -> usize {
        TABLE.size()
    }

    /// That of its own row, if it is one.
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

    #[inline]
    fn first(self) -> &'static Place {
        let place = self.0.as_ptr().map_addr(|address| address & !1);
        // SAFETY: it is one of the table's, which is never gone.
        unsafe { &*place }
    }

    /// The row of that place.
    fn row(self) -> &'static Row {
        let row = |rows: &'static [Row]| {
            let distance = ptr::from_ref(self.first()).addr() - rows.as_ptr().addr();
            rows.get(distance / size_of::<Row>())
        };
        match self.tenancy() {
            Tenancy::Own => row(&TABLE.own.rows),
            Tenancy::Shared => row(&TABLE.shared.rows),
        }
        .expect("a seat is in the table")
    }

    /// The other places of its row, beginning with the next.
    fn others(self) -> impl Iterator<Item = &'static Place> {
        let places = &self.row().places;
        let first = places.iter().position(|place| ptr::eq(place, self.first()));
        let first = first.unwrap_or_default();
        (1..COLUMNS).map(move |step| &places[(first + step) % COLUMNS])
    }
}

/// A publication. Whoever has it may retract it, on any thread; forgotten, it stays.
#[derive(Debug)]
#[must_use = "it stays until retracted"]
pub struct Slot(&'static Place);

/// Publishes that `seat`'s thread is about to read a lock; `None` if there is no slot free.
///
/// Nothing is agreed by that: see the module.
#[inline]
#[must_use]
pub fn publish(lock: LockAddress, seat: Seat) -> Option<Slot> {
    let first = seat.first();
    first
        .take(lock, seat.tenancy())
        .or_else(|| probe(lock, seat))
}

/// The same for the running thread, where that is one store: in its own row, and at the first place. Most are.
#[inline(always)] // It is all that the fast path is.
pub(super) fn publish_at_once(lock: LockAddress) -> Option<Slot> {
    let seat = HERE.with(Cell::get)?;
    match seat.tenancy() {
        Tenancy::Own => seat.first().take(lock, Tenancy::Own),
        Tenancy::Shared => None,
    }
}

#[cold] // Nested readers, and threads that share a row.
fn probe(lock: LockAddress, seat: Seat) -> Option<Slot> {
    let mut others = seat.others();
    others.find_map(|place| place.take(lock, seat.tenancy()))
}

impl Place {
    #[inline]
    fn take(&'static self, lock: LockAddress, tenancy: Tenancy) -> Option<Slot> {
        let free = prim::order!("slot-free", Ordering::Acquire); // [slot-free]
        // The look beforehand spares a locked instruction on a slot that is taken; in an own row it is all.
        if self.lock.load(free) != 0 {
            return None;
        }
        // Against writers it is ordered by the fences of `bias.rs`, which come next.
        let address = lock.0.get();
        match tenancy {
            // Release: as [slot-free] has it.
            Tenancy::Own => self.lock.store(address, Ordering::Release),
            // A read-modify-write passes on what it found, and the look has acquired that: Release for what it did itself.
            Tenancy::Shared => {
                let taken =
                    self.lock
                        .compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed);
                taken.ok()?;
            }
        }
        Some(Slot(self))
    }

    #[inline]
    fn holds(&self, lock: LockAddress) -> bool {
        // [depart] Acquire: pairs with the Release of whoever cleared the slot.
        let found = self
            .lock
            .load(prim::order!("depart-acquire", Ordering::Acquire));
        found == lock.0.get()
    }

    /// Looks, after the slot was cleared, for those who wait for that.
    #[inline]
    fn departed(&self) {
        // [leave]
        if prim::intact!("leave") {
            barrier::light();
        }
        let awaited = self.awaited.load(Ordering::Relaxed);
        if awaited & AWAITED != 0 {
            self.rouse(awaited);
        }
    }

    #[cold] // Somebody waited so long that it went to sleep.
    fn rouse(&self, awaited: u32) {
        // [rouse-count] The bit goes and the count grows: who saw the slot taken before and the word as it was cannot
        // fall asleep any more, even if somebody else sets the bit again. If it fails, another reader left and does
        // the same.
        let after = if prim::intact!("rouse-count") {
            awaited.wrapping_add(AWAITED)
        } else {
            awaited & !AWAITED
        };
        let counted =
            self.awaited
                .compare_exchange(awaited, after, Ordering::Relaxed, Ordering::Relaxed);
        // [rouse]
        if counted.is_ok() && prim::intact!("rouse") {
            futex::wake_all(&self.awaited);
        }
    }

    /// Waits until the slot does not hold that lock; `false` if that takes longer than `wait` allows.
    #[cold]
    fn await_departure(&self, lock: LockAddress, wait: Wait) -> bool {
        let mut spin = Spin::new(spin::ON_HOLDER);
        while self.holds(lock) {
            let deadline = wait.deadline();
            if wait == Wait::Never || deadline.is_some_and(|at| Instant::now() >= at) {
                return false;
            }
            if !spin.round() {
                self.sleep(lock, deadline);
            }
        }
        true
    }

    fn sleep(&self, lock: LockAddress, deadline: Option<Instant>) {
        let asleep = self.awaited.fetch_or(AWAITED, Ordering::Relaxed) | AWAITED;
        // [await]
        if prim::intact!("await") {
            barrier::heavy();
        }
        if self.holds(lock) {
            futex::wait(&self.awaited, asleep, deadline);
        }
    }
}

impl Slot {
    /// Whether the seat's first slot was taken and this is another.
    #[must_use]
    pub fn is_collision(&self, seat: Seat) -> bool {
        !ptr::eq(self.0, seat.first())
    }

    /// The reader leaves: one plain store, and a look whether somebody waits for it.
    ///
    /// # Safety
    /// The publication still stands: neither the drop of its [`BiasState`](super::BiasState), nor a release without
    /// a token, nor a function of this module has retracted it. Else the slot may be another lock's by now, whose writers would miss its reader.
    #[inline]
    pub unsafe fn retract(self) {
        // [depart] Release: pairs with the Acquire of the scan.
        self.0
            .lock
            .store(0, prim::order!("depart", Ordering::Release));
        // The lock may be gone by now; the table never is.
        self.0.departed();
    }
}

/// Retracts one publication of a lock, whichever: for releases that cannot say which acquisition they end.
///
/// `false`: there is none. Costs a scan.
///
/// # Safety
/// A reader of that lock leaves, or all publications of it were leaked.
#[must_use]
pub unsafe fn retract_any(lock: LockAddress) -> bool {
    TABLE
        .places_in_use()
        .any(|place| place.holds(lock) && place.clear(lock))
}

/// Whether a lock is published at all, now.
#[must_use]
pub fn is_published(lock: LockAddress) -> bool {
    TABLE.places_in_use().any(|place| place.holds(lock))
}

/// Scans the table and waits until no slot holds that lock; `false` if that takes longer than `wait` allows.
///
/// It ends only if those who publish meanwhile retract at once: tell readers first that a writer is there, and
/// fence between that and the scan. Spins briefly, then sleeps.
#[must_use]
pub fn drain(lock: LockAddress, wait: Wait) -> bool {
    TABLE
        .places_in_use()
        .all(|place| !place.holds(lock) || place.await_departure(lock, wait))
}

/// Retracts every publication of a lock that is about to be gone: the guards were leaked.
///
/// # Safety
/// Nobody reads that lock any more.
pub unsafe fn forget(lock: LockAddress) {
    // SAFETY: the caller's.
    while unsafe { retract_any(lock) } {}
}
