//! What the comparison locks need, and the library does not: the same function as in `prim`.

use crate::atomic::{AtomicU64, Ordering};

/// Spins until `word` differs from `seen`, and returns its new value.
#[track_caller]
pub fn until_changed(word: &AtomicU64, seen: u64) -> u64 {
    let mut now = word.load(Ordering::Acquire);
    while now == seen {
        crate::thread::yield_now();
        now = word.load(Ordering::Acquire);
    }
    now
}
