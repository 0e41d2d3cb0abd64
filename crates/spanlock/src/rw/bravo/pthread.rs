//! A biased lock whose releases do not name what they release: the lock of the preload library.
//!
//! C's `pthread_rwlock_unlock` is given the lock and nothing else. It does not say whether a reader or the writer
//! leaves, whether the reader came by the table or by the underlying lock, and which thread acquired what is released.
//! So the readers of such a lock are interchangeable. Each has one *hold*, which is a publication in the table or one
//! in the underlying lock's count of readers. A release takes one hold away, not always the one that its caller
//! acquired:
//!
//! ```text
//!                        holds of one lock
//!            +------------------------+-------------------+
//!            | publications           | readers counted   |
//!            | in the table           | in the futex lock |
//!            +------------------------+-------------------+
//!   fast read   adds one    ^                      ^   adds one   slow read
//!                           |                      |
//!   release   1. takes one from the caller's own row, if the bias is set;
//!             2. else takes one from the count, if a reader is counted;
//!             3. else makes a foreign unlock: takes one from any row.
//! ```
//!
//! Step 3 closes the fast path first, as a writer does. While it scans, its own hold might vanish from a slot that it
//! has yet to check, and another hold appear in a slot that it has checked. With the fast path closed publications only
//! get fewer, so a hold that the scan does not find is not there.
//!
//! A reader that published or counted itself, and then finds a writer in its way, has to back out. If a foreign unlock
//! took its hold meanwhile, it *owes* a release: it takes a hold away in the place of the thread that released.
//!
//! # Invariants
//!
//! 1. There are as many holds as there are readers inside and readers on their way in or out. So each release finds
//!    one.
//! 2. A hold is taken away by one compare-exchange, which fails if another release took it. To have observed a hold is
//!    never enough to take it away.
//! 3. While step 3 scans, the fast path is closed. If it finds no publication and the count is zero, nobody reads.
//! 4. A reader that backs out and finds its hold gone makes a release instead.
//! 5. A release that takes the last hold, or the writer's, touches nothing of the lock afterwards: another thread may
//!    end the lock's life.
//!
//! # Memory ordering
//!
//! - **pthread-closed**: step 3 closes the fast path (invariant 3). The fences are those of [`BiasState`].
//! - **pthread-owed-table**, **pthread-owed-futex**: invariant 4, for a publication and for a count.
//! - **pthread-checked**: the writer's check of the bias, as **bias-checked** in `mod.rs`.
//! - **pthread-is-writer**: a reader that was counted may have its hold in the table, because another release took the
//!   count. A writer may then have entered the underlying lock, and wait for that publication. The release must not
//!   take its caller for the writer. While the publication stands the bias is set; so it checks the bias after the
//!   underlying lock.
//! - **pthread-was-writer**: the two loads of that check may be on either side of a writer that only checks the
//!   underlying lock and then ends the bias. So the caller is the writer only if the step that takes its hold finds
//!   one.
//! - The table, the bias and the underlying lock (`futex/anonymous.rs`) have the other edges.

use super::bias::BiasState;
use super::options::{Policy, bias_of};
use super::state::Word;
use super::table::{self, Publication, ReaderRow};
use crate::rw::futex::{FutexRwLock, GiveWay, Preference, ReadersFirst};
use crate::wait::Wait;
use prim::atomic::{Ordering, fence};
use std::cell::Cell;

/// A biased lock whose releases do not name what they release, put together from parts that lie anywhere.
///
/// - **Cost**: a biased read is one store to acquire, and two stores and a compare-exchange to release, all on a line
///   of the thread's own. On x86-64 that compare-exchange locks nothing and costs little more than a store. Other
///   acquisitions cost as much as the underlying lock's, and a few loads. To release what another thread acquired by
///   the table costs as much as a writer's revocation, and clears the bias if nobody else reads. Once that has happened
///   in a process, each release of a biased read is a locked compare-exchange.
/// - **Fairness** and **recursion**: the underlying lock's. If that gives way to waiting writers, new readers also wait
///   for a writer that waits for readers in the table.
/// - **Not for Rust**, where guards carry tokens: [`Bravo`](super::Bravo) is faster and safe.
#[derive(Debug)]
pub struct AnonymousUnlock<'a, P: Preference, Q> {
    /// The bias.
    pub bias: &'a BiasState,
    /// The underlying lock: that of slow readers and of writers.
    pub under: &'a FutexRwLock<P>,
    /// When the lock is biased.
    pub policy: Q,
}

