//! A biased lock whose releases name neither what they release nor which: C's `pthread_rwlock_unlock`.
//!
//! Its readers are all alike. Each has a *share*: a publication in the table of [`visible`](super::visible) readers,
//! or one of the readers that the underlying lock counts; and whoever leaves takes a share away, not always its own.
//!
//! # Invariants
//!
//! 1. There are as many shares as readers inside and readers on their way in or out. So whoever leaves finds one: a
//!    publication in its own row, where its own is if it has one; else one that the underlying lock counts; else one
//!    anywhere in the table.
//! 2. A share is taken away in one step, that fails if another took it. Nothing is taken away for having been there.
//! 3. While it looks through the table, its share may vanish where it has yet to look, and another's appear where it
//!    has looked. So it looks there as one that has *arrived*, like a writer: nobody enters by the fast path then,
//!    publications only get fewer, and if none is found and none is counted, nobody reads.
//! 4. A reader that is turned away by the table, or refused by the underlying lock, and finds that another took its
//!    share has yet to leave in its place.
//! 5. Who takes its last share away, or was the writer, touches nothing of the lock afterwards: its life may end.
//!
//! # Memory ordering
//!
//! - **leave-closed**: 3. The fences are [`BiasState`]'s.
//! - **bias-owed**, **tokenless-refused**: 4, by the table and by the underlying lock.
//! - **tokenless-checked**: as **bias-checked** in `bravo.rs`.
//! - **tokenless-whose**: a reader whose share is in the table, because another took that which the underlying lock
//!   counted, may find that lock a writer's, which waits for it. Then it finds the bias as well, if it looks after.
//! - The rest is the bias', the table's and the underlying lock's.

use super::bias::{BiasState, Knock};
use super::futex::{FutexRwLock, GiveWay, Preference, ReadersFirst};
use super::policy::{Bias, Policy, ask};
use super::visible::{self, Seat, Slot};
use crate::range::raw::Wait;
use prim::atomic::{Ordering, fence};
use std::cell::Cell;

/// The parts of such a lock, wherever they lie.
///
/// - **Cost**: a biased read is a store to acquire, and two and a compare-exchange to release, which on x86-64 costs little
///   more than a store, on a line of the thread's own. Else as the
///   underlying lock, and a few loads. To release what another thread acquired by the fast path costs as much as a
///   writer's revocation, and takes the bias off if nobody else reads; once that has happened in a process, a release
///   of a biased read is a compare-exchange.
/// - **Fairness** and **recursion**: the underlying lock's. One that gives way to waiting writers holds new readers
///   back also while a writer waits for those in the table.
/// - Not in Rust, where guards carry tokens: [`Bravo`](super::Bravo) is faster and safe.
#[derive(Debug)]
pub struct Tokenless<'a, P: Preference, Q> {
    /// The agreement between fast readers and writers.
    pub bias: &'a BiasState,
    /// The lock of slow readers and of writers.
    pub under: &'a FutexRwLock<P>,
    /// When the lock is biased.
    pub policy: Q,
}

// Passed as a copy: then none has to be in memory but for those who are slow.
impl<P: Preference, Q: Copy> Copy for Tokenless<'_, P, Q> {}

impl<P: Preference, Q: Copy> Clone for Tokenless<'_, P, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Preference, Q: Policy + Copy> Tokenless<'_, P, Q> {
    /// Enters by the fast path, if that is open.
    ///
    /// # Safety
    /// All readers of this lock leave by [`leave_shared`](Self::leave_shared), and the seat is this thread's.
    #[inline(always)] // It is all that the fast path is.
    #[must_use]
    pub unsafe fn read_fast(self, seat: impl Fn() -> Seat) -> bool {
        if !self.bias.is_open() {
            return false;
        }
        match self.bias.knock(seat(), &self.policy) {
            Knock::Entered(_) => true,
            Knock::Full => false,
            Knock::TurnedAway(slot) => {
                self.turned_away(slot, seat);
                false
            }
        }
    }

    #[cold] // A writer has arrived in between.
    fn turned_away(self, slot: Slot, seat: impl Fn() -> Seat) {
        if !slot.retract_if_untaken(self.bias.address()) && prim::intact!("bias-owed") {
            // SAFETY: a reader that is not inside has a share.
            let left = unsafe { self.leave_shared(seat) };
            debug_assert!(left, "a share is missing");
        }
    }

