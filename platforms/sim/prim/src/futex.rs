//! Futexes: a thread sleeps until a word changes, and another thread wakes it.

pub use hardware::futex::Woken;

use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Instant;
use crate::world;

/// Sleeps while `word` holds `expected`, until woken or until `deadline`. Outside a run it never sleeps.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Woken {
    world::enter_system();
    // The load and the start of the sleep are one step: no other thread runs between them.
    if word.load(Ordering::Relaxed) != expected {
        return Woken::Recheck;
    }
    let deadline = deadline.map(Instant::since_start);
    world::sleep(std::ptr::from_ref(word).addr(), deadline)
}

/// Wakes the thread that has slept longest on `word`. The memory may have been freed: only the address matters.
#[track_caller]
pub fn wake_one(word: &AtomicU32) -> bool {
    world::wake(std::ptr::from_ref(word).addr(), 1)
}

/// Wakes all threads that sleep on `word`, in the same way.
#[track_caller]
pub fn wake_all(word: &AtomicU32) {
    world::wake(std::ptr::from_ref(word).addr(), usize::MAX);
}
