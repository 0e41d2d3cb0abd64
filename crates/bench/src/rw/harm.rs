//! Means to judge whether a bias does harm: a control, which shows the ratio of two equal locks, and the time that a
//! cache line takes from one processor to another.

use crossbeam_utils::CachePadded;
use lock_api::RawRwLock;
use prim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use spanlock_records::stats::Summary;
use std::time::{Duration, Instant};
use std::{hint, thread};

/// A lock as large and laid out as under a bias, which it never has. What is inlined of it is compiled once more.
///
/// It does what the lock does, so it differs from the lock only by where code and data lie, and by chance.
#[derive(Debug)]
pub struct ControlLock<L> {
    _bias: [AtomicU32; 2],
    raw: L,
}

/// Calls that are passed on to the lock.
macro_rules! forward {
    ($($call:ident -> $result:ty;)+) => {$(
        #[inline]
        fn $call(&self) -> $result {
            self.raw.$call()
        }
    )+};
}

// SAFETY: every call is passed on to `raw`, which is a lock and keeps the trait's promises.
unsafe impl<L: RawRwLock> RawRwLock for ControlLock<L> {
    const INIT: Self = Self {
        _bias: [const { AtomicU32::new(0) }; 2],
        raw: L::INIT,
    };

    type SharedGuard = L::SharedGuard;
    type ExclusiveGuard = L::ExclusiveGuard;

    forward! {
        lock_shared -> Self::SharedGuard;
        try_lock_shared -> Option<Self::SharedGuard>;
        lock_exclusive -> Self::ExclusiveGuard;
        try_lock_exclusive -> Option<Self::ExclusiveGuard>;
        is_locked -> bool;
        is_locked_exclusive -> bool;
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller holds this lock, and so `raw`, by that guard.
        unsafe { self.raw.unlock_shared(guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller holds this lock, and so `raw`, by that guard.
        unsafe { self.raw.unlock_exclusive(guard) };
    }
}

/// Handoffs that are timed together.
const TIMED: u64 = 100;

/// How often so many are timed.
const TIMES: usize = 100;

/// With fewer of them there is no result.
const LEAST: usize = TIMES / 4;

/// The measurement takes about that long, at most.
const PATIENCE: Duration = Duration::from_millis(30);

/// Loads of a waiting thread between two readings of the clock.
const LOADS: u32 = 1000;

/// Two threads that take turns.
#[derive(Default)]
struct Turns {
    turn: CachePadded<AtomicU64>,
    stop: CachePadded<AtomicBool>,
}

impl Turns {
    /// Waits for every other turn from that one on, does `each` when it comes, and passes it on; until it is over, or
    /// `each` has had enough. It never yields: on one processor, two threads that yield would take turns all the same.
    fn take(&self, first: u64, is_over: impl Fn() -> bool, mut each: impl FnMut(u64) -> bool) {
        for mine in (first..).step_by(2) {
            let mut loads = 0_u32;
            while self.turn.load(Ordering::Acquire) != mine {
                loads += 1;
                if loads.is_multiple_of(LOADS) && is_over() {
                    return;
                }
                hint::spin_loop();
            }
            if !each(mine) {
                return;
            }
            self.turn.store(mine + 1, Ordering::Release);
        }
    }
}

/// Nanoseconds for a handoff of a cache line between two threads: the median, for now and then one of them is not
/// running. `None` where they do not run side by side.
///
/// In virtual machines it changes under way by a factor of eight, as their processors come to share a core or cease to,
/// and with it what locks under contention do.
#[must_use]
pub fn handoff() -> Option<f64> {
    let deadline = Instant::now() + PATIENCE;
    let turns = &Turns::default();
    let mut ends = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| turns.take(1, || turns.stop.load(Ordering::Relaxed), |_| true));
        turns.take(
            0,
            || Instant::now() > deadline,
            |mine| {
                if mine.is_multiple_of(TIMED) {
                    ends.push(Instant::now());
                }
                ends.len() <= TIMES
            },
        );
        turns.stop.store(true, Ordering::Relaxed);
    });
    let each = ends.windows(2).map(|ends| {
        let took = ends[1] - ends[0];
        took.as_nanos() as f64 / TIMED as f64
    });
    let all = Summary::of(each)?;
    (all.count >= LEAST).then_some(all.median)
}