    /// Enters by the underlying lock, where that is possible at once. Only for one that would wait: where it is not
    /// possible, others may find the lock held for a moment.
    #[inline(always)]
    #[must_use]
    pub fn read_at_once(self) -> bool {
        self.under.enter_shared(|| self.refused()).is_ok()
    }

    /// Enters by the underlying lock; `false` if that takes longer than `wait` allows.
    #[must_use]
    pub fn read_slowly(self, wait: Wait) -> bool {
        self.under.read_or_leave(wait, || self.refused()).is_some()
    }

    #[cold] // A writer was faster.
    fn refused(self) {
        // [tokenless-refused]
        let left = self.under.leave_refused()
            || prim::intact!("tokenless-refused") && self.leave_elsewhere();
        debug_assert!(left, "a share is missing");
    }

    /// A reader that entered by the underlying lock, and holds that, considers to set the bias. Not for every reader, as
    /// it costs a look at the clock.
    ///
    /// # Safety
    /// The caller reads, and has not left since it entered by [`read_at_once`](Self::read_at_once) or
    /// [`read_slowly`](Self::read_slowly): else a writer may be inside, and readers would enter beside it by the bias.
    pub unsafe fn consider_bias(self) {
        if !self.bias.is_clear() {
            return;
        }
        match ask(&self.policy).bias {
            Bias::Off => {}
            Bias::Adaptive => self.bias.consider(),
            Bias::Eager => self.bias.set_at_once(),
        }
    }

    /// A reader that entered by the underlying lock goes over to the table, if the fast path is open.
    ///
    /// # Safety
    /// As for [`read_fast`](Self::read_fast); and the caller reads, as for [`consider_bias`](Self::consider_bias).
    #[cold]
    pub unsafe fn go_over(self, seat: impl Fn() -> Seat) {
        // SAFETY: the caller's.
        if unsafe { self.read_fast(seat) } {
            let left = self.under.leave_any() || self.leave_elsewhere();
            debug_assert!(left, "a share is missing");
        }
    }

    /// Enters as a writer, where that is possible at once.
    #[inline(always)]
    #[must_use]
    pub fn write_at_once(self) -> bool {
        !self.bias.is_biased() && self.write_unless_biased(Wait::Never).unwrap_or(false)
    }

    /// Enters as a writer by the underlying lock; `false` if that takes longer than `wait` allows, and nothing if
    /// there is more to it.
    #[inline(always)]
    fn write_unless_biased(self, wait: Wait) -> Option<bool> {
        if self.under.write(wait).is_none() {
            return Some(false);
        }
        // [tokenless-checked] A slow reader may have set the bias meanwhile.
        if !self.bias.is_biased() || !prim::intact!("tokenless-checked") {
            return Some(true);
        }
        self.give_back();
        None
    }

    /// Enters as a writer; `false` if that takes longer than `wait` allows.
    #[cold] // A bias, or somebody inside.
    #[must_use]
    pub fn write_contended(self, wait: Wait) -> bool {
        // Who would not wait leaves readers their bias.
        if wait == Wait::Never
            && (self.bias.is_read() || lock_api::RawRwLock::is_locked(self.under))
        {
            return false;
        }
        // There is nothing to revoke: if that stays so, nobody needs to know. But where nobody may overtake, no bias
        // may be set meanwhile.
        if P::GIVE_WAY == GiveWay::ToHoldersOnly
            && !self.bias.is_biased()
            && let Some(entered) = self.write_unless_biased(wait)
        {
            return entered;
        }
        let mut arrival = self.bias.arrive();
        let entered = match P::GIVE_WAY {
            // The table first: so readers who come get in meanwhile, and one that reads twice waits for nobody.
            GiveWay::ToHoldersOnly => {
                arrival.drain(wait, &self.policy) && self.under.write(wait).is_some()
            }
            // The lock first: so nobody overtakes.
            GiveWay::ToWaitingWriters => {
                self.under.write(wait).is_some() && {
                    let drained = arrival.drain(wait, &self.policy);
                    if !drained {
                        self.give_back();
                    }
                    drained
                }
            }
        };
        if entered {
            arrival.enter();
        }
        entered
    }

