//! How long acquisitions and releases take one thread, of a lock that no other thread wants.

use crate::peers::{Target, WHOLE};
use spanlock::range::raw::Mode;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The resource, or the range of it, that is locked.
const RANGE: Range<u64> = 0..64;

/// How long so many acquisitions and releases of one range take.
pub fn time<T: Target>(lock: &T, mode: Mode, pairs: u32) -> Duration {
    match mode {
        Mode::Shared => repeat(pairs, || drop(black_box(lock).read(black_box(RANGE)))),
        Mode::Exclusive => repeat(pairs, || drop(black_box(lock).write(black_box(RANGE)))),
    }
}

/// The same for a reader-writer lock. The compiler must not see through the guard either: a floor has little else.
pub fn time_rw<T: Target>(lock: &T, mode: Mode, pairs: u32) -> Duration {
    match mode {
        Mode::Shared => repeat(pairs, || drop(black_box(black_box(lock).read(WHOLE)))),
        Mode::Exclusive => repeat(pairs, || drop(black_box(black_box(lock).write(WHOLE)))),
    }
}

/// How long so many calls take, once caches are warm. One loop has both, so that a lock is not compiled into it twice.
pub(crate) fn repeat(pairs: u32, pair: impl Fn()) -> Duration {
    let mut took = Duration::ZERO;
    // In the first turn the thread's node pool and the caches get warm.
    for pairs in black_box([1000, pairs]) {
        let start = Instant::now();
        (0..pairs).for_each(|_| pair());
        took = start.elapsed();
    }
    took
}
