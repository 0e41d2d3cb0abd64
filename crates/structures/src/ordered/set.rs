//! The set: a map without values.

use crate::ordered::exclusion::{ByRange, Exclusion};
use crate::ordered::key::Key;
use crate::ordered::map::{Iter, RangeSkipMap, View};
use spanlock::range::raw::RawRangeMutex;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{RangeBounds, RangeFull};

/// A concurrent ordered set: a [`RangeSkipMap`] without values, which states cost, progress and consistency.
///
/// ```
/// use spanlock_structures::ordered::RangeSkipSet;
///
/// let jobs: RangeSkipSet<u64> = [30, 10, 20].into_iter().collect();
/// assert!(jobs.insert(15));
/// assert!(jobs.remove(&20));
/// assert_eq!(jobs.pop_first(), Some(10));
/// assert_eq!(format!("{jobs:?}"), "{15, 30}");
/// ```
pub struct RangeSkipSet<K: Key, X: Exclusion = ByRange> {
    map: RangeSkipMap<K, (), X>,
}

impl<K: Key, X: Exclusion + Default> RangeSkipSet<K, X> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::with_exclusion(X::default())
    }
}

impl<K: Key, X: Exclusion> RangeSkipSet<K, X> {
    /// An empty set whose updates exclude each other by `exclusion`.
    #[must_use]
    pub fn with_exclusion(exclusion: X) -> Self {
        Self {
            map: RangeSkipMap::with_exclusion(exclusion),
        }
    }

    /// A view of the set, for one or a few operations: see [`RangeSkipMap::pin`].
    #[inline]
    #[must_use = "a view has the operations"]
    pub fn pin(&self) -> SetView<'_, K, X> {
        SetView(self.map.pin())
    }

    /// Whether the key is in the set. Wait-free.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.pin().contains(key)
    }

    /// Inserts a key; `false` if it is in the set already.
    #[inline]
    pub fn insert(&self, key: K) -> bool {
        self.pin().insert(key)
    }

    /// Removes a key; `false` if it is not in the set.
    #[inline]
    pub fn remove(&self, key: &K) -> bool {
        self.pin().remove(key).is_some()
    }

    /// Removes the smallest key and returns it.
    pub fn pop_first(&self) -> Option<K>
    where
        K: Clone,
    {
        self.pin().pop_first().cloned()
    }

    /// Whether the set has no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pin().is_empty()
    }
}

impl<K: Key, X: Exclusion + Default> Default for RangeSkipSet<K, X> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, X: Exclusion + Default> FromIterator<K> for RangeSkipSet<K, X> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::new();
        set.extend(keys);
        set
    }
}

impl<K: Key, X: Exclusion> Extend<K> for RangeSkipSet<K, X> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K: Key + fmt::Debug, X: Exclusion> fmt::Debug for RangeSkipSet<K, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

/// A view of a [`RangeSkipSet`], from [`pin`](RangeSkipSet::pin). It is to a set what a [`View`] is to a map.
pub struct SetView<'s, K: Key, X: Exclusion = ByRange>(View<'s, K, (), X>);

impl<K: Key, X: Exclusion> SetView<'_, K, X> {
    /// Whether the key is in the set. Wait-free.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }

    /// Inserts a key; `false` if it is in the set already, which then keeps the key that it has.
    #[inline]
    pub fn insert(&self, key: K) -> bool {
        self.0.get_or_insert(key, || ()).1
    }

    /// Removes a key and returns the one that was in the set.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<&K> {
        self.0.remove(key).map(|(key, ())| key)
    }

    /// Removes the smallest key and returns it.
    pub fn pop_first(&self) -> Option<&K> {
        self.0.pop_first().map(|(key, ())| key)
    }

    /// The smallest key.
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.0.first().map(|(key, ())| key)
    }

    /// The largest key.
    #[must_use]
    pub fn last(&self) -> Option<&K> {
        self.0.last().map(|(key, ())| key)
    }

    /// Whether the set has no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys in their order. Wait-free.
    pub fn iter(&self) -> Keys<'_, K, X> {
        Keys(self.0.iter())
    }

    /// The keys in a range, in their order. Wait-free.
    pub fn range<R: RangeBounds<K>>(&self, range: R) -> Keys<'_, K, X, R> {
        Keys(self.0.range(range))
    }
}

impl<K: Key, L: RawRangeMutex> SetView<'_, K, ByRange<L>> {
    /// The keys in a range, all as they were at one moment: see [`View::snapshot`].
    #[must_use]
    pub fn snapshot<R: RangeBounds<K>>(&self, range: R) -> Vec<&K> {
        keys_of(self.0.snapshot(range))
    }

    /// Removes all keys in a range in one step, and returns them in order: see [`View::remove_range`].
    pub fn remove_range<R: RangeBounds<K>>(&self, range: R) -> Vec<&K> {
        keys_of(self.0.remove_range(range))
    }
}

fn keys_of<'v, K>(entries: Vec<(&'v K, &'v ())>) -> Vec<&'v K> {
    entries.into_iter().map(|(key, ())| key).collect()
}

impl<K: Key + fmt::Debug, X: Exclusion> fmt::Debug for SetView<'_, K, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The keys of a set in their order, from [`SetView::iter`] and [`SetView::range`].
#[must_use = "iterators do nothing unless they are used"]
pub struct Keys<'v, K: Key, X: Exclusion = ByRange, R = RangeFull>(Iter<'v, K, (), X, R>);

impl<'v, K: Key, X: Exclusion, R: RangeBounds<K>> Iterator for Keys<'v, K, X, R> {
    type Item = &'v K;

    #[inline]
    fn next(&mut self) -> Option<&'v K> {
        self.0.next().map(|(key, ())| key)
    }
}

impl<K: Key, X: Exclusion, R: RangeBounds<K>> FusedIterator for Keys<'_, K, X, R> {}

impl<K: Key, X: Exclusion, R> fmt::Debug for Keys<'_, K, X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
