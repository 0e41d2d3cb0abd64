//! The policy of a list lock, chosen when it is built.

use crate::range::mode::Mode;
use crate::range::wait::Patience;

/// Which request stays when a shared and an exclusive request meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preference {
    /// If both enter at the same time, the reader stays and the writer tries again (P1 §4.2 as published).
    Readers,
    /// If both enter at the same time, the writer stays. In a fair lock, a writer that sleeps has a reservation at
    /// once: readers that come later give way to it, in turns.
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

/// The whole policy except the patience, which the wait queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::range) struct Policy {
    pub(in crate::range) preference: Preference,
    pub(in crate::range) fast_path: FastPath,
}

impl Policy {
    pub(in crate::range) const DEFAULT: Self = Self {
        preference: Preference::Readers,
        fast_path: FastPath::On,
    };

    /// For a list that is rarely empty.
    pub(in crate::range) const INDEXED: Self = Self {
        fast_path: FastPath::Off,
        ..Self::DEFAULT
    };

    /// A request's patience, given its lock's.
    pub(super) fn patience(self, lock: Patience, mode: Mode) -> Patience {
        match (self.preference, mode) {
            (Preference::Writers, Mode::Exclusive) if lock != Patience::ENDLESS => Patience::NONE,
            _ => lock,
        }
    }
}
