//! The word that fast readers and writers of a biased lock agree by.
//!
//! The word holds the *bias*, its *grade*, whether the bias is *kept*, and the number of writers that have *arrived*.
//! The fast path is *open* while the bias is set and nobody has arrived.
//!
//! ```text
//!   bit  31                                 4       3       2        1        0
//!       +------------------------------------+-------+------+--------+--------+
//!       |   writers that have arrived        | NEVER | KEEP | FENCED | BIASED |
//!       +------------------------------------+-------+------+--------+--------+
//! ```
//!
//! | BIASED | KEEP | arrived | state | fast path | readers inside by the table |
//! |---|---|---|---|---|---|
//! | - | - | 0 | unbiased | closed | none |
//! | set | - | 0 | fenced, or free (without FENCED) | *open* | any number |
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
//! A writer that gives up while closing takes its arrival off (**bias-withdraw**), and leaves the bias as it was. A
//! lock that is never to be biased has the bit `NEVER` set, and no other but arrivals.
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
//!   word is open still, (bias-closed)         clear BIASED; KEEP, if it pays        (bias-off)
//!   and free if it was? (bias-grade)          lock the underlying lock
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
//! writer to arrive executes a heavy one. The reader therefore looks for the free grade exactly: if writers have closed
//! the path and opened it again meanwhile, the grade is fenced, and the reader starts over. The grade by which a writer
//! goes is what its arrival found, in one step. A bias may become free at any time: a reader by a plain store gets in
//! only when nobody has arrived, and a writer that arrives later finds the free grade.
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
//! - **bias-grade**: a reader by a plain store finds the free grade when it looks again.
//! - **bias-recheck**: a reader that finds the fast path closed retracts. **bias-closed**: it checks for an *open*
//!   path; a bias that is set beside writers that arrived does not let it in. **bias-drain**: the writer waits for
//!   readers it finds.
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
use super::account::{self, Account, OVERDUE};
use super::hint;
use super::policy::{Bias, Event, Policy, report};
use super::table::{self, LockAddress, Publication, ReaderRow};
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering, fence_after_rmw};
use prim::barrier;
use prim::spin::{self, Spin};
use word::Word;

mod arrival;
mod word;

pub use arrival::Arrival;
pub(super) use word::Grade;

/// Why a reader did not get in by the fast path.
pub(super) enum Missed {
    /// The fast path was closed, or its readers have to fence.
    NotFree,
    /// The slots where the reader may publish are taken.
    SlotBusy,
    /// The fast path was closed while the reader published. The publication still stands.
    Revoking(Publication),
}

/// The bias of a lock: 8 bytes beside the underlying lock, all zero when unbiased.
///
/// The table knows a lock by the address of this, so it must not move while a reader is inside.
#[derive(Debug)]
pub struct BiasState {
    word: AtomicU32,
    /// An [`Account`]. Threads that open or close the path store here, and one may overwrite what another stored. A
    /// lost value makes one trial earlier or later, and does nothing else.
    account: AtomicU32,
}

impl Default for BiasState {
    fn default() -> Self {
        Self::new()
    }
}

impl BiasState {
    prim::const_fn! {
        const fn with(word: Word) -> Self {
            Self {
                word: AtomicU32::new(word.0),
                account: AtomicU32::new(0),
            }
        }
    }

    prim::const_fn! {
        /// Unbiased, with no readers and no writers.
        #[must_use]
        pub const fn new() -> Self {
            Self::with(Word::UNBIASED)
        }
    }

    /// Biased from birth, which is now, and free.
    #[must_use]
    pub fn biased() -> Self {
        let bias = Self::with(Word::FREE);
        bias.set_account(bias.account().opened(account::now()));
        bias
    }

    prim::const_fn! {
        /// Never biased.
        #[must_use]
        pub const fn never() -> Self {
            Self::with(Word::NEVER)
        }
    }

    #[inline]
    pub(super) fn address(&self) -> LockAddress {
        LockAddress::of(self)
    }

    /// One load, which orders nothing.
    #[inline]
    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    fn account(&self) -> Account {
        Account(self.account.load(Ordering::Relaxed))
    }

    fn set_account(&self, account: Account) {
        self.account.store(account.0, Ordering::Relaxed);
    }

