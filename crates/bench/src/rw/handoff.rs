//! How long a cache line takes from one processor to another.
//!
//! Virtual machines have it change under way by a factor of eight, from when their processors share a core until they do
//! not, and with it what locks under competition do.

use crate::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::stats::Summary;
use crossbeam_utils::CachePadded;
use std::time::{Duration, Instant};
use std::{hint, thread};

/// Handoffs that are timed together.
const TIMED: u64 = 100;

/// So many times.
const TIMES: usize = 100;

/// Less often, and it is not told.
const LEAST: usize = TIMES / 4;

/// It takes no longer than about that.
const PATIENCE: Duration = Duration::from_millis(30);

/// Looks of one that waits between looks at the clock.
const LOOKS: u32 = 1000;

/// Nanoseconds for a handoff between two threads: the median, for now and then one of them is not running. `None` where
/// they do not run side by side.
#[must_use]
pub fn nanoseconds() -> Option<f64> {
    let deadline = Instant::now() + PATIENCE;
    let turn = CachePadded::new(AtomicU64::new(0));
    let stop = CachePadded::new(AtomicBool::new(false));
    // Neither yields: on one processor they would take turns all the same.
    let await_turn = |mine, is_over: &dyn Fn() -> bool| {
        for look in 1_u32.. {
            if turn.load(Ordering::Acquire) == mine {
                return true;
            }
            if look.is_multiple_of(LOOKS) && is_over() {
                break;
            }
            hint::spin_loop();
        }
        false
    };
    let take = |mine: u64| turn.store(mine + 1, Ordering::Release);
    let ends = thread::scope(|scope| {
        scope.spawn(|| {
            let is_over = || stop.load(Ordering::Relaxed);
            for mine in (1..).step_by(2) {
                if !await_turn(mine, &is_over) {
                    break;
                }
                take(mine);
            }
        });
        let is_over = || Instant::now() > deadline;
        let mut ends = Vec::new();
        for mine in (0..).step_by(2) {
            if !await_turn(mine, &is_over) {
                break;
            }
            if mine.is_multiple_of(TIMED) {
                ends.push(Instant::now());
            }
            if ends.len() > TIMES {
                break;
            }
            take(mine);
        }
        stop.store(true, Ordering::Relaxed);
        ends
    });
    let each = ends.windows(2).map(|ends| {
        let took = ends[1] - ends[0];
        took.as_nanos() as f64 / TIMED as f64
    });
    let told = Summary::of(each)?;
    (told.count >= LEAST).then_some(told.median)
}

#[cfg(test)]
mod tests {
    /// It ends where there is one processor, too: then it is not told.
    #[test]
    fn a_handoff_takes_time() {
        if let Some(took) = super::nanoseconds() {
            assert!(took > 0.0 && took.is_finite(), "{took}");
        }
    }
}
