//! The word that fast readers and writers of a biased lock agree by.
//!
//! The word holds the *bias*, its *grade*, whether the bias is *kept*, and the number of writers that have *arrived*.
//! The fast path is *open* while the bias is set and nobody has arrived.
//!
//! ```text
//!   bit  31                                         3      2        1        0
//!       +--------------------------------------------+------+--------+--------+
//!       |   writers that have arrived                | KEEP | FENCES | BIASED |
//!       +--------------------------------------------+------+--------+--------+
//! ```
//!
//! | BIASED | KEEP | arrived | state | fast path | readers inside by the table |
//! |---|---|---|---|---|---|
//! | - | - | 0 | unbiased | closed | none |
//! | set | - | 0 | fenced, or free (without FENCES) | *open* | any number |
//! | set | - | 1 or more | closing | closed; a reader waits | those that were inside before; they only get fewer |
//! | - | set | 1 or more | kept | closed; a reader waits | none |
//! | - | set | 0 | left kept | closed | none |
//! | - | - | 1 or more | closed | closed | none |
//!
//! ```text
//!             a reader tries a bias (bias-set)              lived for long
//!   unbiased ----------------------------------> fenced ---------------------> free
//!      ^                                          ^ ^ |                         |
//!      |                                          | | | a writer arrives        | a writer arrives
//!      | the last leaves                          | | | (bias-writer-fenced)    | (bias-writer)
//!      |                                          | | v                         v
//!   closed <--- the table is empty, and it -------|-|- closing <----------------+
//!               does not pay (bias-off)           | |     |
//!                                                 | |     | the table is empty, and it pays (bias-off)
//!               the last leaves, and opens the    | |     v
//!               path (bias-reopened,              | +--- kept
//!               bias-kept-last)                   |       |
//!                                                 |       | the last gives up
//!               a reader opens the path           |       v
//!               (bias-set)                        +-- left kept
//! ```
//!
//! A writer that gives up while closing takes its arrival off (**bias-withdraw**), and leaves the bias as it was.
//!
//! # A biased read against a revocation
//!
//! The reader and the writer each store, fence, and load what the other stores. There are two *grades* of bias, which
//! differ in who pays for the fences. A bias begins as *fenced*: then a revocation is a scan. A bias that has lived for
//! long becomes *free*: then readers publish by plain stores, and a revocation interrupts all processors.
//!
//! ```text
//!   reader                                    writer
//!   ------                                    ------
//!   word is open, and of which grade?
//!   free:   slot := address                   word += one arrival; BIASED before that, and of which grade?
//!           light fence     (bias-reader)     free:   heavy fence          (bias-writer)
//!   fenced: slot := address, read-modify-     fenced: fence                (bias-writer-fenced)
//!           write; fence                      for each slot in use:
//!                    (bias-reader-fenced)       while it holds the address: wait    (bias-drain)
//!   word is as it was? (bias-closed,          clear BIASED; KEEP, if it pays        (bias-off)
//!                       bias-grade)           lock the underlying lock
//!     yes: inside                             inside
//!     no:  slot := 0   (bias-recheck)         the last to leave: open the path      (bias-reopened)
//!          wait for the word, for 32 us       unlock the underlying lock
//!          at most        (await-bounded)
//! ```
//!
//! One of the two fences is first in the order of all fences. If the reader's is first, the writer's scan observes the
//! slot, and the writer waits. If the writer's is first, the reader's second check observes the arrival, and the reader
//! retracts its publication. In neither case are both inside.
//!
//! A light fence is a fence towards heavy ones alone. So a reader by a plain store may be inside only if the next
//! writer to arrive executes a heavy one. The reader therefore looks for the same grade again: if writers have closed
//! the path and opened it again meanwhile, the grade is fenced, and the reader starts over. (A reader that fenced could
//! do without, and starts over too when the bias has become free: that is rare.) The grade by which a writer goes is
//! what its arrival found, in one step. A bias may become free at any time: a reader by a plain store gets in only when
//! nobody has arrived, and a writer that arrives later finds the free grade.
//!
//! # Invariants
//!
//! 1. The bias is set by a thread that holds the underlying lock: by a reader, from unbiased or left kept; or by the
//!    last writer to leave. It is not set beside a writer that has arrived and stays.
//! 2. A reader sets it only if the lock's address is not published. (Without a bias no reader is inside by the table.
//!    An address that is published all the same is about to be retracted, or belongs to a leaked guard of an earlier
//!    lock at this address. In the second case the writers of this lock would wait for a reader of that one.)
//! 3. A writer clears the bias after it arrived, by a scan that began then and that found no publication.
//! 4. So while the bias is clear, no reader is inside by the table. A writer that holds the underlying lock and has
//!    observed a clear bias keeps it clear, because nobody else can hold that lock to set it.
//! 5. While a reader is inside by the table, no writer is inside. A writer may hold the underlying lock for a moment,
//!    to check the bias or after it has opened the path; an upgradable reader may hold it beside readers.
//! 6. No thread waits for the word to open for longer than 32 us, and a try does not wait for it. (A reader that finds
//!    it open and is too late waits anew.) So whoever waits for a reader inside does not wait for one that waits for
//!    the word.
//!
//! # Memory ordering
//!
//! - **bias-reader** / **bias-writer**: the fences of the free grade: the light and the heavy side of `prim::barrier`.
//!   **bias-reader-fenced** / **bias-writer-fenced**: those of the fenced grade.
//! - **bias-grade**: a reader finds the grade by which it published when it looks again.
//! - **bias-recheck**: a reader that does not find the word as it was retracts. **bias-closed**: a bias that is set
//!   beside writers that arrived does not let it in. **bias-drain**: the writer waits for readers it finds.
//! - **bias-set**, **bias-reopened** / **bias-seen**: Release by the thread that sets the bias, Acquire by the fast
//!   reader's second check. That thread holds the underlying lock, so it has observed what writers did before; the fast
//!   reader observes it through the word. Between the two only read-modify-writes change the word, which pass the
//!   Release on.
//! - **bias-no-writer**: a reader sets the bias by one compare-exchange, so that it fails if a writer has arrived.
//!   **bias-kept-last**: the last writer opens the path in one step with taking its arrival off, so that it fails if
//!   another has arrived.
//! - **bias-off** / **bias-off-checked**, **bias-off-begin**: Release by the writer that clears the bias, Acquire by a
//!   writer that finds it clear and does not scan: the critical sections of the fast readers come before its own.
//! - **bias-withdraw**: a writer that gives up subtracts itself.
//! - **await-bounded**: invariant 6, by the clock.
//! - **bias-unpublished**: invariant 2. A leaked publication of an earlier lock was made before this lock was, and so
//!   before the scan.
//! - **bias-forget**: the drop of a lock clears its publications that leaked guards left. The next lock at this address
//!   may be biased from birth, and would not scan.
//! - The critical section of a fast reader happens before that of the writer by the table's **depart**.

