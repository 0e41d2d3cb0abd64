//! Processor time, and what waiting takes of it.

use crate::peers::AnyLock;
use std::ops::Range;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Processor time used so far by all threads of this process together; `None` where the system does not report it.
#[must_use]
pub fn time_of_process() -> Option<Duration> {
    #[cfg(unix)]
    return clock(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(unix))]
    None
}

/// Processor time used so far by the calling thread; `None` where the system does not report it.
#[must_use]
pub fn time_of_thread() -> Option<Duration> {
    #[cfg(unix)]
    return clock(rustix::time::ClockId::ThreadCPUTime);
    #[cfg(not(unix))]
    None
}

#[cfg(unix)]
fn clock(id: rustix::time::ClockId) -> Option<Duration> {
    rustix::time::clock_gettime(id).try_into().ok()
}

/// How much `clock` advances while `f` runs, and what `f` returns.
pub fn measure<R>(clock: fn() -> Option<Duration>, f: impl FnOnce() -> R) -> (Option<Duration>, R) {
    let before = clock();
    let result = f();
    let used = before
        .zip(clock())
        .map(|(before, after)| after.saturating_sub(before));
    (used, result)
}

/// Which share of the processors a program has that wants all of them for so long; `None` if the system does not tell.
#[must_use]
pub fn share_of_all(length: Duration) -> Option<f64> {
    let cores = crate::provenance::cores();
    let (started, before) = (Instant::now(), time_of_process()?);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while started.elapsed() < length {
                    std::hint::spin_loop();
                }
            });
        }
    });
    let asked = started.elapsed().as_secs_f64() * cores as f64;
    Some((time_of_process()?.saturating_sub(before)).as_secs_f64() / asked)
}

/// Processor time of a thread that waits for a range while another thread holds it for so long; `None` where the
/// system does not report it.
///
/// # Panics
/// When the lock does.
pub fn sleeper(lock: &dyn AnyLock, hold: Duration) -> Option<Duration> {
    const RANGE: Range<u64> = 0..64;
    let held = Barrier::new(2);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let guard = lock.write(RANGE);
            held.wait();
            std::thread::sleep(hold);
            drop(guard);
        });
        held.wait();
        let (used, guard) = measure(time_of_thread, || lock.write(RANGE));
        drop(guard);
        holder.join().expect("a holder sleeps and releases");
        used
    })
}
