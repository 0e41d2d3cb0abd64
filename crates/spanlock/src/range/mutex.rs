//! The typed exclusive range lock.

use super::guard::{Guards, LockGuard};
use super::inspect::Snapshot;
use super::many::{self, Exclusive};
use super::methods::{granted, many_ranges, one_range, over_raw_lock};
use super::raw::{RawRangeMutex, Wait};
use super::slots::{Builder, RawSlots};
use prim::clock::{Duration, Instant};
use std::fmt;
use std::ops::RangeBounds;

/// A mutual exclusion lock for ranges of one resource.
///
/// As [`RangeLock`](super::RangeLock), for requests that are all exclusive: no two holders' ranges overlap.
///
/// ```
/// use spanlock::range::RangeMutex;
///
/// let blocks = RangeMutex::new();
/// let mine = blocks.lock(0..8);
/// assert!(blocks.try_lock(7..=7).is_none());
/// assert!(blocks.try_lock(8..=8).is_some());
/// # drop(mine);
/// ```
///
/// # When not to use it
/// When there are readers: they would exclude each other. For the rest see [`RangeLock`](super::RangeLock).
///
/// # Cost, fairness, blocking, panics, misuse
/// As [`RangeLock`](super::RangeLock).
///
/// # Source
/// The default is the [slot lock](super::slots). The paper that brought range locks made of a list (P1 §4.1) has an
/// exclusive one: [`ListEx`](super::list::ListEx).
#[derive(Default)]
pub struct RangeMutex<L: RawRangeMutex = RawSlots> {
    raw: L,
}

over_raw_lock! {
    RangeMutex over RawRangeMutex, by default RawSlots, built by Builder;
    Exclusive as LockGuard: lock_within, lock_many_within;
}

impl<L: RawRangeMutex> RangeMutex<L> {
    one_range! {
        range of u64, by lock_within, as LockGuard<'_, L>;
        panics "When the range is reversed.";
        refused "because another request holds or awaits some of it";
        /// Locks a range; blocks while any other request holds any of it.
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it.
        lock, try_lock, try_lock_for, try_lock_until
    }

    many_ranges! {
        by lock_many_within, as LockGuard<'_, L>;
        does "Locks several ranges.";
        panics "When a range is reversed; in debug builds, when this thread holds some of them.";
        lock_many, try_lock_many, try_lock_many_for
    }
}