use super::table::{self, LockAddress, Publication, ReaderRow};
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering, fence, fence_after_rmw};
use prim::barrier;
use prim::clock;
use prim::spin::{self, Spin};
use word::{ARRIVAL, FENCES};

mod word;

pub(super) use word::Word;

/// The fast path of a lock: the word by which its fast readers and its writers agree.
///
/// The table knows a lock by the address of this, so it must not move while a reader is inside.
#[derive(Debug)]
pub(super) struct Path {
    word: AtomicU32,
}

impl Path {
    prim::const_fn! {
        /// A path with no readers and no writers, whose word is that one.
        pub(super) const fn new(word: Word) -> Self {
            Self {
                word: AtomicU32::new(word.0),
            }
        }
    }

    #[inline]
    pub(super) fn address(&self) -> LockAddress {
        LockAddress::of(self)
    }

    /// The word, by one load, which orders nothing.
    #[inline]
    pub(super) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Enters by the table where a publication is one store: the bias is free, and the thread has a row of its own,
    /// whose first slot is free. A reader that has published and finds a writer leaves by `back_out`.
    #[inline(always)] // It is all that the fast path is.
    pub(super) fn read_by_store(
        &self,
        row: impl FnOnce() -> Option<ReaderRow>,
        back_out: impl FnOnce(Publication),
    ) -> Option<Publication> {
        if self.word() != Word::FREE {
            return None;
        }
        let publication = table::publish_by_store(self.address(), row()?)?;
        let checked = self.recheck(publication, Word::FREE);
        checked.map_err(back_out).ok()
    }

