//! A bias towards readers over a lock that is somebody else's, and stays as it is: BRAVO (P2) for `pthread_rwlock_t`.
//!
//! The lock underneath is not changed and writers do not announce themselves to us when there is no bias: then they
//! pay two loads. A release says neither what it releases nor which: see [`visible`].
//!
//! # Protocol
//!
//! An [`Overlay`] is a word: whether readers may enter by publishing (*biased*), whether published readers may be left
//! from then (*suspect*), and how many writers look for them.
//!
//! 1. A reader publishes, and enters if it then finds the bias on and no writer at the lock underneath. Otherwise it
//!    retracts and acquires the lock underneath.
//! 2. A reader that holds the lock underneath may turn the bias on, unless writers look for published readers.
//! 3. A writer that finds the word clear acquires the lock underneath, and has it if the word is still clear: nobody
//!    turns the bias on without holding it. If not, it gives the lock back.
//! 4. A writer that finds the word not clear takes the bias off, *then* waits until nobody is published, and only then
//!    does as in 3: readers enter by the lock underneath meanwhile, so who reads twice never waits for a writer that
//!    waits for it. Where a waiting writer keeps readers out anyway ([`Recursion::Waits`]), it acquires the lock first
//!    and waits holding it: readers that come are kept out as they would be without us.
//! 5. A writer that gives up leaves the word suspect.
//!
//! # Memory ordering
//!
//! - **overlay-enter** / **overlay-revoke** (store, fence, look on both sides): a reader publishes and looks at the
//!   word; a writer takes the bias off and looks for publications. One sees the other.
//! - **overlay-offer**: Release by who turns the bias on, Acquire by who enters by it: what writers did before.
//! - **overlay-clear**: Release by the writer that found nobody published, Acquire by the next that finds the word
//!   clear: the published readers' critical sections.
//! - **overlay-confirm**: rule 3's second look. It needs no ordering of its own: who turned the bias on released the
//!   lock underneath after.
//! - **overlay-give-way**: rule 1's look at the lock underneath. **overlay-suspect**: rule 5.

use super::visible::{self, LockAddress, Seat, Slot};
use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering, fence, fence_after_rmw};

/// Readers may enter by publishing.
const BIASED: u32 = 1;
/// A writer gave up looking for published readers.
const SUSPECT: u32 = 2;
/// One writer that looks for published readers; the rest of the word counts them.
const WRITER: u32 = 4;

/// Whether a thread that reads may read again while a writer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recursion {
    /// It may.
    Enters,
    /// It waits for the writer, which waits for it.
    Waits,
}

/// The lock underneath.
pub trait Under {
    /// What it promises to readers.
    fn recursion(&self) -> Recursion;

    /// Whether a writer holds it or waits for it. May be wrong while that changes.
    fn has_writer(&self) -> bool;

    /// Releases it: one writer's hold.
    fn leave_exclusive(&self);

    /// Releases it: one reader's hold.
    fn leave_shared(&self);
}

/// Why a writer did not get the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal<E> {
    /// Published readers stayed for longer than it waits.
    Readers,
    /// The lock underneath said so.
    Under(E),
}

/// What became of a writer's request that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// There was no bias.
    Plainly,
    /// It took the bias off.
    Revoking,
}

/// The word. Zero is without bias. It stays where it is while anybody uses the lock.
#[derive(Debug)]
pub struct Overlay(AtomicU32);

impl Overlay {
    prim::const_fn! {
        /// Without bias.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    #[inline]
    fn address(&self) -> LockAddress {
        LockAddress::of(self)
    }

    /// Whether readers may enter by publishing, at a glance.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) & BIASED != 0
    }

    /// Whether nobody reads by publishing: true for all who hold the lock underneath for writing.
    #[inline]
    #[must_use]
    pub fn is_clear(&self) -> bool {
        // [overlay-clear] Acquire: pairs with the Release in `renounce`.
        self.0
            .load(prim::order!("overlay-clear-acquire", Ordering::Acquire))
            == 0
    }

    /// Enters as a reader by publishing, if the bias is on. Costs one atomic operation.
    #[inline]
    #[must_use]
    pub fn enter<U: Under>(&self, seat: Seat, under: &U) -> bool {
        self.is_on()
            && visible::publish(self.address(), seat)
                .is_some_and(|slot| self.confirm(slot, seat, under))
    }

    #[inline]
    fn confirm<U: Under>(&self, slot: Slot, seat: Seat, under: &U) -> bool {
        // [overlay-enter]
        if prim::intact!("overlay-enter") {
            fence_after_rmw();
        }
        // [overlay-offer] Acquire: pairs with the Release in `offer`.
        let word = self
            .0
            .load(prim::order!("overlay-offer-acquire", Ordering::Acquire));
        // [overlay-give-way]
        let give_way = under.has_writer() && prim::intact!("overlay-give-way");
        let entered = word & BIASED != 0 && !give_way;
        if !entered {
            self.step_back(slot, seat, under);
        }
        entered
    }

