//! Wait until a word changes; wake those who wait for it.

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Instant;
use crate::world;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The word differed, somebody woke us, or for no reason: look at the word again.
    LookAgain,
    /// The deadline passed.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, until woken or until `deadline`. Outside a run it never sleeps.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    world::enter_system();
    // The look and the falling asleep are one step: no other thread runs between them.
    if word.load(Ordering::Relaxed) != expected {
        return Woken::LookAgain;
    }
    let deadline = deadline.map(Instant::since_start);
    world::sleep(std::ptr::from_ref(word).addr(), deadline)
}

/// Wakes the one who has slept longest on `word`. The word's owner may be gone: only its address matters.
#[track_caller]
pub fn wake_one(word: &AtomicU32) {
    world::wake(std::ptr::from_ref(word).addr(), 1);
}

/// Wakes everybody who sleeps on `word`, in the same way.
#[track_caller]
pub fn wake_all(word: &AtomicU32) {
    world::wake(std::ptr::from_ref(word).addr(), usize::MAX);
}