    /// Publishes by the grade of an open path. [`recheck`](Self::recheck) comes next.
    pub(super) fn publish(&self, open: Word, row: ReaderRow) -> Option<Publication> {
        match open {
            Word::FREE => table::publish(self.address(), row),
            _ => table::publish_by_exchange(self.address(), row),
        }
    }

    /// Checks that the word is still that by which the reader published. If so, it is inside.
    #[inline(always)] // Part of the fast path.
    pub(super) fn recheck(
        &self,
        publication: Publication,
        open: Word,
    ) -> Result<Publication, Publication> {
        match open {
            // [bias-reader] The light side of [bias-writer].
            Word::FREE if prim::intact!("bias-reader") => barrier::light(),
            // [bias-reader-fenced] Against [bias-writer-fenced].
            Word::FENCED if prim::intact!("bias-reader-fenced") => fence_after_rmw(),
            _ => {}
        }
        // [bias-seen] Acquire: pairs with [bias-set] and [bias-reopened].
        let seen = self.word.load(prim::order!("bias-seen", Ordering::Acquire));
        let mut differs = seen ^ open.0;
        // [bias-grade]
        if !prim::intact!("bias-grade") {
            differs &= !FENCES;
        }
        // [bias-closed]
        if !prim::intact!("bias-closed") {
            differs &= ARRIVAL - 1;
        }
        // [bias-recheck]
        if differs != 0 && prim::intact!("bias-recheck") {
            return Err(publication);
        }
        Ok(publication)
    }

    /// The word once the path is open. Waits while writers that will open it again keep it closed, for `limit`
    /// nanoseconds at most; `None` if it does not open.
    pub(super) fn await_open(&self, wait: Wait, limit: u64) -> Option<Word> {
        let word = self.spin_while(wait, limit, Word::will_reopen)?;
        word.is_open().then_some(word)
    }

    /// Before a writer arrives: waits for `limit` nanoseconds, or until another writer closes the path.
    pub(super) fn stay_open(&self, wait: Wait, limit: u64) {
        let _ = self.spin_while(wait, limit, Word::is_open);
    }

    /// Spins while `is_so` is true of the word, and returns the word that it is not true of; `None` if that takes
    /// longer than `wait` allows, or than `limit` nanoseconds.
    ///
    /// Loads the word less and less often, because each load delays those that change it. Then it yields the processor,
    /// because the thread that it waits for may be runnable and not running, and begins again, because to be late costs
    /// more.
    fn spin_while(&self, wait: Wait, limit: u64, is_so: fn(Word) -> bool) -> Option<Word> {
        let (mut since, mut spin) = (None, Spin::new(spin::ON_HOLDER));
        loop {
            let word = self.word();
            if wait == Wait::Never || !is_so(word) {
                return Some(word);
            }
            let since = *since.get_or_insert_with(clock::nanoseconds);
            // [await-bounded] A reader that is inside already must not wait for a writer that waits for it.
            let overdue = clock::nanoseconds() - since >= limit && prim::intact!("await-bounded");
            if overdue || wait.is_over() {
                return None;
            }
            if !spin.round() {
                prim::thread::yield_now();
                spin = Spin::new(spin::ON_HOLDER);
            }
        }
    }

    /// Makes the bias free, whoever has arrived: its readers publish by plain stores from now on. The caller has found
    /// it fenced.
    pub(super) fn free(&self) {
        // Whoever has arrived meanwhile keeps new readers out, and goes by the grade that it found. (Relaxed: a
        // read-modify-write passes on what was released before.)
        self.word.fetch_and(!FENCES, Ordering::Relaxed);
    }

    /// For a reader that holds the underlying lock: opens the path, if the word is still what it was, unbiased or kept.
    pub(super) fn open(&self, before: Word) {
        // [bias-unpublished] Only then do writers wait for readers of this lock alone.
        if prim::intact!("bias-unpublished") && table::is_published(self.address()) {
            return;
        }
        // [bias-no-writer] It fails if the bias is set, or if a writer has arrived: there is nothing to do.
        let then = prim::order!("bias-no-writer", before, self.word());
        // [bias-set] Release: pairs with [bias-seen].
        let order = prim::order!("bias-set", Ordering::Release);
        let (word, open) = (&self.word, Word::FENCED.0);
        let _ = word.compare_exchange(then.0, open, order, Ordering::Relaxed);
    }

