//! Processor time.

use std::time::Duration;

/// Processor time used so far by all threads of this process together; `None` where the system does not tell.
#[must_use]
pub fn time_of_process() -> Option<Duration> {
    #[cfg(unix)]
    return clock(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(unix))]
    None
}

/// Processor time used so far by the calling thread; `None` where the system does not tell.
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
