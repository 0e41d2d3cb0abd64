//! The word that fast readers and writers of a biased lock agree by.
//!
//! The word holds the *bias* (one bit) and the number of *revokers*: writers that have begun a revocation and are not
//! inside yet. The fast path is *open* while the bias is set and there is no revoker.
//!
//! ```text
//!   bit  31                                    2        1        0
//!       +---------------------------------------+--------+--------+
//!       |           number of revokers          | NEVER  | BIASED |
//!       +---------------------------------------+--------+--------+
//! ```
//!
//! | bias | revokers | state | fast path | readers inside by the table |
//! |---|---|---|---|---|
//! | clear | 0 | unbiased | closed | none |
//! | set | 0 | biased | *open* | any number |
//! | set | 1 or more | revoking | closed | those that were inside before; they only get fewer |
//! | clear | 1 or more | revoked | closed | none |
//!
//! ```text
//!               a slow reader sets the bias (bias-set)
//!   unbiased ------------------------------------------> biased
//!    |    ^                                              |    ^
//!    |    | the last revoker enters        a writer      |    | the last revoker
//!    |    | (or gives up)                  registers     |    | gives up
//!    |    |                               (bias-writer)  |    | (bias-withdraw)
//!    v    |                                              v    |
//!   revoked <------------------------------------------ revoking
//!               a revoker finds the table empty
//!               and clears the bias (bias-off)
//!
//!   From unbiased to revoked: a writer that had found a bias registers after another has cleared it, or an upgradable
//!   reader registers.
//! ```
//!
//! A lock that is never to be biased has the bit `NEVER` set, and stays in the left column.
//!
//! # A biased read against a revocation
//!
//! The reader and the writer each store, fence, and load what the other stores.
//!
//! ```text
//!   reader                                    writer
//!   ------                                    ------
//!   word is BIASED and nothing else?
//!   slot := address of the lock               word += one revoker
//!   light fence           (bias-reader)       heavy fence            (bias-writer)
//!   word still BIASED and nothing else?       for each slot in use:
//!     yes: inside                               while it holds the address: wait   (bias-drain)
//!     no:  slot := 0, slow path               clear BIASED           (bias-off)
//!          (bias-recheck)                     lock the underlying lock
//! ```
//!
//! One of the two fences is first in the order of all fences. If the reader's is first, the writer's scan observes the
//! slot, and the writer waits. If the writer's is first, the reader's second check observes the revoker, and the
//! reader retracts its publication. In neither case are both inside.
//!
//! # Invariants
//!
//! 1. A reader sets the bias, while it holds the underlying lock. It does so only if there is no revoker and if the
//!    lock's address is not published. (Without a bias no reader is inside by the table. An address that is published
//!    all the same is about to be retracted, or belongs to a leaked guard of an earlier lock at this address. In the
//!    second case the writers of this lock would wait for a reader of that one.)
//! 2. A revoker clears the bias, after a scan that began when it was registered and that found no publication.
//! 3. So while the bias is clear, no reader is inside by the table. A writer that holds the underlying lock and has
//!    observed a clear bias keeps it clear, because nobody else can hold that lock to set it.
//! 4. While a reader is inside by the table, no writer is inside. A writer may hold the underlying lock for a moment,
//!    to check the bias; an upgradable reader may hold it beside readers.
//!
//! # Memory ordering
//!
//! - **bias-reader** / **bias-writer**: the two fences above. The reader's is the light side of `prim::barrier` and
//!   costs nothing; the writer's is the heavy side. The inhibition (`inhibit.rs`) bounds how often writers pay it.
//! - **bias-recheck**: a reader that finds the fast path closed retracts. **bias-closed**: it checks for an *open*
//!   path; a bias that is set beside revokers does not let it in. **bias-drain**: the writer waits for readers it
//!   finds.
//! - **bias-set** / **bias-seen**: Release by the reader that sets the bias, Acquire by the fast reader's second check.
//!   The setter holds the underlying lock, so it has observed what writers did before; the fast reader observes it
//!   through the word. Between the two only read-modify-writes change the word, which pass the Release on.
//! - **bias-no-writer**: one compare-exchange from zero sets the bias, so that it fails if there is a revoker.
//! - **bias-off** / **bias-off-checked**, **bias-off-begin**: Release by the revoker that clears the bias, Acquire by a
//!   writer that finds it clear (when it has the underlying lock, or when it registers). The critical sections of the
//!   fast readers that the revoker has waited for happen before that writer's. Here too only read-modify-writes come
//!   between the two.
//! - **bias-checked** (`mod.rs`): a writer that holds the underlying lock checks the bias. The reader that set a bias
//!   held that lock before the writer, so the check cannot miss it.
//! - **bias-withdraw**: a writer that gives up subtracts itself from the revokers.
//! - **bias-unpublished**: a reader that is about to set the bias scans the table for the lock's address. A leaked
//!   publication of an earlier lock was made before this lock was, and so before the scan.
//! - **bias-forget**: the drop of a lock clears its publications that leaked guards left. The next lock at this address
//!   may be biased from birth, and would not scan.
//! - The critical section of a fast reader happens before that of the revoker by the table's **depart**.

