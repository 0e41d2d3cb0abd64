//! Waiting until an atomic word has a certain value, where a mark in the word says that a thread sleeps.
//!
//! ```text
//!   thread that waits                    thread that changes the word
//!   -----------------                    ----------------------------
//!   spin while not done(word)            word := changed, by a read-modify-write
//!   word |= mark                         the mark was set?
//!   done(word) after all?                  yes: clear the mark, wake all
//!     no: sleep while the word is
//!         unchanged, and begin again
//! ```
//!
//! Both sides change the word by read-modify-writes, which have one order. Either the mark comes first, and the other
//! thread observes it. Or the change comes first, and the waiting thread observes that.

use super::watch;
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex::{self, Woken};
use prim::spin::{self, Spin};

/// A word that threads wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Awaited<'a> {
    pub(crate) word: &'a AtomicU32,
    /// The bit that is set while a thread sleeps on the word. A thread that gives up leaves it set; then a wake-up
    /// wakes nobody.
    pub(crate) mark: u32,
    /// The order of loads of the word.
    pub(crate) acquire: Ordering,
}

impl Awaited<'_> {
    /// Waits until `done` is true of the word; `false` if that takes longer than `wait` allows. Spins briefly, then
    /// sets the mark and sleeps.
    ///
    /// `done` does not depend on the mark. A thread that makes it true changes the word by a read-modify-write. If it
    /// finds the mark, it clears the mark and wakes all threads that sleep on the word.
    #[inline]
    pub(crate) fn until(self, wait: Wait, done: impl Fn(u32) -> bool) -> bool {
        done(self.word.load(self.acquire)) || wait != Wait::Never && self.sleep_until(wait, done)
    }

    #[cold] // Another thread is in the way.
    fn sleep_until(self, wait: Wait, done: impl Fn(u32) -> bool) -> bool {
        let Self {
            word,
            mark,
            acquire,
        } = self;
        let mut spin = Spin::new(spin::ON_HOLDER);
        loop {
            if spin.round() {
                if done(word.load(acquire)) {
                    return true;
                }
                continue;
            }
            let seen = word.fetch_or(mark, acquire);
            if done(seen) {
                return true;
            }
            let deadline = wait.deadline();
            let sleep = || futex::wait(word, seen | mark, deadline);
            if watch::asleep(deadline, sleep) == Woken::TimedOut {
                return done(word.load(acquire));
            }
        }
    }
}
