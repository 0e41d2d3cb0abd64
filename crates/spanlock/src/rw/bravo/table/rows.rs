//! Where threads publish: the rows of the table, and whose they are. The header of `mod.rs` draws them.

use super::slot::{Publication, Slot, Tenancy};
use prim::atomic::{AtomicUsize, Ordering};
use prim::barrier;
use prim::thread::{self, Tenure};
use std::cell::Cell;
use std::ptr;

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
pub(super) struct Row {
    pub(super) slots: [Slot; COLUMNS],
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
}

prim::global! {
    static TABLE: Table = Table::new();
}

/// The rows of their threads' own that are in use.
pub(super) fn own_rows() -> &'static [Row] {
    TABLE.own.in_use()
}

/// All rows in use.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    own_rows().iter().chain(TABLE.shared.in_use())
}

/// The slots of all rows in use.
pub(super) fn slots() -> impl Iterator<Item = &'static Slot> {
    rows().flat_map(|row| &row.slots)
}

prim::local! {
    static HERE: Cell<Option<ReaderRow>> = Cell::new(None);
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
    pub(in crate::rw::bravo) fn known() -> Option<Self> {
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
        let mut rows = own_rows().iter();
        rows.position(|row| ptr::eq(row, self.row()))
    }

    #[inline]
    pub(super) fn tenancy(self) -> Tenancy {
        if self.0.addr().get() & 1 == 0 {
            Tenancy::Own
        } else {
            Tenancy::Shared
        }
    }

    /// The slot to try first.
    #[inline]
    pub(super) fn first(self) -> &'static Slot {
        let slot = self.0.as_ptr().map_addr(|address| address & !1);
        // SAFETY: without its lowest bit this is the address of a slot of the table (`own` and `shared` make no other),
        // and the table is never freed.
        unsafe { &*slot }
    }

    pub(super) fn row(self) -> &'static Row {
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
    pub(super) fn others(self) -> impl Iterator<Item = &'static Slot> {
        let slots = &self.row().slots;
        let first = slots.iter().position(|slot| ptr::eq(slot, self.first()));
        let first = first.unwrap_or_default();
        (1..COLUMNS).map(move |step| &slots[(first + step) % COLUMNS])
    }

    /// Whether that publication is in another slot than the first, which was taken.
    #[must_use]
    pub fn is_collision(self, publication: &Publication) -> bool {
        !ptr::eq(publication.0, self.first())
    }
}