use super::inhibit::{self, Inhibition};
use super::policy::{Event, Policy, report, tuning_of};
use super::table::{self, LockAddress, Publication, ReaderRow};
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::barrier;
use prim::clock::Duration;
use std::mem;

/// The bias: readers may be inside by the table.
const BIASED: u32 = 1;

/// The lock is never biased.
const NEVER: u32 = 2;

/// One revoker.
const REVOKER: u32 = 4;

/// Why a reader did not get in by the fast path.
pub(super) enum Missed {
    /// The fast path was closed.
    NotBiased,
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
    /// An [`Inhibition`]. Readers that are about to set the bias, the writer that clears it, and writers that give up
    /// store here, and one may overwrite what another stored. A lost value makes one inhibition longer or shorter, and
    /// does nothing else.
    inhibition: AtomicU32,
}

impl Default for BiasState {
    fn default() -> Self {
        Self::new()
    }
}

impl BiasState {
    prim::const_fn! {
        /// Unbiased, with no readers and no writers.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                inhibition: AtomicU32::new(0),
            }
        }
    }

    prim::const_fn! {
        /// Biased from birth.
        #[must_use]
        pub const fn biased() -> Self {
            Self {
                word: AtomicU32::new(BIASED),
                inhibition: AtomicU32::new(0),
            }
        }
    }

    prim::const_fn! {
        /// Never biased.
        #[must_use]
        pub const fn never() -> Self {
            Self {
                word: AtomicU32::new(NEVER),
                inhibition: AtomicU32::new(Inhibition::NEVER.0),
            }
        }
    }

    #[inline]
    pub(super) fn address(&self) -> LockAddress {
        LockAddress::of(self)
    }

    /// Tries the fast path. A reader that gets a publication is inside until it retracts it.
    #[inline]
    pub fn enter(&self, policy: &impl Policy) -> Option<Publication> {
        // SAFETY: `fast_read` uses the row at once and does not keep it.
        match self.fast_read(|| unsafe { ReaderRow::here() }, policy) {
            Ok(publication) => Some(publication),
            Err(Missed::NotBiased | Missed::SlotBusy) => None,
            Err(Missed::Revoking(publication)) => {
                Self::back_out(publication);
                None
            }
        }
    }

    /// Whether the fast path is open. One load, which orders nothing.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) == BIASED
    }

    /// Tries the fast path: publishes in any slot of a row, and checks whether the path is still open.
    #[inline]
    pub(super) fn fast_read(
        &self,
        row: impl FnOnce() -> ReaderRow,
        policy: &impl Policy,
    ) -> Result<Publication, Missed> {
        if !self.is_open() {
            return Err(Missed::NotBiased);
        }
        let row = row();
        let publication = table::publish(self.address(), row);
        if publication.as_ref().is_none_or(|it| it.is_collision(row)) {
            report(policy, Event::Collision);
        }
        self.recheck(publication.ok_or(Missed::SlotBusy)?, policy)
    }

    /// Tries the fast path where a publication is one store: in the first slot of the running thread's own row. Does
    /// not report a collision.
    #[inline(always)] // It is all that the fast path is.
    pub(super) fn fast_read_by_store(&self, policy: &impl Policy) -> Result<Publication, Missed> {
        if !self.is_open() {
            return Err(Missed::NotBiased);
        }
        let publication = table::publish_by_store(self.address()).ok_or(Missed::SlotBusy)?;
        self.recheck(publication, policy)
    }

    /// Checks that the fast path is still open. If so, the reader that has published is inside.
    #[inline(always)] // Part of the fast path.
    fn recheck(
        &self,
        publication: Publication,
        policy: &impl Policy,
    ) -> Result<Publication, Missed> {
        // [bias-reader] The light side of [bias-writer].
        if prim::intact!("bias-reader") {
            barrier::light();
        }
        // [bias-seen] Acquire: pairs with [bias-set].
        let seen = self.word.load(prim::order!("bias-seen", Ordering::Acquire));
        // [bias-closed]
        let open = if prim::intact!("bias-closed") {
            seen == BIASED
        } else {
            seen & BIASED != 0
        };
        // [bias-recheck]
        if open || !prim::intact!("bias-recheck") {
            report(policy, Event::FastRead);
            return Ok(publication);
        }
        Err(Missed::Revoking(publication))
    }

    #[cold] // A writer has registered in between.
    fn back_out(publication: Publication) {
        // SAFETY: the running thread made this publication just now and has not handed it out, so it still stands.
        unsafe { publication.retract() };
    }

    /// Lets the running thread's next reads of this lock skip the fast path, unless that is open.
    pub(super) fn begin_skipping(&self) {
        if self.is_open() {
            return;
        }
        let inhibition = Inhibition(self.inhibition.load(Ordering::Relaxed));
        inhibit::begin_skipping(self.address(), inhibition);
    }

    /// Sets the bias, if the inhibition has ended and if it can be set. The caller holds the underlying lock as a
    /// reader.
    #[cold] // It reads the clock.
    pub(super) fn maybe_set_bias(&self) {
        if !self.is_clear() {
            return;
        }
        // Relaxed, and a plain store below: the field's documentation says why a lost value does no harm.
        let inhibition = Inhibition(self.inhibition.load(Ordering::Relaxed));
        let now = inhibit::now();
        if !inhibition.permits(now) {
            return;
        }
        let settable = self.is_settable();
        let next = if settable {
            inhibition.biased(now)
        } else {
            inhibition.put_off(now)
        };
        self.inhibition.store(next.0, Ordering::Relaxed);
        if settable {
            self.set();
        }
    }

    /// Sets the bias, if it can be set, also during an inhibition. The caller holds the underlying lock as a reader.
    pub(super) fn set_bias_now(&self) {
        if self.is_clear() && self.is_settable() {
            self.set();
        }
    }

    /// Whether the table is free of this lock's address: only then do writers wait for readers of this lock alone.
    fn is_settable(&self) -> bool {
        // [bias-unpublished]
        !prim::intact!("bias-unpublished") || !table::is_published(self.address())
    }

    fn set(&self) {
        // [bias-set] Release: pairs with [bias-seen].
        let order = prim::order!("bias-set", Ordering::Release);
        // [bias-no-writer]
        if prim::intact!("bias-no-writer") {
            // It fails if the bias is set already, if it is never to be set, or if there is a revoker. In each case
            // there is nothing to do.
            let _ = self
                .word
                .compare_exchange(0, BIASED, order, Ordering::Relaxed);
        } else {
            self.word.store(BIASED, order);
        }
    }

    /// Whether the bias is set. A writer that holds the underlying lock may rely on a clear bias: it stays clear as
    /// long as the writer holds that lock.
    #[inline]
    pub(super) fn is_biased(&self) -> bool {
        // [bias-off-checked] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-checked", Ordering::Acquire);
        self.word.load(order) & BIASED != 0
    }

    /// Whether there is neither a bias nor a revoker. One load, which orders nothing.
    #[inline]
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !NEVER == 0
    }

    /// Whether a reader is inside by the table, or is trying to get in. Scans the table if the bias is set.
    #[inline]
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.is_biased() && table::is_published(self.address())
    }

    /// Registers a writer as a revoker: the fast path is closed until every revoker is inside or has given up.
    ///
    /// If the bias is set this executes the heavy side of the barrier, which takes microseconds.
    pub fn begin_revocation(&self) -> Revocation<'_> {
        // [bias-off-begin] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-off-begin", Ordering::Acquire);
        let before = self.word.fetch_add(REVOKER, order);
        debug_assert!(
            before < u32::MAX - 2 * REVOKER,
            "more than a billion revokers"
        );
        // If the bias is clear there is nobody to wait for: no reader is inside by the table, and none sets a bias
        // beside a revoker.
        let since = (before & BIASED != 0).then(inhibit::now);
        // [bias-writer] The heavy side of [bias-reader].
        if since.is_some() && prim::intact!("bias-writer") {
            barrier::heavy();
        }
        Revocation { bias: self, since }
    }
}

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
        self.inhibition.store(0, Ordering::Relaxed);
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
        inhibit::stop_skipping(self.address());
        // [bias-forget]
        if self.is_biased() && prim::intact!("bias-forget") {
            // SAFETY: `&mut self` is the only reference, so no thread is inside by a publication of this address.
            unsafe { table::forget(self.address()) };
        }
    }
}

