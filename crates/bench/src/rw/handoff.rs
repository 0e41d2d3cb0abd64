//! How long a cache line takes from one processor to another.
//!
//! Virtual machines have it change under way by a factor of eight, from when their processors share a core until they do
//! not, and with it what locks under competition do.

use crate::prim::atomic::{AtomicU64, Ordering};
use crate::prim::spin;
use crate::stats::Summary;
use crossbeam_utils::CachePadded;
use std::thread;
use std::time::Instant;

/// Turns that two threads take.
const TURNS: u64 = 20_000;

/// Turns that are timed together.
const TIMED: u64 = 100;

/// Nanoseconds for a handoff between two threads: the median, for now and then one of them is not running.
#[must_use]
pub fn nanoseconds() -> f64 {
    let turn = CachePadded::new(AtomicU64::new(0));
    let await_turn = |mine| {
        while turn.load(Ordering::Acquire) != mine {
            spin::until_changed(&turn, mine - 1);
        }
    };
    let take = |mine: u64| turn.store(mine + 1, Ordering::Release);
    let times = thread::scope(|scope| {
        scope.spawn(|| {
            for mine in (1..TURNS).step_by(2) {
                await_turn(mine);
                take(mine);
            }
        });
        take(0);
        let mut ends = Vec::new();
        for mine in (2..=TURNS).step_by(2) {
            await_turn(mine);
            if mine.is_multiple_of(TIMED) {
                ends.push(Instant::now());
            }
            take(mine);
        }
        ends
    });
    let each = times.windows(2).map(|ends| {
        let took = ends[1] - ends[0];
        took.as_nanos() as f64 / TIMED as f64
    });
    Summary::of(each).map_or(0.0, |each| each.median)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_handoff_takes_time() {
        let took = super::nanoseconds();
        assert!(took > 0.0 && took.is_finite(), "{took}");
    }
}
