//! The typed exclusive range lock.

use super::guard::{Guards, LockGuard};
use super::holding::{self, By, Holding, Lock, LockBy, TryLock, places};
use super::inspect::Snapshot;
use super::many::{self, Exclusive};
use super::methods::{for_tasks, granted, many_ranges, one_range, over_raw_lock};
use super::owner::Owner;
use super::raw::{Mode, RawOwnedMutex, RawRangeMutex, Wait};
use super::slots::{Builder, RawSlots};
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
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

impl<L: RawOwnedMutex> RangeMutex<L> {
    /// This lock as `owner` sees it: what is acquired by the result is held by the owner, and not by the thread.
    ///
    /// ```
    /// use spanlock::range::{Owner, RangeMutex};
    ///
    /// let blocks = RangeMutex::new();
    /// let client = Owner::new();
    /// let mut held = blocks.by(&client).write(0..8)?;
    /// held.extend(8..16)?;
    /// held.release(0..4);
    /// assert!(blocks.try_lock(0..4).is_some() && blocks.try_lock(15..16).is_none());
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    ///
    /// Nothing of it is shared, also by owners:
    ///
    /// ```compile_fail,E0599
    /// # use spanlock::range::{Owner, RangeMutex};
    /// let _ = RangeMutex::new().by(&Owner::new()).read(0..8);
    /// ```
    pub fn by<'o>(&self, owner: &'o Owner) -> By<'o, &Self> {
        By::new(self, owner)
    }

    /// As [`by`](Self::by), where what is held is to keep the lock.
    pub fn by_arc<'o>(self: &Arc<Self>, owner: &'o Owner) -> By<'o, Arc<Self>> {
        By::new(Arc::clone(self), owner)
    }

    one_range! {
        owned range of u64, by lock_owned_within, as Holding<Arc<Self>>;
        panics "When the range is reversed.";
        refused "because another request holds or awaits some of it";
        /// As [`lock`](Self::lock), where what is held keeps the lock, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it.
        lock_owned, try_lock_owned, try_lock_owned_for, try_lock_owned_until
    }

    #[track_caller]
    fn lock_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<u64>,
        wait: Wait,
    ) -> Option<Holding<Arc<Self>>> {
        let (lock, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = Holding::acquire(lock, &anonymous, range, Mode::Exclusive, wait);
        holding::of_anonymous(held, wait)
    }
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
        of u64, by lock_many_within, as LockGuard<'_, L>;
        does "Locks several ranges.";
        panics "When a range is reversed; in debug builds, when this thread holds some of them.";
        lock_many, try_lock_many, try_lock_many_for
    }
}

places!(RangeMutex over RawOwnedMutex);

impl<L: RawOwnedMutex> RangeMutex<L> {
    for_tasks! {
        u64, Exclusive;
        /// As [`lock`](Self::lock), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// # Panics
        /// When the range is reversed.
        lock_async, try_lock_async_for; lock_owned_async, try_lock_owned_async_for
    }
}
