//! The typed exclusive range lock.

use super::guard::{Guards, Held, LockGuard};
use super::inspect::Snapshot;
use super::list::{Builder, ExclusiveOnly, ListEx};
use super::lock::granted;
use super::many;
use super::raw::{RawRangeMutex, Wait};
use super::span::Span;
use prim::clock::{Duration, Instant};
use std::fmt;
use std::ops::RangeBounds;

/// A mutual exclusion lock for ranges of one resource.
///
/// As [`RangeLock`](super::RangeLock), for those who only ever write: no two holders' ranges overlap.
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
/// When there are readers: they would exclude each other. Otherwise see [`RangeLock`](super::RangeLock).
///
/// # Cost, fairness, blocking, panics, misuse
/// As [`RangeLock`](super::RangeLock), less the second walk: insertion alone decides.
///
/// # Source
/// The default is the exclusive list lock of P1 §4.1 (Kogan, Dice, Issa, EuroSys 2020): see [`list`](super::list).
#[derive(Default)]
pub struct RangeMutex<L: RawRangeMutex = ListEx> {
    raw: L,
}

impl RangeMutex {
    prim::const_fn! {
        /// A lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self { raw: ListEx::new() }
        }
    }

    /// Begins a lock with another policy; [`Builder::build`] makes it, [`from_raw`](Self::from_raw) types it.
    pub const fn builder() -> Builder<ExclusiveOnly> {
        ListEx::builder()
    }
}

impl<L: RawRangeMutex> RangeMutex<L> {
    /// The typed face of a raw lock.
    #[must_use]
    pub const fn from_raw(raw: L) -> Self {
        Self { raw }
    }

    /// The raw lock.
    #[must_use]
    pub const fn raw(&self) -> &L {
        &self.raw
    }

    /// Locks a range; blocks while anybody holds any of it.
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread holds some of it.
    #[inline]
    #[track_caller]
    pub fn lock(&self, range: impl RangeBounds<u64>) -> LockGuard<'_, L> {
        granted(self.lock_within(range, Wait::Forever))
    }

    /// As [`lock`](Self::lock), but `None` if it would block: somebody holds some of it, or has waited too long for
    /// some of it.
    ///
    /// # Panics
    /// When the range is reversed.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self, range: impl RangeBounds<u64>) -> Option<LockGuard<'_, L>> {
        self.lock_within(range, Wait::Never)
    }

    /// As [`lock`](Self::lock), but `None` after `timeout`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_for(
        &self,
        range: impl RangeBounds<u64>,
        timeout: Duration,
    ) -> Option<LockGuard<'_, L>> {
        self.lock_within(range, Wait::at_most(timeout))
    }

    /// As [`lock`](Self::lock), but `None` at `deadline`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_lock_until(
        &self,
        range: impl RangeBounds<u64>,
        deadline: Instant,
    ) -> Option<LockGuard<'_, L>> {
        self.lock_within(range, Wait::Until(deadline))
    }

    /// Locks several ranges: all or none. Ranges that overlap or touch count as one.
    ///
    /// Does not deadlock with other calls that lock many, whatever their order, as long as the raw lock lets a thread
    /// that holds something pass requests that wait, as all of this library do. A thread that holds other ranges while
    /// it calls this answers for the order itself, as with any lock.
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when this thread holds some of them.
    #[track_caller]
    pub fn lock_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Guards<LockGuard<'_, L>> {
        granted(self.lock_many_within(ranges, Wait::Forever))
    }

    /// As [`lock_many`](Self::lock_many), but `None` if it would block.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_lock_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Option<Guards<LockGuard<'_, L>>> {
        self.lock_many_within(ranges, Wait::Never)
    }

    /// As [`lock_many`](Self::lock_many), but `None` after `timeout`.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_lock_many_for<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        timeout: Duration,
    ) -> Option<Guards<LockGuard<'_, L>>> {
        self.lock_many_within(ranges, Wait::at_most(timeout))
    }

    /// Who holds and who waits, for people who look for a hang; nothing, if the lock cannot tell.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.raw.snapshot().unwrap_or_default()
    }

    #[inline]
    #[track_caller]
    fn lock_within(&self, range: impl RangeBounds<u64>, wait: Wait) -> Option<LockGuard<'_, L>> {
        let token = match Span::of(range) {
            Some(span) => Some(self.raw.lock_exclusive(span, wait)?),
            None => None,
        };
        Some(LockGuard::new(Held::new(&self.raw, token)))
    }

    #[track_caller]
    fn lock_many_within<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
    ) -> Option<Guards<LockGuard<'_, L>>> {
        let spans = many::arrange(&self.raw, ranges);
        let held = many::acquire(many::Exclusive, &self.raw, &spans, wait)?;
        Some(Guards::new(held.into_iter().map(LockGuard::new).collect()))
    }
}

impl<L: RawRangeMutex> fmt::Debug for RangeMutex<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            holders, waiters, ..
        } = self.snapshot();
        f.debug_struct("RangeMutex")
            .field("holders", &holders)
            .field("waiters", &waiters)
            .finish()
    }
}
