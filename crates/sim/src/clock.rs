//! Virtual time: the running thread's clock.

pub use core::time::Duration;

use core::ops::Add;

/// Nanoseconds since the run began.
#[must_use]
pub fn nanoseconds() -> u64 {
    u64::try_from(Instant::now().since_start().as_nanos()).unwrap_or(u64::MAX)
}

/// A point in a run's time. Outside a run there is only its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The time now. Looking at the clock takes some cycles.
    #[must_use]
    pub fn now() -> Self {
        const LOOK: u64 = 25;
        crate::world::work(LOOK);
        let now = crate::world::peek(|world| world.duration(world.current().time));
        Self(now.unwrap_or_default())
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

    pub(crate) fn since_start(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}
