//! The agreement between the fast readers of a lock and its writers: BRAVO (P2, ATC 2019, §3), mended.
//!
//! One word says whether the lock is *biased*, and how many writers have *arrived*: are waiting to get in and have
//! said so. The fast path is *open* while it is biased and no writer has arrived. So a writer closes it by arriving,
//! and opens it again by giving up: there is nothing to roll back.
//!
//! A reader publishes itself in the table of [`visible`] readers, fences, and looks whether the fast path is open. A
//! writer that arrives at a biased lock fences, waits until nobody is visible, and takes the bias off; *then* it goes
//! for the underlying lock. Meanwhile readers go by that, which no writer that waits for fast readers holds.
//!
//! A writer goes for the underlying lock at once and looks when it has that: if there is a bias, it lets go, and arrives.
//! That may cost it its place in a queue, once; where biases are rare it costs a look.
//!
//! # Invariants
//!
//! 1. The bias is set by readers who hold the underlying lock, while no writer has arrived, and where the lock's address
//!    is not published. Without a bias nobody is inside by the table, so what is found there then is about to be
//!    retracted, or was left by a guard that was leaked, of a lock that was at this address before: writers of this lock
//!    would wait for that one.
//! 2. It is taken off by one that has arrived and has found nobody visible since.
//! 3. So: if the lock is not biased, no reader is inside by the fast path; and while a writer holds the underlying
//!    lock, that stays so.
//! 4. While a reader is inside by the fast path, no writer holds the underlying lock but to look and let go. (One that
//!    is an upgradable reader so far holds it beside readers.)
//!
//! # Memory ordering
//!
//! - **bias-reader** / **bias-writer** (store, fence, look on both sides): publish and look whether the path is open;
//!   arrive and look who is visible. Of the two fences one is first; who fences second sees the other. Whoever is
//!   seen and not gone decides: the reader retracts (**bias-recheck**), or the writer waits (**bias-drain**). The
//!   reader's fence is free and the writer's dear (`prim::barrier`): what a revocation costs is bounded by the pace.
//! - **bias-closed**: the look is for *open*, not for *biased*.
//! - **bias-set** / **bias-seen**: Release by the reader who sets the bias, Acquire by the look: what writers did
//!   before, which the setter knows by the underlying lock. Arrivals and withdrawals between them are
//!   read-modify-writes and keep it.
//! - **bias-arrived**: a bias is set where no writer has arrived, in one step.
//! - **bias-off** / **bias-none**: Release by whoever takes the bias off, Acquire by who finds none: what fast readers
//!   did, who are gone, and that a writer which only looked has let go. All that is done to the word in between are
//!   read-modify-writes.
//! - **bias-checked**: a writer that got the underlying lock without having arrived looks at the word, and at nothing
//!   else. Whoever set a bias held that lock before, so the look is no older than that.
//! - **bias-withdraw**: a writer that gives up takes its arrival back.
//! - **bias-unpublished**: who sets a bias looks for the lock's address in the table first. What a lock that is gone left
//!   there was published before this lock was made, and so before the look.
//! - **bias-forget**: a lock that is dropped where it was used clears what leaked guards left in the table: the next lock
//!   there may be biased from birth. Only a lock that comes to an address with a bias relies on that.
//! - The fast readers' critical sections are before the writer's by the table's **depart**.

use super::pace::{self, Pace};
use super::policy::{Event, Policy, ask, tell};
use super::visible::{self, LockAddress, Seat, Slot};
use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::barrier;
use prim::clock::Duration;
use std::mem;

/// Readers may be inside by the fast path.
const BIASED: u32 = 1;

/// They never will be.
const NEVER: u32 = 2;

/// One writer that has arrived.
const WRITER: u32 = 4;

/// How a try of the fast path ends.
pub(super) enum Knock {
    /// Inside.
    Entered(Slot),
    /// There is no slot free.
    Full,
    /// A writer has arrived: published all the same.
    TurnedAway(Slot),
}

/// Why a reader is not inside by the fast path at once.
pub(super) enum Missed {
    /// The path was not open.
    Closed,
    /// The thread has no place of its own, or holds another lock there: there may be another place.
    Displaced,
    /// A writer has arrived: published all the same.
    TurnedAway(Slot),
}

/// What a biased lock needs beside the underlying lock: 8 bytes, zero when unbiased. It is known to the table by its
/// address, so it must not move while somebody reads.
#[derive(Debug)]
pub struct BiasState {
    word: AtomicU32,
    /// A [`Pace`]. Written by readers who are about to set the bias, by the writer that takes it off and by those who give
    /// up: it is as well if what one writes is lost.
    pace: AtomicU32,
}

impl Default for BiasState {
    fn default() -> Self {
        Self::new()
    }
}