    /// Whether the fast path is open. One load, which orders nothing.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.word().is_open()
    }

    /// Whether the last writer to leave will open the path again, or could: the bias is set, or kept. One load, which
    /// orders nothing.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        self.word().is_biased_or_kept()
    }

    /// Tries the fast path where a publication is one store: the bias is free, and the first slot of the running
    /// thread's own row. Does not report a collision.
    #[inline(always)] // It is all that the fast path is.
    pub(super) fn fast_read_by_store(&self, policy: &impl Policy) -> Result<Publication, Missed> {
        if self.word() != Word::FREE {
            return Err(Missed::NotFree);
        }
        let publication = table::publish_by_store(self.address()).ok_or(Missed::SlotBusy)?;
        self.recheck(publication, Grade::Free, policy)
    }

    /// Tries the fast path, if it is open with that grade, or with any.
    #[inline(always)] // Part of the fast path.
    pub(super) fn fast_read(
        &self,
        only: Option<Grade>,
        row: impl FnOnce() -> ReaderRow,
        policy: &impl Policy,
    ) -> Result<Publication, Missed> {
        let word = self.word();
        if !word.is_open() || only.is_some_and(|grade| word.grade() != grade) {
            return Err(Missed::NotFree);
        }
        self.read_by(row(), word.grade(), policy)
    }

    #[inline(always)] // Part of the fast path.
    fn read_by(
        &self,
        row: ReaderRow,
        grade: Grade,
        policy: &impl Policy,
    ) -> Result<Publication, Missed> {
        let publication = match grade {
            Grade::Free => table::publish(self.address(), row),
            Grade::Fenced => table::publish_by_exchange(self.address(), row),
        };
        if publication.as_ref().is_none_or(|it| it.is_collision(row)) {
            report(policy, Event::Collision);
        }
        self.recheck(publication.ok_or(Missed::SlotBusy)?, grade, policy)
    }

    /// Checks that the fast path is still open for readers that published as this one did. If so, it is inside.
    #[inline(always)] // Part of the fast path.
    fn recheck(
        &self,
        publication: Publication,
        grade: Grade,
        policy: &impl Policy,
    ) -> Result<Publication, Missed> {
        match grade {
            // [bias-reader] The light side of [bias-writer].
            Grade::Free if prim::intact!("bias-reader") => barrier::light(),
            // [bias-reader-fenced] Against [bias-writer-fenced].
            Grade::Fenced if prim::intact!("bias-reader-fenced") => fence_after_rmw(),
            Grade::Free | Grade::Fenced => {}
        }
        // [bias-seen] Acquire: pairs with [bias-set] and [bias-reopened].
        let seen = Word(self.word.load(prim::order!("bias-seen", Ordering::Acquire)));
        let open = match grade {
            // [bias-grade]
            Grade::Free if prim::intact!("bias-grade") => seen == Word::FREE,
            Grade::Free | Grade::Fenced => {
                // [bias-closed]
                if prim::intact!("bias-closed") {
                    seen.is_open()
                } else {
                    seen.is_biased()
                }
            }
        };
        // [bias-recheck]
        if open || !prim::intact!("bias-recheck") {
            report(policy, Event::FastRead);
            return Ok(publication);
        }
        Err(Missed::Revoking(publication))
    }

    /// Enters by the table whatever the grade of the bias. While the path is closed by writers that will open it again,
    /// waits for that: not at all in a try, and each time for [`OVERDUE`] at most. `None`: the reader has to go by the
    /// underlying lock.
    pub(super) fn read_patiently(
        &self,
        wait: Wait,
        row: impl Fn() -> ReaderRow,
        policy: &impl Policy,
    ) -> Option<Publication> {
        let mut word = self.word();
        loop {
            if !word.is_open() {
                word = self.await_reopening(word, wait)?;
            }
            match self.read_by(row(), word.grade(), policy) {
                Ok(publication) => {
                    if hint::samples_one_in(prim::stock(PROMOTES, prim::sized(1, PROMOTES)) as u32)
                    {
                        self.maybe_free();
                    }
                    return Some(publication);
                }
                Err(Missed::Revoking(publication)) => {
                    // SAFETY: this thread made it just now and has not handed it out, so it still stands.
                    unsafe { publication.retract() };
                    word = Some(self.word()).filter(|_| !wait.is_over())?;
                }
                Err(Missed::SlotBusy | Missed::NotFree) => return None,
            }
        }
    }

    /// Waits while writers that will open the path again keep it closed; `None` if it does not open.
    ///
    /// Readers load the word less and less often, because each load delays the writers, which change it.
    fn await_reopening(&self, mut word: Word, wait: Wait) -> Option<Word> {
        if wait == Wait::Never || !word.will_reopen() {
            return None;
        }
        let since = account::now();
        let mut spin = Spin::new(spin::ON_HOLDER);
        while word.will_reopen() {
            // [await-bounded] A reader that is inside already must not wait for a writer that waits for it.
            let overdue = account::now() - since >= OVERDUE && prim::intact!("await-bounded");
            if overdue || wait.is_over() {
                return None;
            }
            if !spin.round() {
                spin = Spin::new(spin::ON_HOLDER);
            }
            word = self.word();
        }
        word.is_open().then_some(word)
    }

    /// If the bias has lived long, its readers publish by plain stores from now on.
    #[cold] // It reads the clock.
    pub(super) fn maybe_free(&self) {
        if self.word() == Word::FENCED && self.account().is_old(account::now()) {
            // Whoever has arrived meanwhile keeps new readers out, and goes by the grade that it found. (Relaxed: a
            // read-modify-write passes on what was released before.)
            let grade = Word::FENCED.0 ^ Word::FREE.0;
            self.word.fetch_and(!grade, Ordering::Relaxed);
        }
    }

    /// Whether a reader that holds the underlying lock may open the path at once: it is kept, and nobody has arrived.
    #[inline]
    pub(super) fn is_left_kept(&self) -> bool {
        self.word() == Word::KEPT
    }

    /// A reader that holds the underlying lock looks at the word, and may set the bias. The running thread's next
    /// acquisitions go without a look if there is none.
    pub(super) fn look(&self, bias: Bias, latency: Option<u64>) {
        if self.consider(bias, latency) {
            hint::clear(self.address());
        } else {
            hint::set(self.address());
        }
    }

    /// Sets the bias, if that is left kept, or if the policy and the account permit it; `false` if there is no bias,
    /// and none is kept. The caller holds the underlying lock as a reader, and acquired it in `latency` nanoseconds, if
    /// that is known.
    pub(super) fn consider(&self, bias: Bias, latency: Option<u64>) -> bool {
        let word = self.word();
        let next = match (bias, word, latency) {
            (Bias::Off, _, _) => None,
            (Bias::Eager, Word::UNBIASED, _) | (_, Word::KEPT, _) => Some(self.account()),
            (Bias::Adaptive, Word::UNBIASED, Some(latency)) => self.tried(latency),
            _ => None,
        };
        if let Some(account) = next {
            self.set_account(account.opened(account::now()));
            self.set(word);
        }
        next.is_some() || word.is_biased_or_kept()
    }

    #[cold] // It reads the clock.
    fn tried(&self, latency: u64) -> Option<Account> {
        let tried = self.account().tried(account::now(), latency);
        tried.map_err(|account| self.set_account(account)).ok()
    }

    /// Opens the path, if the word is still what it was: unbiased, or kept.
    fn set(&self, before: Word) {
        // [bias-unpublished] Only then do writers wait for readers of this lock alone.
        if prim::intact!("bias-unpublished") && table::is_published(self.address()) {
            return;
        }
        // [bias-set] Release: pairs with [bias-seen].
        let order = prim::order!("bias-set", Ordering::Release);
        let (before, open, relaxed) = (before.0, Word::FENCED.0, Ordering::Relaxed);
        // [bias-no-writer]
        if prim::intact!("bias-no-writer") {
            // It fails if the bias is set, if it is never to be, or if a writer has arrived: there is nothing to do.
            let _ = self.word.compare_exchange(before, open, order, relaxed);
        } else {
            self.word.store(open, order);
        }
    }

    /// Whether the bias is set. A writer that holds the underlying lock may rely on a clear bias: it stays clear as
    /// long as the writer holds that lock.
    #[inline]
    pub(super) fn is_biased(&self) -> bool {
        // [bias-off-checked] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-checked", Ordering::Acquire);
        Word(self.word.load(order)).is_biased()
    }

    /// Whether there is neither a bias nor a writer that has arrived. One load, which orders nothing.
    #[inline]
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.word().is_clear()
    }

    /// Whether a reader is inside by the table, or is trying to get in. Scans the table if the bias is set.
    #[inline]
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.is_biased() && table::is_published(self.address())
    }
}