/// A writer registered as a revoker. To drop this is to give up.
#[derive(Debug)]
#[must_use = "to drop it is to give up"]
pub struct Revocation<'a> {
    bias: &'a BiasState,
    /// When the writer registered, in nanoseconds, if it found a bias; `None` once the bias is cleared.
    since: Option<u64>,
}

impl Revocation<'_> {
    /// Waits until no reader is inside by the table, and clears the bias; `false` if that takes longer than `wait`
    /// allows. Spins briefly, then sleeps.
    ///
    /// Readers may wait for a writer that holds the underlying lock, and this waits for readers: so the caller does not
    /// hold it, unless new readers are to wait.
    #[must_use]
    pub fn drain(&mut self, wait: Wait, policy: &impl Policy) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        let bias = self.bias;
        // [bias-drain]
        if prim::intact!("bias-drain") && !table::drain(bias.address(), wait) {
            return false;
        }
        self.since = None; // From here on nothing is aborted.
        // [bias-off] Release: pairs with [bias-off-checked] and [bias-off-begin]. Several revokers may clear the bit,
        // so it is not subtracted.
        let order = prim::order!("bias-off", Ordering::Release);
        if bias.word.fetch_and(!BIASED, order) & BIASED != 0 {
            bias.inhibit(since, policy);
        }
        true
    }

    /// Ends the registration of a writer that is inside: it has drained, and holds the underlying lock.
    pub fn finish(self) {
        debug_assert!(self.since.is_none(), "not drained");
        let bias = self.bias;
        mem::forget(self); // Its drop would record an abort.
        bias.word.fetch_sub(REVOKER, Ordering::Relaxed);
    }

    /// Gives up, as a drop does, and reports that to the policy.
    pub fn give_up(self, policy: &impl Policy) {
        if self.since.is_some() {
            report(policy, Event::Withdrawal);
        }
    }
}

impl BiasState {
    /// Begins the inhibition that follows a revocation, which began at `since` and ends now.
    #[cold]
    fn inhibit(&self, since: u64, policy: &impl Policy) {
        let now = inhibit::now();
        let inhibition = Inhibition(self.inhibition.load(Ordering::Relaxed));
        let revoked = inhibition.revoked(since, now, tuning_of(policy));
        self.inhibition
            .store(revoked.inhibition.0, Ordering::Relaxed);
        let took = Duration::from_nanos(now.saturating_sub(since));
        let inhibited = revoked.lasts;
        report(policy, Event::Revocation { took, inhibited });
    }
}

impl Drop for Revocation<'_> {
    fn drop(&mut self) {
        if self.since.is_some() {
            // Relaxed: the field's documentation says why a lost value does no harm.
            let aborted = |inhibition| Some(Inhibition(inhibition).aborted().0);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            _ = self.bias.inhibition.fetch_update(success, failure, aborted);
        }
        // [bias-withdraw]
        if prim::intact!("bias-withdraw") {
            self.bias.word.fetch_sub(REVOKER, Ordering::Relaxed);
        }
    }
}