impl BiasState {
    prim::const_fn! {
        /// No bias, and nobody there.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                pace: AtomicU32::new(0),
            }
        }
    }

    prim::const_fn! {
        /// Biased from birth.
        #[must_use]
        pub const fn biased() -> Self {
            Self {
                word: AtomicU32::new(BIASED),
                pace: AtomicU32::new(0),
            }
        }
    }

    prim::const_fn! {
        /// Never biased, and so without a use for arrivals.
        #[must_use]
        pub const fn never() -> Self {
            Self {
                word: AtomicU32::new(NEVER),
                pace: AtomicU32::new(Pace::NEVER.0),
            }
        }
    }

    #[inline]
    pub(super) fn address(&self) -> LockAddress {
        LockAddress::of(self)
    }

    /// Tries the fast path. Whoever gets a slot is inside until it retracts it.
    #[inline]
    pub fn enter(&self, policy: &impl Policy) -> Option<Slot> {
        if !self.is_open() {
            return None;
        }
        // SAFETY: used at once.
        match self.knock(unsafe { Seat::here() }, policy) {
            Knock::Entered(slot) => Some(slot),
            Knock::Full => None,
            Knock::TurnedAway(slot) => {
                Self::turned_away(slot);
                None
            }
        }
    }

    /// Whether the fast path is open, at a glance.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) == BIASED
    }

    /// Publishes, and looks whether that lets it in.
    #[inline]
    pub(super) fn knock(&self, seat: Seat, policy: &impl Policy) -> Knock {
        let slot = visible::publish(self.address(), seat);
        if slot.as_ref().is_none_or(|slot| slot.is_collision(seat)) {
            tell(policy, Event::Collision);
        }
        let Some(slot) = slot else {
            return Knock::Full;
        };
        self.look_again(slot, policy)
            .map_or_else(Knock::TurnedAway, Knock::Entered)
    }

    /// Tries the fast path for the running thread, where to publish is one store. The policy is not told if it misses.
    #[inline(always)] // It is all that the fast path is.
    pub(super) fn enter_at_once(&self, policy: &impl Policy) -> Result<Slot, Missed> {
        if !self.is_open() {
            return Err(Missed::Closed);
        }
        let slot = visible::publish_at_once(self.address()).ok_or(Missed::Displaced)?;
        self.look_again(slot, policy).map_err(Missed::TurnedAway)
    }

    /// Looks whether who has published is inside.
    #[inline(always)] // As above.
    fn look_again(&self, slot: Slot, policy: &impl Policy) -> Result<Slot, Slot> {
        // [bias-reader]
        if prim::intact!("bias-reader") {
            barrier::light();
        }
        // [bias-seen] Acquire: pairs with [bias-set].
        let seen = self.word.load(prim::order!("bias-seen", Ordering::Acquire));
        let open = if prim::intact!("bias-closed") {
            seen == BIASED
        } else {
            seen & BIASED != 0
        };
        if open || !prim::intact!("bias-recheck") {
            tell(policy, Event::FastRead);
            return Ok(slot);
        }
        Err(slot)
    }

    #[cold] // A writer has arrived in between.
    fn turned_away(slot: Slot) {
        // SAFETY: published just now, by a reader who will have a token.
        unsafe { slot.retract() };
    }

    /// This thread's next reads are slow ones without a look, unless the fast path is open.
    pub(super) fn begin_detour(&self) {
        if self.is_open() {
            return;
        }
        let pace = Pace(self.pace.load(Ordering::Relaxed));
        pace::begin_detour(self.address(), pace);
    }

    #[cold]
    pub(super) fn consider(&self) {
        if !self.is_clear() {
            return;
        }
        // Relaxed: readers write alike, and it is as well if what a writer writes meanwhile is lost.
        let pace = Pace(self.pace.load(Ordering::Relaxed));
        let now = pace::now();
        if !pace.permits(now) {
            return;
        }
        let settable = self.is_settable();
        let next = if settable {
            pace.biased(now)
        } else {
            pace.put_off(now)
        };
        self.pace.store(next.0, Ordering::Relaxed);
        if settable {
            self.set();
        }
    }

    /// Sets the bias, whatever the pace, if one can be set.
    pub(super) fn set_at_once(&self) {
        if self.is_clear() && self.is_settable() {
            self.set();
        }
    }

    /// Whether writers would wait for nobody but readers of this lock.
    fn is_settable(&self) -> bool {
        // [bias-unpublished]
        !prim::intact!("bias-unpublished") || !visible::is_published(self.address())
    }

    fn set(&self) {
        // [bias-set] Release: pairs with [bias-seen].
        let order = prim::order!("bias-set", Ordering::Release);
        if prim::intact!("bias-arrived") {
            // It fails where the bias is set already, or never to be, or a writer has arrived: well.
            let _ = self
                .word
                .compare_exchange(0, BIASED, order, Ordering::Relaxed);
        } else {
            self.word.store(BIASED, order);
        }
    }

    /// Whether a reader may be inside by the fast path. That none is can be relied on by a writer that holds the
    /// underlying lock: then it stays so.
    #[inline]
    pub(super) fn is_biased(&self) -> bool {
        // [bias-none] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-checked-none", Ordering::Acquire);
        self.word.load(order) & BIASED != 0
    }

    /// Whether no reader is inside by the fast path and no writer has arrived, at a glance.
    #[inline]
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !NEVER == 0
    }

    /// Whether a reader is inside by the fast path, or just trying it.
    #[inline]
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.is_biased() && visible::is_published(self.address())
    }

    /// A writer arrives: the fast path is closed until all that have arrived are inside or gone.
    pub fn arrive(&self) -> Arrival<'_> {
        // [bias-none] Acquire: pairs with [bias-off].
        let order = prim::order!("bias-arrived-none", Ordering::Acquire);
        let before = self.word.fetch_add(WRITER, order);
        debug_assert!(
            before < u32::MAX - 2 * WRITER,
            "more than half a billion writers"
        );
        // Without a bias no reader is visible, and none is set any more.
        let since = (before & BIASED != 0).then(pace::now);
        // [bias-writer]
        if since.is_some() && prim::intact!("bias-writer") {
            barrier::heavy();
        }
        Arrival { bias: self, since }
    }
}

