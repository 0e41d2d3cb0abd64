//! A mutex of one word, and any mutex as a reader-writer lock whose readers exclude each other.
//!
//! ```text
//!              enter (mutex-enter)                     a thread goes to sleep
//!      FREE ------------------------>  HELD  --------------------------------->  AWAITED
//!       ^  ^                             |                                          |
//!       |  |     leave (mutex-leave)     |      leave, and wake one (mutex-wake)    |
//!       |  +-----------------------------+                                          |
//!       +---------------------------------------------------------------------------+
//! ```
//!
//! A thread that is about to sleep swaps `AWAITED` into the word. If it finds `FREE`, it is inside, and the word stays
//! `AWAITED`: it does not know whether others sleep (**mutex-conservative**).
//!
//! # Memory ordering
//!
//! - **mutex-enter**, **mutex-enter-contended** / **mutex-leave**: Acquire by the thread that enters, Release by the
//!   one that leaves: critical sections.
//! - **mutex-wake**: a thread that leaves and finds `AWAITED` wakes one sleeper.

use super::raw::{ThreadBound, granted};
use super::watch;
use crate::wait::Wait;
use lock_api::{RawMutex, RawMutexTimed, RawRwLock, RawRwLockTimed};
use prim::atomic::{AtomicU32, Ordering};
use prim::clock::{Duration, Instant};
use prim::futex::{self, Woken};
use prim::spin::Spin;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep or be about to.
const AWAITED: u32 = 2;

/// A mutex of 4 bytes that spins briefly and then sleeps. It is unfair, and fast for that.
///
/// Guards stay on their threads. Source: our own, after Drepper's *Futexes are Tricky* (2004).
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
    pub(super) fn enter(&self, wait: Wait) -> Option<ThreadBound> {
        match self.enter_free() {
            Ok(()) => Some(ThreadBound::new()),
            Err(_) if wait == Wait::Never => None,
            Err(found) => self.contend(found, wait),
        }
    }

    /// Enters if the mutex is free, or returns the value of the word.
    #[inline]
    fn enter_free(&self) -> Result<(), u32> {
        // [mutex-enter] Acquire: pairs with [mutex-leave].
        let enter = prim::order!("mutex-enter", Ordering::Acquire);
        self.word
            .compare_exchange(FREE, HELD, enter, Ordering::Relaxed)
            .map(|_| ())
    }

    #[cold] // It is held.
    fn contend(&self, mut found: u32, wait: Wait) -> Option<ThreadBound> {
        // One budget of spinning, however often others get in first.
        let mut spin = Spin::backing_off();
        // While others sleep it does not spin: they come first.
        while found != AWAITED && spin.round() {
            found = self.word.load(Ordering::Relaxed);
            if found == FREE {
                match self.enter_free() {
                    Ok(()) => return Some(ThreadBound::new()),
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
        // [mutex-enter-contended] Acquire: pairs with [mutex-leave].
        let acquire = prim::order!("mutex-enter-contended", Ordering::Acquire);
        while self.word.swap(mark, acquire) != FREE {
            let deadline = wait.deadline();
            let sleep = || futex::wait(&self.word, mark, deadline);
            if watch::asleep(deadline, sleep) == Woken::TimedOut {
                return None;
            }
        }
        Some(ThreadBound::new())
    }
}

impl Default for FutexMutex {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: the thread that changes the word from `FREE` is inside until it changes it back, and it Acquires what the
// thread before has Released.
unsafe impl RawMutex for FutexMutex {
    const INIT: Self = prim::initial!(Self::new());

    type Guard = ThreadBound;

    #[inline]
    fn lock(&self) -> ThreadBound {
        granted(self.enter(Wait::Forever))
    }

    #[inline]
    fn try_lock(&self) -> Option<ThreadBound> {
        self.enter(Wait::Never)
    }

    #[inline]
    unsafe fn unlock(&self, _: ThreadBound) {
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

// SAFETY: the timed forms enter as the untimed ones do, or not at all.
unsafe impl RawMutexTimed for FutexMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<ThreadBound> {
        self.enter(Wait::at_most(timeout))
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<ThreadBound> {
        self.enter(Wait::Until(deadline))
    }
}

/// Any mutex as a reader-writer lock in which readers exclude each other, to put [`Bravo`](super::Bravo) around. Then
/// readers share by the table, and take turns only while there is no bias. (Dice and Kogan propose it, ATC 2019,
/// section 7.)
///
/// ```
/// use spanlock::rw::{Bravo, FutexMutex, MutexRwLock};
///
/// let lock: lock_api::RwLock<Bravo<MutexRwLock<FutexMutex>>, u32> = lock_api::RwLock::new(5);
/// assert_eq!(*lock.read(), 5);
/// ```
///
/// - **Size**, **cost**, **fairness**: the mutex's.
/// - **Recursion**: none. A thread that reads twice waits for itself. That holds under `Bravo` too, whose readers may
///   take the slow path at any time.
/// - **Not for** use without `Bravo`, nor where readers must never exclude each other.
#[derive(Debug, Default)]
pub struct MutexRwLock<M> {
    mutex: M,
}

impl<M> MutexRwLock<M> {
    /// Makes a reader-writer lock of the mutex.
    #[must_use]
    pub const fn from_mutex(mutex: M) -> Self {
        Self { mutex }
    }
}

/// The methods by which a reader, or a writer, locks the mutex.
macro_rules! lock_mutex {
    ($lock:ident, $try_lock:ident, $unlock:ident) => {
        fn $lock(&self) -> M::Guard {
            self.mutex.lock()
        }

        fn $try_lock(&self) -> Option<M::Guard> {
            self.mutex.try_lock()
        }

        unsafe fn $unlock(&self, guard: M::Guard) {
            // SAFETY: the caller promises that the guard is this lock's, and so the mutex's.
            unsafe { self.mutex.unlock(guard) };
        }
    };
    (timed $lock_for:ident, $lock_until:ident) => {
        fn $lock_for(&self, timeout: M::Duration) -> Option<M::Guard> {
            self.mutex.try_lock_for(timeout)
        }

        fn $lock_until(&self, deadline: M::Instant) -> Option<M::Guard> {
            self.mutex.try_lock_until(deadline)
        }
    };
}

// SAFETY: the mutex lets in one thread at a time, which excludes more than a reader-writer lock has to.
unsafe impl<M: RawMutex> RawRwLock for MutexRwLock<M> {
    const INIT: Self = Self { mutex: M::INIT };

    type SharedGuard = M::Guard;
    type ExclusiveGuard = M::Guard;

    lock_mutex!(lock_shared, try_lock_shared, unlock_shared);
    lock_mutex!(lock_exclusive, try_lock_exclusive, unlock_exclusive);

    fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    /// Any holder is alone, also a reader.
    fn is_locked_exclusive(&self) -> bool {
        self.mutex.is_locked()
    }
}

// SAFETY: the timed forms lock the same mutex, or do not.
unsafe impl<M: RawMutexTimed> RawRwLockTimed for MutexRwLock<M> {
    type Duration = M::Duration;
    type Instant = M::Instant;

    lock_mutex!(timed try_lock_shared_for, try_lock_shared_until);
    lock_mutex!(timed try_lock_exclusive_for, try_lock_exclusive_until);
}

// SAFETY: the mutex stays locked, so the writer goes on alone as a reader.
unsafe impl<M: RawMutex> lock_api::RawRwLockDowngrade for MutexRwLock<M> {
    unsafe fn downgrade(&self, guard: M::Guard) -> M::Guard {
        guard
    }
}