    /// Whether the bias is set. A writer that holds the underlying lock may rely on a clear bias: it stays clear as
    /// long as the writer holds that lock.
    #[inline]
    pub(super) fn is_biased(&self) -> bool {
        // [bias-off-checked] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-checked", Ordering::Acquire);
        Word(self.word.load(order)).is_biased()
    }

    /// Whether a reader is inside by the table, or is trying to get in. Scans the table if the bias is set.
    #[inline]
    pub(super) fn is_read(&self) -> bool {
        self.is_biased() && table::is_published(self.address())
    }

    /// A writer arrives: the path is closed until each that arrived has left or given up.
    ///
    /// If the bias is set this executes the writer's side of the fence, which takes microseconds if the bias is free.
    pub(super) fn arrive(&self) -> Arrival<'_> {
        // [bias-off-begin] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-begin", Ordering::Acquire);
        let found = Word(self.word.fetch_add(ARRIVAL, order));
        let since = found.is_biased().then(clock::nanoseconds);
        if found.is_fenced() {
            // [bias-writer-fenced] Against [bias-reader-fenced].
            if prim::intact!("bias-writer-fenced") {
                fence(Ordering::SeqCst);
            }
        } else if found.is_biased() {
            // [bias-writer] The heavy side of [bias-reader].
            if prim::intact!("bias-writer") {
                barrier::heavy();
            }
        }
        Arrival {
            path: self,
            found,
            since,
        }
    }

    /// A writer that has arrived leaves, and still holds the underlying lock. The last one opens the path again if the
    /// bias is kept; whether it has.
    pub(super) fn leave(&self) -> bool {
        // [bias-reopened] Release: pairs with [bias-seen].
        let order = prim::order!("bias-reopened", Ordering::Release);
        let mut left = Word::UNBIASED;
        let leave = |word| {
            left = Word(word).left();
            Some(left.0)
        };
        let _ = self.word.fetch_update(order, Ordering::Relaxed, leave);
        left.is_open()
    }

    /// Makes the path that of an unbiased lock, whatever the memory held before.
    ///
    /// # Safety
    /// The lock begins its life, and no other thread uses it.
    pub(super) unsafe fn begin(&self) {
        self.word.store(Word::UNBIASED.0, Ordering::Relaxed);
    }
}

impl Drop for Path {
    /// Clears the publications of leaked guards. If the lock was moved since they were made, they stay.
    fn drop(&mut self) {
        // [bias-forget]
        if self.is_biased() && prim::intact!("bias-forget") {
            // SAFETY: `&mut self` is the only reference, so no thread is inside by a publication of this address.
            unsafe { table::forget(self.address()) };
        }
    }
}

/// A writer that has arrived. To drop this is to give up; one that is inside forgets it, and leaves by [`Path::leave`].
#[derive(Debug)]
#[must_use = "to drop it is to give up"]
pub(super) struct Arrival<'a> {
    path: &'a Path,
    found: Word,
    since: Option<u64>,
}

impl Arrival<'_> {
    /// The word that the writer arrived at.
    pub(super) fn found(&self) -> Word {
        self.found
    }

    /// When the writer arrived, in nanoseconds, if it found a bias. Else there is nobody to wait for: no reader is
    /// inside by the table, and none sets a bias beside a writer that has arrived.
    pub(super) fn since(&self) -> Option<u64> {
        self.since
    }

    /// Waits until no reader is inside by the table; `false` if that takes longer than `wait` allows. Spins briefly,
    /// then sleeps.
    #[must_use]
    pub(super) fn await_readers(&self, wait: Wait) -> bool {
        // [bias-drain]
        !prim::intact!("bias-drain") || table::drain(self.path.address(), wait)
    }

    /// Clears the bias, once the table is empty, and leaves what is to become of it: kept, or unbiased. Several writers
    /// may do this; the first decides, and is told `true`.
    pub(super) fn close(&self, fate: Word) -> bool {
        // [bias-off] Release: pairs with [bias-off-checked] and [bias-off-begin].
        let order = prim::order!("bias-off", Ordering::AcqRel);
        let close = |word| Word(word).closed(fate).map(|closed| closed.0);
        let closed = self.path.word.fetch_update(order, Ordering::Acquire, close);
        closed.is_ok()
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // [bias-withdraw] Not Release: who opens the path next holds the underlying lock.
        if prim::intact!("bias-withdraw") {
            self.path.word.fetch_sub(ARRIVAL, Ordering::Relaxed);
        }
    }
}
