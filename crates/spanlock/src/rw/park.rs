//! Waiting for a word that says something, when whoever changes it can see a mark in it.

use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex::{self, Woken};
use prim::spin::{self, Spin};

/// Waits until `done` holds of the word; `false` if that takes longer than `wait` allows. Spins briefly, then marks
/// the word and sleeps.
///
/// Whoever makes `done` true does so by a read-modify-write; if it finds the mark it takes it off and then wakes all.
/// `done` does not depend on the mark. Who gives up leaves its mark: somebody wakes nobody.
#[inline]
pub(super) fn until(
    word: &AtomicU32,
    mark: u32,
    acquire: Ordering,
    wait: Wait,
    done: impl Fn(u32) -> bool,
) -> bool {
    done(word.load(acquire)) || wait != Wait::Never && sleep_until(word, mark, acquire, wait, done)
}

#[cold] // Somebody is in the way.
fn sleep_until(
    word: &AtomicU32,
    mark: u32,
    acquire: Ordering,
    wait: Wait,
    done: impl Fn(u32) -> bool,
) -> bool {
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
        if futex::wait(word, seen | mark, wait.deadline()) == Woken::TimedOut {
            return done(word.load(acquire));
        }
    }
}