/// One fenced read in so many reads the clock, to see whether the bias has lived long: a small part of the cost. (None
/// in a model, where a lock is made with a free bias.)
const PROMOTES: usize = prim::sized(64, 1 << 16);

impl BiasState {
    /// Makes the state that of an unbiased lock, whatever the memory held before: for a lock that begins its life
    /// without [`new`](Self::new).
    ///
    /// The table is left alone. If it holds this address, because a guard of an earlier lock was leaked, this lock is
    /// not biased until it does not.
    ///
    /// # Safety
    /// The lock begins its life, and no other thread uses it.
    pub unsafe fn begin(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.account.store(0, Ordering::Relaxed);
    }

    /// Forgets readers, writers and the bias. Scans the table.
    ///
    /// # Safety
    /// The lock ends its life, and no other thread uses it.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller promises that no other thread uses the lock, so nobody is inside by a publication of it.
        unsafe { table::forget(self.address()) };
        // SAFETY: the caller promises that no other thread uses the lock; what follows is another lock's life.
        unsafe { self.begin() };
    }
}

impl Drop for BiasState {
    /// Clears the publications of leaked guards. If the lock was moved since they were made, they stay.
    fn drop(&mut self) {
        hint::clear(self.address());
        // [bias-forget]
        if self.is_biased() && prim::intact!("bias-forget") {
            // SAFETY: `&mut self` is the only reference, so no thread is inside by a publication of this address.
            unsafe { table::forget(self.address()) };
        }
    }
}
