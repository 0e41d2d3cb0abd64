//! Wait until a word changes; wake those who wait for it. As in the kernel, the look at the word and the falling
//! asleep are one step, and the word looked at is the newest.

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Instant;
use crate::with_execution;
use core::ptr;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The word differed, somebody woke us, or for no reason: look at the word again.
    LookAgain,
    /// The deadline passed.
    TimedOut,
}

fn differs(word: &AtomicU32, expected: u32) -> bool {
    // A read-modify-write sees the newest value. Relaxed: a wait on a futex orders nothing.
    word.compare_exchange(expected, expected, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
}

/// Sleeps while `word` holds `expected`, until woken. With a deadline, lets the others run and times out.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    if deadline.is_some() {
        loom::thread::yield_now();
        return if differs(word, expected) {
            Woken::LookAgain
        } else {
            Woken::TimedOut
        };
    }
    if !differs(word, expected) {
        // No other thread runs between the look and `park`.
        let me = loom::thread::current();
        with_execution(|execution| execution.sleepers.push((ptr::from_ref(word).addr(), me)));
        loom::thread::park();
    }
    Woken::LookAgain
}

/// Wakes the one who has slept longest on `word`.
pub fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

/// Wakes everybody who sleeps on `word`.
pub fn wake_all(word: &AtomicU32) {
    wake(word, usize::MAX);
}

fn wake(word: &AtomicU32, at_most: usize) {
    let address = ptr::from_ref(word).addr();
    let woken: Vec<_> = with_execution(|execution| {
        execution
            .sleepers
            .extract_if(.., |(key, _)| *key == address)
            .take(at_most)
            .collect()
    });
    for (_, thread) in woken {
        thread.unpark();
    }
}
