//! How long an acquisition may wait.

use prim::clock::{Duration, Instant};

/// How long an acquisition may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: it is a try.
    Never,
    /// Until a point in time.
    Until(Instant),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// For that long from now; forever, if the end is later than an [`Instant`] can express.
    #[must_use]
    pub fn at_most(timeout: Duration) -> Self {
        Instant::now()
            .checked_add(timeout)
            .map_or(Self::Forever, Self::Until)
    }

    /// The point in time at which to give up, if there is one.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::Never | Self::Forever => None,
        }
    }

    /// Whether there is no time left to wait.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Never => true,
            Self::Until(deadline) => Instant::now() >= deadline,
            Self::Forever => false,
        }
    }
}
