//! Time as a counter: each look at the clock is a microsecond later than the one before.

pub use core::time::Duration;

use core::ops::Add;

/// Nanoseconds since the execution began.
#[must_use]
pub fn nanoseconds() -> u64 {
    let Instant(since) = Instant::now();
    u64::try_from(since.as_nanos()).expect("executions are short")
}

/// A point in an execution's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The time now, later than ever before.
    #[must_use]
    pub fn now() -> Self {
        crate::with_execution(|execution| {
            execution.ticks += 1;
            Self(Duration::from_micros(execution.ticks))
        })
    }

    /// How much later this is than `earlier`; nothing if it is not.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since then.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    /// This and so much, unless that is too late to be told.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}