impl BiasState {
    /// No bias, and nobody there, whatever the memory held: for a lock that begins its life without being made by
    /// [`new`](Self::new).
    ///
    /// What readers of another lock at this address left in the table, having leaked their guards, stays: this lock is
    /// not biased as long as it does.
    ///
    /// # Safety
    /// The lock begins its life, and nobody else uses it.
    pub unsafe fn begin(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.pace.store(0, Ordering::Relaxed);
    }

    /// Forgets readers, writers and the bias. Costs a scan of the table.
    ///
    /// # Safety
    /// The lock ends its life, and nobody else uses it.
    pub unsafe fn reset(&self) {
        // SAFETY: the caller's.
        unsafe { visible::forget(self.address()) };
        // SAFETY: the caller's: another life begins.
        unsafe { self.begin() };
    }
}

impl Drop for BiasState {
    /// Forgets readers whose guards were leaked, unless the lock was moved since.
    fn drop(&mut self) {
        pace::end_detour_of(self.address());
        if self.is_biased() && prim::intact!("bias-forget") {
            // SAFETY: nobody else has this lock, nor ever will.
            unsafe { visible::forget(self.address()) };
        }
    }
}

/// A writer that has arrived. Dropped, it has given up.
#[derive(Debug)]
#[must_use = "dropped, it has given up"]
pub struct Arrival<'a> {
    bias: &'a BiasState,
    /// When it began to revoke, if it found a bias, and until that is done.
    since: Option<u64>,
}

impl Arrival<'_> {
    /// Waits until no reader is inside by the fast path, and takes the bias off; `false` if that takes longer than
    /// `wait` allows.
    ///
    /// Without the underlying lock, unless readers are to wait meanwhile. Spins briefly, then sleeps.
    #[must_use]
    pub fn drain(&mut self, wait: Wait, policy: &impl Policy) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        let bias = self.bias;
        if prim::intact!("bias-drain") && !visible::drain(bias.address(), wait) {
            return false;
        }
        self.since = None; // Not in vain.
        // [bias-off] Release: pairs with [bias-none]. Another may do the same, so no subtraction.
        let order = prim::order!("bias-off", Ordering::Release);
        if bias.word.fetch_and(!BIASED, order) & BIASED != 0 {
            bias.revoked(since, policy);
        }
        true
    }

    /// The writer holds the underlying lock, and has drained before: it is inside.
    pub fn enter(self) {
        debug_assert!(self.since.is_none(), "not drained");
        let bias = self.bias;
        mem::forget(self); // Nothing is given up.
        bias.word.fetch_sub(WRITER, Ordering::Relaxed);
    }

    /// The writer goes away. As to drop it, and the policy hears of it.
    pub fn give_up(self, policy: &impl Policy) {
        if self.since.is_some() {
            tell(policy, Event::Withdrawal);
        }
    }
}

impl BiasState {
    #[cold]
    fn revoked(&self, since: u64, policy: &impl Policy) {
        let now = pace::now();
        let pace = Pace(self.pace.load(Ordering::Relaxed));
        let inhibition = pace.revoked(since, now, ask(policy));
        self.pace.store(inhibition.pace.0, Ordering::Relaxed);
        let took = Duration::from_nanos(now.saturating_sub(since));
        let inhibited = inhibition.lasts;
        tell(policy, Event::Revocation { took, inhibited });
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if self.since.is_some() {
            // Relaxed: it is as well if a count is lost to one who writes it at the same time.
            let wasted = |pace| Some(Pace(pace).wasted().0);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            _ = self.bias.pace.fetch_update(success, failure, wasted);
        }
        // [bias-withdraw]
        if prim::intact!("bias-withdraw") {
            self.bias.word.fetch_sub(WRITER, Ordering::Relaxed);
        }
    }
}
