//! A mutex of one word, and any mutex as a reader-writer lock whose readers exclude each other.
//!
//! The word is zero, held, or held with sleepers. Who goes to sleep says so by the same step that tries to get in,
//! and so does not know, when it gets in, whether others sleep: it says so again (**mutex-conservative**).
//!
//! # Memory ordering
//!
//! - **mutex-enter** / **mutex-leave**: Acquire and Release: critical sections.
//! - **mutex-wake**: who leaves and finds sleepers wakes one.

use super::raw::{Stays, granted};
use crate::range::raw::Wait;
use lock_api::{RawMutex, RawMutexTimed, RawRwLock, RawRwLockTimed};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::futex::{self, Woken};
use prim::spin::Spin;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps or is about to.
const AWAITED: u32 = 2;

/// A mutex of 4 bytes that spins briefly and then sleeps; unfair, and quick for that.
///
/// Guards stay on their threads, unless the feature `send_guard` is on. Source: our own, after Drepper's *Futexes are Tricky* (2004).
#[derive(Debug)]
pub struct FutexMutex {
    word: AtomicU32,
}

impl FutexMutex {
    prim::const_fn! {
        /// A mutex that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(FREE),
            }
        }
    }

    #[inline]
    pub(super) fn enter(&self, wait: Wait) -> Option<Stays> {
        match self.enter_free() {
            Ok(()) => Some(Stays::new()),
            Err(_) if wait == Wait::Never => None,
            Err(found) => self.contend(found, wait),
        }
    }

    /// Enters if it is free; else what the word says.
    #[inline]
    fn enter_free(&self) -> Result<(), u32> {
        // [mutex-enter] Acquire: pairs with [mutex-leave].
        let enter = prim::order!("mutex-enter", Ordering::Acquire);
        self.word
            .compare_exchange(FREE, HELD, enter, Ordering::Relaxed)
            .map(|_| ())
    }

    #[cold] // It is held.
    fn contend(&self, mut found: u32, wait: Wait) -> Option<Stays> {
        // One spin, however often others get in first.
        let mut spin = Spin::backing_off();
        // Who sees others asleep does not spin: they come first.
        while found != AWAITED && spin.round() {
            found = self.word.load(Ordering::Relaxed);
            if found == FREE {
                match self.enter_free() {
                    Ok(()) => return Some(Stays::new()),
                    Err(now) => found = now,
                }
            }
        }
        // [mutex-conservative]
        let mark = if prim::intact!("mutex-conservative") {
            AWAITED
        } else {
            HELD
        };
        // [mutex-enter] Acquire: pairs with [mutex-leave].
        let acquire = prim::order!("mutex-enter-contended", Ordering::Acquire);
        while self.word.swap(mark, acquire) != FREE {
            if futex::wait(&self.word, mark, wait.deadline()) == Woken::TimedOut {
                return None;
            }
        }
        Some(Stays::new())
    }
}

impl Default for FutexMutex {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: whoever changes the word from free is inside until it changes it back, and acquires what was released then.
unsafe impl RawMutex for FutexMutex {
    const INIT: Self = prim::initial!(Self::new());

    type Guard = Stays;

    #[inline]
    fn lock(&self) -> Stays {
        granted(self.enter(Wait::Forever))
    }

    #[inline]
    fn try_lock(&self) -> Option<Stays> {
        self.enter(Wait::Never)
    }

    #[inline]
    unsafe fn unlock(&self, _: Stays) {
        // [mutex-leave] Release: pairs with [mutex-enter].
        let before = self
            .word
            .swap(FREE, prim::order!("mutex-leave", Ordering::Release));
        // [mutex-wake]
        if before == AWAITED && prim::intact!("mutex-wake") {
            futex::wake_one(&self.word);
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) != FREE
    }
}

// SAFETY: as above.
unsafe impl RawMutexTimed for FutexMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<Stays> {
        self.enter(Wait::at_most(timeout))
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<Stays> {
        self.enter(Wait::Until(deadline))
    }
}

/// Any mutex as a reader-writer lock in which readers exclude each other, to put [`Bravo`](super::Bravo) around (P2,
/// §7): then readers share by the table, and take turns only while there is no bias.
///
/// ```
/// use spanlock::rw::{Bravo, FutexMutex, MutexRwLock};
///
/// let lock: lock_api::RwLock<Bravo<MutexRwLock<FutexMutex>>, u32> = lock_api::RwLock::new(5);
/// assert_eq!(*lock.read(), 5);
/// ```
///
/// - **Size**, **cost**, **fairness**: the mutex's.
/// - **Recursion**: none: a thread that reads twice waits for itself. So also under `Bravo`, whose readers may find
///   themselves here at any time.
/// - Not without `Bravo`, nor where readers must never exclude each other.
#[derive(Debug, Default)]
pub struct MutexRwLock<M> {
    mutex: M,
}

impl<M> MutexRwLock<M> {
    /// The mutex as a reader-writer lock.
    #[must_use]
    pub const fn from_mutex(mutex: M) -> Self {
        Self { mutex }
    }
}

// SAFETY: the mutex lets in one at a time, which is more than is asked for.
unsafe impl<M: RawMutex> RawRwLock for MutexRwLock<M> {
    const INIT: Self = Self { mutex: M::INIT };

    type SharedGuard = M::Guard;
    type ExclusiveGuard = M::Guard;

    fn lock_shared(&self) -> M::Guard {
        self.mutex.lock()
    }

    fn try_lock_shared(&self) -> Option<M::Guard> {
        self.mutex.try_lock()
    }

    unsafe fn unlock_shared(&self, guard: M::Guard) {
        // SAFETY: the caller's.
        unsafe { self.mutex.unlock(guard) };
    }

    fn lock_exclusive(&self) -> M::Guard {
        self.mutex.lock()
    }

    fn try_lock_exclusive(&self) -> Option<M::Guard> {
        self.mutex.try_lock()
    }

    unsafe fn unlock_exclusive(&self, guard: M::Guard) {
        // SAFETY: the caller's.
        unsafe { self.mutex.unlock(guard) };
    }

    fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    /// Whoever is inside is alone, reader or not.
    fn is_locked_exclusive(&self) -> bool {
        self.mutex.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<M: RawMutexTimed> RawRwLockTimed for MutexRwLock<M> {
    type Duration = M::Duration;
    type Instant = M::Instant;

    fn try_lock_shared_for(&self, timeout: M::Duration) -> Option<M::Guard> {
        self.mutex.try_lock_for(timeout)
    }

    fn try_lock_shared_until(&self, deadline: M::Instant) -> Option<M::Guard> {
        self.mutex.try_lock_until(deadline)
    }

    fn try_lock_exclusive_for(&self, timeout: M::Duration) -> Option<M::Guard> {
        self.mutex.try_lock_for(timeout)
    }

    fn try_lock_exclusive_until(&self, deadline: M::Instant) -> Option<M::Guard> {
        self.mutex.try_lock_until(deadline)
    }
}

// SAFETY: as above; the writer goes on alone as a reader.
unsafe impl<M: RawMutex> lock_api::RawRwLockDowngrade for MutexRwLock<M> {
    unsafe fn downgrade(&self, guard: M::Guard) -> M::Guard {
        guard
    }
}
