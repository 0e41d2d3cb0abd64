//! Monotonic time. On a model checker time is a counter.

pub use std::time::{Duration, Instant};

/// Nanoseconds since some moment before the process began.
///
/// The function keeps no state. So a child can call it even if it was forked while another thread made its first call.
#[cfg(target_os = "linux")]
#[must_use]
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is live and writable for the call. The call cannot fail, because every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since some moment early in the process's life.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn nanoseconds() -> u64 {
    static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let since = Instant::now().saturating_duration_since(*ORIGIN.get_or_init(Instant::now));
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, nanoseconds};

    #[test]
    fn nanoseconds_are_those_of_instants() {
        let (before, start) = (nanoseconds(), Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        let (by_instant, by_count) = (start.elapsed(), nanoseconds() - before);
        assert!(Duration::from_nanos(by_count) >= by_instant);
    }
}