    /// Whether a reader may be inside by the fast path. Then no writer is.
    #[inline]
    #[must_use]
    pub fn is_biased(self) -> bool {
        self.bias.is_biased()
    }

    /// Whether the caller, who is inside, is the writer.
    #[inline]
    #[must_use]
    pub fn is_writers(self) -> bool {
        if !lock_api::RawRwLock::is_locked_exclusive(self.under) {
            return false;
        }
        // [tokenless-whose] Acquire: pairs with the Release of whoever took the caller's count away.
        fence(Ordering::Acquire);
        !self.bias.is_biased() || !prim::intact!("tokenless-whose")
    }

    /// The writer leaves.
    ///
    /// # Safety
    /// The caller is the writer: it entered by [`write_at_once`](Self::write_at_once) or
    /// [`write_contended`](Self::write_contended), and has not left since.
    #[inline]
    pub unsafe fn leave_exclusive(self) {
        self.give_back();
    }

    fn give_back(self) {
        let left = self.under.leave_written();
        debug_assert!(left, "a write lock was released twice");
    }

    /// A reader leaves, if its thread has a publication where nobody else clears it; else it has yet to leave by
    /// [`leave_shared`](Self::leave_shared). In vain where [`is_biased`](Self::is_biased) says no: who got in by the table
    /// has seen the bias on, and it stays on while anybody is inside by it.
    ///
    /// # Safety
    /// The seat is this thread's, and the caller leaves for a reader, once, as for [`leave_shared`](Self::leave_shared).
    #[inline(always)] // It is all that the fast path is.
    #[must_use]
    pub unsafe fn leave_fast(self, seat: impl Fn() -> Seat) -> bool {
        seat().retract_alone(self.bias.address())
    }

    /// A reader leaves; `false` if nobody reads: then nothing was done.
    ///
    /// # Safety
    /// The seat is this thread's. And the caller reads, or leaves for a reader that will not; or else nobody reads. One
    /// that takes away another's share has a writer enter beside that one.
    #[inline(always)]
    #[must_use]
    pub unsafe fn leave_shared(self, seat: impl Fn() -> Seat) -> bool {
        self.bias.is_biased() && seat().retract(self.bias.address())
            || self.under.leave_any()
            || self.leave_elsewhere()
    }

    /// A reader leaves that the underlying lock counts, if nobody is to be woken for that; else it has yet to leave by
    /// [`leave_shared`](Self::leave_shared).
    ///
    /// # Safety
    /// The caller leaves for a reader, once, as for [`leave_shared`](Self::leave_shared).
    #[inline(always)]
    #[must_use]
    pub unsafe fn leave_slowly(self) -> bool {
        self.under.leave_any_unnoticed()
    }

    #[cold] // Another thread's reader leaves.
    fn leave_elsewhere(self) -> bool {
        visible::become_stranger();
        let address = self.bias.address();
        // Shares to take away. While there is one the lock lives, so the last is taken away last.
        let owed = Cell::new(1);
        let take = || owed.set(owed.get() - 1);
        let owe = || owed.set(owed.get() + 1);
        while owed.get() > 0 {
            if self.under.leave_any() {
                take();
                continue;
            }
            // [leave-closed]
            let arrival = prim::intact!("leave-closed").then(|| self.bias.arrive());
            let Some(slot) = address.published() else {
                if self.under.is_read() {
                    continue; // Counted since.
                }
                return false;
            };
            // Counted, as every reader may be, it is inside while it takes the bias off.
            let under = self.under.preferring::<ReadersFirst>();
            let refused = || {
                if !under.leave_refused() {
                    owe();
                }
            };
            if under.read_or_leave(Wait::Never, refused).is_some() {
                owe();
                if slot.retract_if_untaken(address) {
                    take();
                    if let Some(mut arrival) = arrival {
                        // Others may read by the fast path: then it stays.
                        let _ = arrival.drain(Wait::Never, &self.policy);
                    }
                }
                continue;
            }
            // A writer is about to take it off, or has taken the lock to look.
            drop(arrival);
            if slot.retract_if_untaken(address) {
                take();
            }
        }
        true
    }
}
