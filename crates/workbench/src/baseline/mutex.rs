//! A mutex of one word, and as a reader-writer lock whose readers exclude each other.
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

use super::traits::raw_rwlock;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex::{self, Woken};
use prim::spin::Spin;
use spanlock::range::raw::Wait;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep or be about to.
const AWAITED: u32 = 2;

/// A mutex of 4 bytes that spins briefly and then sleeps. It is unfair, and fast for that.
///
/// Source: our own, after Drepper's *Futexes are Tricky* (2004).
#[derive(Debug)]
pub(super) struct FutexMutex {
    word: AtomicU32,
}

impl FutexMutex {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self {
                word: AtomicU32::new(FREE),
            }
        }
    }

    /// Enters; `None` if that takes longer than it may.
    #[inline]
    pub(super) fn enter(&self, wait: Wait) -> Option<()> {
        match self.enter_free() {
            Ok(()) => Some(()),
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
    fn contend(&self, mut found: u32, wait: Wait) -> Option<()> {
        // One budget of spinning, however often others get in first.
        let mut spin = Spin::backing_off();
        // While others sleep it does not spin: they come first.
        while found != AWAITED && spin.round() {
            found = self.word.load(Ordering::Relaxed);
            if found == FREE {
                match self.enter_free() {
                    Ok(()) => return Some(()),
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
            if futex::wait(&self.word, mark, deadline) == Woken::TimedOut {
                return None;
            }
        }
        Some(())
    }

    /// The thread that is inside leaves.
    #[inline]
    pub(super) fn leave(&self) {
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

/// A mutex as a reader-writer lock in which readers exclude each other, to put `Bravo` around. Then readers share by
/// the table, and take turns only while there is no bias. (Dice and Kogan propose it, ATC 2019, section 7.)
///
/// - **Size**: 4 bytes.
/// - **Recursion**: none. A thread that reads twice waits for itself. That holds under `Bravo` too, whose readers may
///   take the slow path at any time.
/// - **Not for** use without `Bravo`, nor where readers must never exclude each other.
#[derive(Debug)]
pub struct MutexRwLock {
    mutex: FutexMutex,
}

impl MutexRwLock {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                mutex: FutexMutex::new(),
            }
        }
    }

    #[inline]
    fn read(&self, wait: Wait) -> Option<()> {
        self.mutex.enter(wait)
    }

    #[inline]
    fn write(&self, wait: Wait) -> Option<()> {
        self.mutex.enter(wait)
    }

    #[inline]
    fn leave_shared(&self, (): ()) {
        self.mutex.leave();
    }

    #[inline]
    fn leave_exclusive(&self, (): ()) {
        self.mutex.leave();
    }

    fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    /// Any holder is alone, also a reader.
    fn is_locked_exclusive(&self) -> bool {
        self.mutex.is_locked()
    }
}

impl Default for MutexRwLock {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY (of the traits): the thread that changes the word from `FREE` is inside until it changes it back, and it
// Acquires what the thread before has Released. That excludes more than a reader-writer lock has to.
raw_rwlock!([] MutexRwLock, ());

// SAFETY: the mutex stays locked, so the writer goes on alone as a reader.
unsafe impl lock_api::RawRwLockDowngrade for MutexRwLock {
    unsafe fn downgrade(&self, (): ()) {}
}
