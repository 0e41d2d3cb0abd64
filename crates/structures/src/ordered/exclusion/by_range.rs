//! One range lock for all updates of a map.
//!
//! ```text
//!   level 2    3 ------------------------------------------------------> 50        insert 40 with three levels:
//!   level 1    3 ------------------------------> 37 -------------------> 50          locks 3, 37 and 38
//!   level 0    3 -> ... -------------------------> 37 -> 38 -----------> 50        remove all of 37 ..= 45:
//!                                                                                    locks 3, and 36 ..= 45
//! ```
//!
//! A tower of many levels has predecessors far from its key. A range from there to the key would be in the way of all
//! updates in between. And it would be too wide for the buckets of a [slot lock](spanlock::range::slots): one such
//! request makes all others look at all slots. So an update asks for the positions alone.

use super::sealed;
use smallvec::SmallVec;
use spanlock::range::raw::RawRangeMutex;
use spanlock::range::slots::RawSlots;
use spanlock::range::{Guards, LockGuard, RangeMutex};

/// Updates lock the positions of the nodes that they change, in one range lock.
///
/// # When not to use it
/// When keys have few positions, such as texts that all begin alike: updates then wait for each other.
///
/// # Cost, fairness, blocking
/// Nodes have no lock. An update asks for as many positions as it has predecessors that differ, two on average; a
/// removal for one more. Fairness and blocking are those of the range lock.
///
/// # Source
/// *Scalable Range Locks for Scalable Address Spaces and Beyond* (Kogan, Dice and Issa, EuroSys 2020, §6). The paper's
/// updates lock everything from the first predecessor to the key.
#[derive(Debug, Default)]
pub struct ByRange<L: RawRangeMutex = RawSlots> {
    lock: RangeMutex<L>,
}

/// Ranges of positions: the first and the last of each.
pub(crate) type Pieces = SmallVec<[(u64, u64); 8]>;

impl<L: RawRangeMutex> ByRange<L> {
    /// Updates under this lock.
    #[must_use]
    pub const fn new(lock: L) -> Self {
        Self {
            lock: RangeMutex::from_raw(lock),
        }
    }

    /// Holds ranges of positions, given by the first and the last of each. They may overlap.
    pub(crate) fn hold(&self, pieces: &[(u64, u64)]) -> HeldRanges<'_, L> {
        match pieces {
            [(first, last)] => HeldRanges::One(self.lock.lock(*first..=*last)),
            several => {
                let ranges = several.iter().map(|(first, last)| *first..=*last);
                HeldRanges::Several(self.lock.lock_many(ranges))
            }
        }
    }
}

/// What an update holds.
#[derive(Debug)]
pub enum HeldRanges<'a, L: RawRangeMutex> {
    /// One range.
    One(LockGuard<'a, L>),
    /// Several.
    Several(Guards<LockGuard<'a, L>>),
}

/// Adds positions, from the largest down. The same may come several times in a row.
#[inline]
pub(crate) fn add_each(pieces: &mut Pieces, positions: impl Iterator<Item = u64>) {
    for position in positions {
        let piece = (position, position);
        if pieces.last() != Some(&piece) {
            pieces.push(piece);
        }
    }
}

impl<L: RawRangeMutex> sealed::Exclusion for ByRange<L> {
    type OfNode = ();
    type Held<'a>
        = HeldRanges<'a, L>
    where
        Self: 'a;

    #[inline]
    fn exclude<'a>(&'a self, changed: impl Iterator<Item = (u64, &'a ())>) -> HeldRanges<'a, L> {
        let mut pieces = Pieces::new();
        add_each(&mut pieces, changed.map(|(position, ())| position));
        self.hold(&pieces)
    }
}
