//! Deadlines, as C expresses them.

use crate::answer::{Answer, ensure};
use crate::memory::given;
use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, EINVAL, c_int, timespec};
use prim::clock::{Duration, Instant};
use spanlock::range::raw::Wait;

/// A wait until a time on a clock. `EINVAL` for another clock than the two, for a time that is none, and for a null
/// pointer.
///
/// A deadline is converted when the call begins. If the clock is set while the thread waits, the wait does not follow.
///
/// # Safety
/// The pointer is null or valid.
pub(crate) unsafe fn until(clock: c_int, deadline: *const timespec) -> Answer<Wait> {
    // SAFETY: the caller's promise.
    let deadline = unsafe { given(deadline) }?;
    ensure(matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC), EINVAL)?;
    ensure((0..1_000_000_000).contains(&deadline.tv_nsec), EINVAL)?;
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is live, and the clock exists.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    let nanoseconds =
        |time: &timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let left = (nanoseconds(deadline) - nanoseconds(&now)).max(0);
    let left = u64::try_from(left).map_or(Duration::MAX, Duration::from_nanos);
    Ok(Wait::at_most(left))
}

/// How long it is until then.
pub(crate) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
