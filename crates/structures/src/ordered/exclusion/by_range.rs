//! One range lock for all updates of a map.

use super::sealed;
use spanlock::range::list::ListEx;
use spanlock::range::raw::RawRangeMutex;
use spanlock::range::{LockGuard, RangeMutex};

/// Updates lock the positions from their first predecessor to their key, in one range lock.
///
/// # When not to use it
/// When keys have few positions, such as texts that all begin alike: updates then wait for each other.
///
/// # Cost, fairness, blocking
/// One acquisition and one release of the range lock for an update that finds no other in its way. Nodes have no lock.
/// Fairness and blocking are those of the range lock.
///
/// # Source
/// *Scalable Range Locks for Scalable Address Spaces and Beyond* (Kogan, Dice and Issa, EuroSys 2020, §6).
#[derive(Debug, Default)]
pub struct ByRange<L: RawRangeMutex = ListEx> {
    lock: RangeMutex<L>,
}

impl<L: RawRangeMutex> ByRange<L> {
    /// Updates under this lock.
    #[must_use]
    pub const fn new(lock: L) -> Self {
        Self {
            lock: RangeMutex::from_raw(lock),
        }
    }
}

impl<L: RawRangeMutex> sealed::Exclusion for ByRange<L> {
    type OfNode = ();
    type Held<'a>
        = LockGuard<'a, L>
    where
        Self: 'a;

    #[inline]
    fn exclude<'a>(
        &'a self,
        from: u64,
        to: u64,
        _: impl Iterator<Item = &'a ()>,
    ) -> LockGuard<'a, L> {
        self.lock.lock(from..=to)
    }
}
