//! Records of threads, and pins.
//!
//! ```text
//!   thread-local HERE ---> record 3 of the table, claimed by this thread until it exits
//! ```
//!
//! A thread claims a record with its first pin, and gives it back when it exits. A thread may still use a map after
//! that, in a destructor of a thread-local, or keep a view in one. Then it claims a record, or keeps its record, until
//! its last pin is dropped.

use super::epoch::Epoch;
use prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use prim::barrier;
use prim::thread::{self, ForkHook, Table, Tenure};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

/// What the maps keep for one thread.
#[derive(Debug)]
#[repr(align(128))] // Two cache lines, as processors fetch them: a change of one epoch must not disturb another.
struct Record {
    epoch: Epoch,
    is_claimed: AtomicBool,
    /// Its place in the table.
    number: Cell<usize>,
    /// How many pins there are.
    pins: Cell<usize>,
    /// The thread keeps the record when there are none.
    is_kept: Cell<bool>,
    /// The state of a generator of random numbers.
    random: Cell<u64>,
}

// SAFETY: other threads access `epoch` and `is_claimed` only, which are atomic. The rest belongs to the thread that has
// claimed the record. `claim` and `give_back` order one such thread before the next.
unsafe impl Sync for Record {}

impl Default for Record {
    fn default() -> Self {
        Self {
            epoch: Epoch::default(),
            is_claimed: AtomicBool::new(false),
            number: Cell::new(0),
            pins: Cell::new(0),
            is_kept: Cell::new(false),
            random: Cell::new(0),
        }
    }
}

prim::global! {
    static TABLE: Table<Record> = Table::new();
}

prim::global! {
    /// One more than the largest number of a record that was ever claimed.
    static CLAIMED: AtomicUsize = AtomicUsize::new(0);
}

prim::local! {
    /// The record that this thread has claimed.
    static HERE: Cell<*const Record> = Cell::new(ptr::null());
}

impl Record {
    /// Claims the first record that is free.
    fn claim() -> &'static Self {
        let is_free = |record: &&'static Self| {
            // Acquire: pairs with the Release in `give_back`.
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            let claimed = &record.is_claimed;
            claimed
                .compare_exchange(false, true, success, failure)
                .is_ok()
        };
        let mut records = (0..).map(|number| (number, TABLE.get(number)));
        let free = records.find(|(_, record)| is_free(record));
        let (number, record) = free.expect("the table ends with a panic");
        // Relaxed: the pin's barrier orders it before the thread's first search [set-new-threads].
        CLAIMED.fetch_max(number + 1, Ordering::Relaxed);
        record.number.set(number);
        record.random.set(number as u64);
        record
    }

    /// Gives the record to the next thread that claims one.
    fn give_back(&self) {
        HERE.with(|here| here.set(ptr::null()));
        // Release: pairs with the Acquire in `claim`.
        self.is_claimed.store(false, Ordering::Release);
    }
}

/// The epochs of all records that were ever claimed.
pub(super) fn epochs() -> impl Iterator<Item = &'static Epoch> {
    // Relaxed: ordered by the barrier of the thread that seals [set-new-threads].
    let claimed = CLAIMED.load(Ordering::Relaxed);
    (0..claimed).map(|number| &TABLE.get(number).epoch)
}

/// While it lives, nodes that this thread finds stay alive.
#[derive(Debug)]
pub(crate) struct Pin {
    record: &'static Record,
    /// A pin belongs to its thread's record.
    not_send: PhantomData<*const ()>,
}

impl Pin {
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: null, or a pointer into the global table, whose entries never move and are never freed.
        let known = unsafe { HERE.with(Cell::get).as_ref() };
        let record = known.unwrap_or_else(|| first());
        let pins = record.pins.get();
        record.pins.set(pins + 1);
        if pins == 0 {
            record.epoch.pin();
        }
        Self {
            record,
            not_send: PhantomData,
        }
    }

    /// The number of the thread's record. No other thread has the same while the pin lives.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.record.number.get()
    }

    /// A random number, good enough to draw lots with (SplitMix64).
    #[inline]
    pub(crate) fn random(&self) -> u64 {
        let random = &self.record.random;
        random.set(random.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mixed = random.get();
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        let left = self.record.pins.get() - 1;
        self.record.pins.set(left);
        if left == 0 {
            self.record.epoch.unpin();
            if !self.record.is_kept.get() {
                self.record.give_back();
            }
        }
    }
}

#[cold] // A thread's first pin, and the pins of a thread that exits.
fn first() -> &'static Record {
    barrier::prepare();
    static FORK: ForkHook = ForkHook::new(after_fork);
    FORK.register();
    thread::with_index(on_exit, |_, tenure| {
        let record = Record::claim();
        record.is_kept.set(tenure == Tenure::Thread);
        HERE.with(|here| here.set(record));
        record
    })
}

fn on_exit(_: usize) {
    // SAFETY: as in `Pin::new`.
    if let Some(record) = unsafe { HERE.with(Cell::get).as_ref() } {
        record.is_kept.set(false);
        if record.pins.get() == 0 {
            record.give_back();
        }
    }
}

/// Runs in a forked child, perhaps twice. The other threads are gone, and stand on no node. Their records stay claimed.
extern "C" fn after_fork() {
    let here = HERE.with(Cell::get);
    let others = (0..CLAIMED.load(Ordering::Relaxed)).map(|number| TABLE.get(number));
    others
        .filter(|record| !ptr::eq(*record, here))
        .for_each(|record| record.epoch.abandon());
}