// It is passed as a copy, so that the fast path has no need of it in memory.
impl<P: Preference, Q: Copy> Copy for AnonymousUnlock<'_, P, Q> {}

impl<P: Preference, Q: Copy> Clone for AnonymousUnlock<'_, P, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Preference, Q: Policy + Copy> AnonymousUnlock<'_, P, Q> {
    /// Enters by the table, if the fast path is open, the bias is free, and the first slot of the row too.
    ///
    /// # Safety
    /// All readers of this lock leave by [`leave_shared`](Self::leave_shared), and the row is this thread's.
    #[inline(always)] // It is all that the fast path is.
    #[must_use]
    pub unsafe fn read_fast(self, row: impl Fn() -> ReaderRow) -> bool {
        let back_out = |publication| self.back_out_of_table(publication, &row);
        let entered = self
            .bias
            .read_by_store(|| Some(row()), &self.policy, back_out);
        entered.is_some()
    }

    /// Enters by the table, whatever the grade of the bias, if the fast path is open.
    ///
    /// # Safety
    /// As for [`read_fast`](Self::read_fast).
    #[must_use]
    pub unsafe fn read_by_any_grade(self, row: impl Fn() -> ReaderRow) -> bool {
        let back_out = |publication| self.back_out_of_table(publication, &row);
        let entered = self.bias.read(Wait::Never, &row, &self.policy, back_out);
        entered.is_some()
    }

    /// Makes the bias free, if it has lived long. For a reader inside by the table, and not for each one, because it
    /// reads the clock.
    pub fn free_if_old(self) {
        self.bias.free_if_old();
    }

    #[cold] // A writer has arrived in between.
    fn back_out_of_table(self, publication: Publication, row: impl Fn() -> ReaderRow) {
        // [pthread-owed-table]
        if !publication.retract_if_untaken(self.bias.path.address())
            && prim::intact!("pthread-owed-table")
        {
            // SAFETY: this reader is not inside, and a foreign unlock took its hold for another's: so there is a hold
            // too many, which this call takes away. The row is this thread's, as the caller of `read_fast` promises.
            let left = unsafe { self.leave_shared(row) };
            debug_assert!(left, "a hold is missing");
        }
    }

    /// Enters by the underlying lock, if that is possible at once. Only for a reader that would wait otherwise: if it
    /// is not possible, others may find the lock held for a moment.
    #[inline(always)]
    #[must_use]
    pub fn read_at_once(self) -> bool {
        self.under.enter_shared(|| self.back_out_of_count()).is_ok()
    }

    /// Enters by the underlying lock; `false` if that takes longer than `wait` allows.
    #[must_use]
    pub fn read_slowly(self, wait: Wait) -> bool {
        self.under
            .read_or_back_out(wait, || self.back_out_of_count())
            .is_some()
    }

    #[cold] // A writer was faster.
    fn back_out_of_count(self) {
        // [pthread-owed-futex]
        let left = self.under.back_out_any()
            || prim::intact!("pthread-owed-futex") && self.unlock_foreign();
        debug_assert!(left, "a hold is missing");
    }

    /// Whether readers may enter by the table. One load, which orders nothing.
    #[inline(always)]
    #[must_use]
    pub fn is_open(self) -> bool {
        self.bias.is_open()
    }

    /// Whether a reader that has entered by the underlying lock is to call [`maybe_set_bias`](Self::maybe_set_bias)
    /// whatever the time: the bias is kept, and no writer is there that would open the path again.
    #[inline(always)]
    #[must_use]
    pub fn is_left_kept(self) -> bool {
        self.bias.path.word() == Word::KEPT
    }

