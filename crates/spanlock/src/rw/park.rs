//! Waiting for a word that says something, when whoever changes it can see a mark in it.

use prim::atomic::{AtomicU32, Ordering};
use prim::futex;
use prim::spin::{self, Spin};

/// Waits until `done` holds of the word. Spins briefly, then marks the word and sleeps.
///
/// Whoever makes `done` true does so by a read-modify-write; if it finds the mark it takes it off and then wakes all.
/// `done` does not depend on the mark.
#[inline]
pub(super) fn until(word: &AtomicU32, mark: u32, acquire: Ordering, done: impl Fn(u32) -> bool) {
    if !done(word.load(acquire)) {
        sleep_until(word, mark, acquire, done);
    }
}

#[cold] // Somebody is in the way.
fn sleep_until(word: &AtomicU32, mark: u32, acquire: Ordering, done: impl Fn(u32) -> bool) {
    let mut spin = Spin::new(spin::ON_HOLDER);
    loop {
        if spin.round() {
            if done(word.load(acquire)) {
                return;
            }
            continue;
        }
        let seen = word.fetch_or(mark, acquire);
        if done(seen) {
            return;
        }
        futex::wait(word, seen | mark, None);
    }
}