    #[cold] // A writer came in between.
    fn step_back<U: Under>(&self, slot: Slot, seat: Seat, under: &U) {
        if !slot.retract_if_untaken(self.address()) {
            self.leave_shared(seat, under); // Somebody left by ours: we leave by theirs.
        }
    }

    /// Ends one reader's hold, whichever way that entered and on whatever thread.
    #[inline]
    pub fn leave_shared<U: Under>(&self, seat: Seat, under: &U) {
        let published = seat.retract(self.address()) || visible::retract_any(self.address());
        if !published {
            under.leave_shared();
        }
    }

    /// Turns the bias on. Only for a reader that holds the lock underneath.
    pub fn offer<U: Under>(&self, under: &U) {
        let word = self.0.load(Ordering::Relaxed);
        if word & BIASED != 0 || word >= WRITER || under.has_writer() {
            return;
        }
        // [overlay-offer] Release: pairs with the Acquire of whoever enters. If it fails a writer came, or another
        // reader did the same.
        let order = prim::order!("overlay-offer", Ordering::Release);
        let _ = self
            .0
            .compare_exchange(word, BIASED, order, Ordering::Relaxed);
    }

    /// Acquires as a writer, by `acquire`, which acquires the lock underneath. Waits for published readers as long as
    /// `wait` allows.
    ///
    /// # Errors
    /// What `acquire` says, or that published readers stay.
    #[inline]
    pub fn write<U: Under, E>(
        &self,
        under: &U,
        wait: Wait,
        mut acquire: impl FnMut() -> Result<(), E>,
    ) -> Result<Granted, Refusal<E>> {
        if self.is_clear() {
            acquire().map_err(Refusal::Under)?;
            // [overlay-confirm]
            if self.is_clear() || !prim::intact!("overlay-confirm") {
                return Ok(Granted::Plainly);
            }
            under.leave_exclusive();
        }
        self.revoke(under, wait, &mut acquire)
    }

    #[cold] // Readers may be published.
    fn revoke<U: Under, E>(
        &self,
        under: &U,
        wait: Wait,
        acquire: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Granted, Refusal<E>> {
        // Who does not wait for readers leaves them their bias.
        if wait == Wait::Never && visible::is_published(self.address()) {
            return Err(Refusal::Readers);
        }
        match under.recursion() {
            Recursion::Enters => loop {
                if !self.is_clear() {
                    self.announce();
                    self.drain(wait)?;
                }
                acquire().map_err(Refusal::Under)?;
                if self.is_clear() {
                    return Ok(Granted::Revoking);
                }
                under.leave_exclusive();
            },
            Recursion::Waits => {
                self.announce();
                if let Err(refused) = acquire() {
                    self.renounce(SUSPECT);
                    return Err(Refusal::Under(refused));
                }
                self.drain(wait)
                    .inspect_err(|_: &Refusal<E>| under.leave_exclusive())?;
                Ok(Granted::Revoking)
            }
        }
    }

    /// Takes the bias off, and keeps it off until renounced.
    fn announce(&self) {
        // Relaxed: the fence in `drain` orders it.
        let announced = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                Some((word & !(BIASED | SUSPECT)) + WRITER)
            });
        debug_assert!(announced.is_ok(), "the closure never refuses");
    }

    /// Ends an announcement.
    fn renounce(&self, suspect: u32) {
        let ended = self.0.fetch_update(
            // [overlay-clear] Release: pairs with the Acquire of who finds the word clear.
            prim::order!("overlay-clear", Ordering::AcqRel),
            Ordering::Relaxed,
            |word| Some((word - WRITER) | suspect),
        );
        debug_assert!(ended.is_ok(), "the closure never refuses");
    }

    /// Waits until nobody is published, and ends the announcement.
    fn drain<E>(&self, wait: Wait) -> Result<(), Refusal<E>> {
        // [overlay-revoke]
        if prim::intact!("overlay-revoke") {
            fence(Ordering::SeqCst);
        }
        let drained = visible::drain(self.address(), wait);
        // [overlay-suspect]
        let suspect = if drained || !prim::intact!("overlay-suspect") {
            0
        } else {
            SUSPECT
        };
        self.renounce(suspect);
        drained.then_some(()).ok_or(Refusal::Readers)
    }

    /// Forgets all readers and the bias: the lock begins or ends its life.
    pub fn reset(&self) {
        visible::forget(self.address());
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Default for Overlay {
    fn default() -> Self {
        Self::new()
    }
}