    /// Sets the bias if the policy allows it. For a reader that has entered by the underlying lock in `latency`
    /// nanoseconds, if that is known, and not for each one, because it reads the clock.
    ///
    /// # Safety
    /// The caller has entered by [`read_at_once`](Self::read_at_once) or [`read_slowly`](Self::read_slowly) and has not
    /// left since. Otherwise a writer may be inside, and readers would enter beside it by the bias.
    pub unsafe fn maybe_set_bias(self, latency: Option<u64>) {
        // Its answer is for hints, which this lock does without: they would need a thread-local of Rust's.
        let _ = self.bias.maybe_open(bias_of(&self.policy), latency);
    }

    /// Moves the hold of a reader that entered by the underlying lock to the table, if the fast path is open.
    ///
    /// # Safety
    /// As for [`read_fast`](Self::read_fast); and the caller is inside, as for
    /// [`maybe_set_bias`](Self::maybe_set_bias).
    #[cold]
    pub unsafe fn move_to_table(self, row: impl Fn() -> ReaderRow) {
        // SAFETY: the caller promises what `read_fast` asks for.
        if unsafe { self.read_by_any_grade(row) } {
            let left = self.under.leave_any() || self.unlock_foreign();
            debug_assert!(left, "a hold is missing");
        }
    }

    /// Enters as a writer, if that is possible at once.
    #[inline(always)]
    #[must_use]
    pub fn write_at_once(self) -> bool {
        !self.bias.path.is_biased() && self.write_unless_biased(Wait::Never).unwrap_or(false)
    }

    /// Enters as a writer by the underlying lock; `Some(false)` if that takes longer than `wait` allows, and `None` if
    /// there is a bias to revoke.
    #[inline(always)]
    fn write_unless_biased(self, wait: Wait) -> Option<bool> {
        if self.under.write(wait).is_none() {
            return Some(false);
        }
        // [pthread-checked] A slow reader may have set the bias meanwhile.
        if !self.bias.path.is_biased() || !prim::intact!("pthread-checked") {
            return Some(true);
        }
        self.give_back();
        None
    }

    /// Enters as a writer; `false` if that takes longer than `wait` allows.
    #[cold] // There is a bias, or another thread is inside.
    #[must_use]
    pub fn write_contended(self, wait: Wait) -> bool {
        // A try that would fail leaves the readers their bias.
        if wait == Wait::Never
            && (self.bias.is_read() || lock_api::RawRwLock::is_locked(self.under))
        {
            return false;
        }
        // Without a bias the writer need not register. But if readers are to give way to it, none may set the bias
        // while it waits, so it registers then.
        if P::GIVE_WAY == GiveWay::ToHoldersOnly
            && !self.bias.path.is_biased()
            && let Some(entered) = self.write_unless_biased(wait)
        {
            return entered;
        }
        let revocation = self.bias.arrive(&self.policy);
        // A writer that is inside takes its arrival off, too: it will not be known when it leaves.
        match P::GIVE_WAY {
            // The table first: meanwhile new readers enter by the underlying lock, and a thread that reads twice waits
            // for nobody.
            GiveWay::ToHoldersOnly => {
                revocation.drain(wait, &self.policy) && self.under.write(wait).is_some()
            }
            // The underlying lock first: no reader overtakes the writer.
            GiveWay::ToWaitingWriters => {
                self.under.write(wait).is_some() && {
                    let drained = revocation.drain(wait, &self.policy);
                    if !drained {
                        self.give_back();
                    }
                    drained
                }
            }
        }
    }

    /// Whether a reader may be inside by the table. If so, no writer is inside.
    #[inline]
    #[must_use]
    pub fn is_biased(self) -> bool {
        self.bias.path.is_biased()
    }

    /// Whether the caller, which is inside, is the writer.
    #[inline]
    #[must_use]
    pub fn is_writers(self) -> bool {
        if !lock_api::RawRwLock::is_locked_exclusive(self.under) {
            return false;
        }
        // [pthread-is-writer] Acquire: pairs with the Release of the foreign unlock that took the caller's count away.
        fence(Ordering::Acquire);
        !self.bias.path.is_biased() || !prim::intact!("pthread-is-writer")
    }

