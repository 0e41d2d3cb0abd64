//! What a list lock can be told at construction.

use crate::range::queue::Claims;
use crate::range::raw::Mode;
use std::time::Duration;

/// Who goes first when requests keep overtaking one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Nobody waits but for holders. A request may be overtaken without end.
    Unfair,
    /// A request that finds its range taken again after waiting so long is overtaken no more by threads that hold
    /// nothing. Starvation-free.
    /// Counted in whole microseconds, and in an hour at most.
    After(Duration),
}

impl Fairness {
    /// Fair after a millisecond: long against a short critical section, so that throughput does not suffer, and
    /// short against what people notice.
    pub const DEFAULT: Self = Self::After(Duration::from_millis(1));
}

/// Which mode has its way when a shared and an exclusive request meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preference {
    /// Of two that enter at a time, the reader stays and the writer tries again (P1 §4.2 as published).
    Readers,
    /// Of two that enter at a time, the writer stays. In a fair lock, readers that come after a sleeping writer of
    /// an overlapping range wait for it.
    Writers,
}

impl Preference {
    #[inline]
    pub(super) fn favours(self, mode: Mode) -> bool {
        match self {
            Self::Readers => mode == Mode::Shared,
            Self::Writers => mode == Mode::Exclusive,
        }
    }
}

/// Whether an empty list takes a shortcut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastPath {
    /// A request that finds the list empty is granted by one compare-exchange and released by another (P1 §4.5).
    On,
    /// Every request walks the list, for comparison.
    Off,
}

/// More than the longest patience.
const NEVER: u32 = u32::MAX;

#[expect(clippy::cast_possible_truncation, reason = "an hour has fewer")]
const fn micros(duration: Duration) -> u32 {
    duration.as_micros() as u32
}

/// All of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    /// After how many microseconds of waiting a request has a claim.
    patience: u32,
    pub(super) preference: Preference,
    pub(super) fast_path: FastPath,
}

impl Policy {
    pub(super) const DEFAULT: Self = Self {
        patience: 0,
        preference: Preference::Readers,
        fast_path: FastPath::On,
    }
    .with_fairness(Fairness::DEFAULT);

    pub(super) const fn with_fairness(mut self, fairness: Fairness) -> Self {
        const LONGEST: Duration = Duration::from_secs(3600);
        self.patience = match fairness {
            Fairness::Unfair => NEVER,
            Fairness::After(patience) if patience.as_secs() < LONGEST.as_secs() => micros(patience),
            Fairness::After(_) => micros(LONGEST),
        };
        self
    }

    pub(super) const fn claims(&self) -> Claims {
        match self.patience {
            NEVER => Claims::Unknown,
            _ => Claims::Granted,
        }
    }

    /// Whether a request that has waited that long has a claim to its range.
    pub(super) fn grants_claim(&self, mode: Mode, waited: Duration) -> bool {
        let at_once = self.preference == Preference::Writers && mode == Mode::Exclusive;
        self.claims() == Claims::Granted
            && (at_once || waited.as_micros() >= u128::from(self.patience))
    }
}