    /// The writer leaves; `false` if no writer is inside, and then nothing was done.
    ///
    /// It may be one though [`is_writers`](Self::is_writers) has just said otherwise: its two loads may be on either
    /// side of a writer that takes the underlying lock, finds the bias, gives the lock back and ends the bias, while
    /// the caller's hold was exchanged for one that is counted. Then the caller is a reader.
    ///
    /// # Safety
    /// [`is_writers`](Self::is_writers) said that the caller, which is inside, is the writer.
    #[inline]
    #[must_use]
    pub unsafe fn leave_exclusive(self) -> bool {
        // [pthread-was-writer]
        self.under.leave_written() || !prim::intact!("pthread-was-writer")
    }

    fn give_back(self) {
        let left = self.under.leave_written();
        debug_assert!(left, "a write lock was released twice");
    }

    /// A reader leaves by the publication in the first slot of its own row, without a locked instruction; `false` if
    /// there is none: then the caller has yet to leave by [`leave_shared`](Self::leave_shared).
    ///
    /// It finds nothing where [`is_biased`](Self::is_biased) says no: a reader inside by the table has observed the
    /// bias, which stays set while it is inside.
    ///
    /// # Safety
    /// The row is this thread's, and the caller leaves for a reader, once, as for [`leave_shared`](Self::leave_shared).
    #[inline(always)] // It is all that the fast path is.
    #[must_use]
    pub unsafe fn leave_fast(self, row: impl Fn() -> ReaderRow) -> bool {
        row().retract_by_owner(self.bias.path.address())
    }

    /// A reader leaves; `false` if nobody reads, and then nothing was done.
    ///
    /// # Safety
    /// The row is this thread's. And one of three holds: the caller reads; or it leaves for a reader that will not; or
    /// nobody reads. Otherwise it takes away a hold that its reader still needs, and a writer enters beside that
    /// reader.
    #[inline(always)]
    #[must_use]
    pub unsafe fn leave_shared(self, row: impl Fn() -> ReaderRow) -> bool {
        self.bias.path.is_biased() && row().retract(self.bias.path.address())
            || self.under.leave_any()
            || self.unlock_foreign()
    }

    /// A reader leaves by the underlying lock's count, if nobody is to be woken for that; `false` if it did not: then
    /// the caller has yet to leave by [`leave_shared`](Self::leave_shared).
    ///
    /// # Safety
    /// The caller leaves for a reader, once, as for [`leave_shared`](Self::leave_shared).
    #[inline(always)]
    #[must_use]
    pub unsafe fn leave_slowly(self) -> bool {
        self.under.leave_any_if_unawaited()
    }

    /// Takes away a hold that any thread acquired; `false` if there is none.
    #[cold] // Another thread's reader leaves.
    fn unlock_foreign(self) -> bool {
        table::enable_foreign_unlocks();
        let address = self.bias.path.address();
        // Holds to take away. While there is one the lock lives, so the last is taken away last.
        let owed = Cell::new(1);
        let take = || owed.set(owed.get() - 1);
        let owe = || owed.set(owed.get() + 1);
        while owed.get() > 0 {
            if self.under.leave_any() {
                take();
                continue;
            }
            // [pthread-closed]
            let revocation =
                prim::intact!("pthread-closed").then(|| self.bias.arrive(&self.policy));
            let Some(publication) = address.published() else {
                if self.under.is_read() {
                    continue; // A reader has been counted since.
                }
                return false;
            };
            // To clear the bias it has to be inside: it counts itself in, which any reader may do.
            let under = self.under.preferring::<ReadersFirst>();
            let back_out = || {
                if !under.back_out_any() {
                    owe();
                }
            };
            if under.read_or_back_out(Wait::Never, back_out).is_some() {
                owe();
                if publication.retract_if_untaken(address) {
                    take();
                    if let Some(revocation) = revocation {
                        // If others read by the table this fails, and the bias stays.
                        let _ = revocation.drain(Wait::Never, &self.policy);
                    }
                }
                continue;
            }
            // A writer is about to clear the bias, or holds the underlying lock to check it.
            drop(revocation);
            if publication.retract_if_untaken(address) {
                take();
            }
        }
        true
    }
}
