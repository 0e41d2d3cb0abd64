//! What keys are, and what compares them.

use prim::sync::Arc;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// A type of keys: of anything that is shown and copied, and that threads may share. `[u8]`, `str`, and each type that
/// is `Clone + Debug + Send + Sync + 'static`. It need not be ordered: a [`Compare`] may do that.
pub trait Key:
    ToOwned<Owned: Borrow<Self> + Send + Sync + 'static> + fmt::Debug + Sync + 'static
{
}

impl<K: ?Sized> Key for K where
    K: ToOwned<Owned: Borrow<K> + Send + Sync + 'static> + fmt::Debug + Sync + 'static
{
}

/// An order of keys, which may be known at run time alone: a collation, or the comparator of a table.
///
/// It is a total order, and the same at any time. If it is not, ranges that overlap may be held together, or ranges
/// that do not may exclude each other; nothing else happens. A panic ends the request that asked, or is heard by nobody
/// where an innocent thread compares: see [`KeyRangeLock`](super::KeyRangeLock#blocking-panics-misuse).
///
/// It is called while a lock is searched, often, and by any thread that locks or releases. So it should be short, must
/// not block for long, and must not use any range lock: this one may hang, and any may panic, also in release builds.
/// To drop the last reference to a lock is to use it.
///
/// Closures are comparators, and [`Natural`] is the order of [`Ord`].
pub trait Compare<K: ?Sized>: Send + Sync + 'static {
    /// Which of the keys comes first.
    fn compare(&self, one: &K, other: &K) -> Ordering;
}

/// The order of [`Ord`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Natural;

impl<K: ?Sized + Ord> Compare<K> for Natural {
    #[inline]
    fn compare(&self, one: &K, other: &K) -> Ordering {
        one.cmp(other)
    }
}

impl<K: ?Sized, F: Fn(&K, &K) -> Ordering + Send + Sync + 'static> Compare<K> for F {
    #[inline]
    fn compare(&self, one: &K, other: &K) -> Ordering {
        self(one, other)
    }
}

/// An order that is known at run time alone.
impl<K: ?Sized + 'static> Compare<K> for Arc<dyn Compare<K>> {
    #[inline]
    fn compare(&self, one: &K, other: &K) -> Ordering {
        (**self).compare(one, other)
    }
}

/// The one key. For keys of a type without a size, for which `key..=key` cannot be written: of a `String` or `&str`
/// where keys are `str`, of an array, a slice or a `Vec` where they are slices.
#[inline]
#[must_use]
pub fn point<K: ?Sized, B: Borrow<K> + ?Sized>(key: &B) -> (Bound<&K>, Bound<&K>) {
    (Bound::Included(key.borrow()), Bound::Included(key.borrow()))
}

/// The keys from `start` on and before `end`: as [`point`], for keys for which `start..end` cannot be written.
#[inline]
#[must_use]
pub fn between<'k, K: ?Sized, A: Borrow<K> + ?Sized, B: Borrow<K> + ?Sized>(
    start: &'k A,
    end: &'k B,
) -> (Bound<&'k K>, Bound<&'k K>) {
    (
        Bound::Included(start.borrow()),
        Bound::Excluded(end.borrow()),
    )
}

/// All byte strings that begin with `prefix`, where these are in their [natural](Natural) order. Costs an allocation.
///
/// ```
/// use spanlock::range::keys::{KeyRangeLock, point, prefix};
///
/// let table = KeyRangeLock::<[u8]>::new();
/// let users = table.write(prefix(b"user/"));
/// assert!(table.try_read(point(b"user/7")).is_none());
/// assert!(table.try_read(point(b"user0")).is_some());
/// # drop(users);
/// ```
#[must_use]
pub fn prefix(prefix: &[u8]) -> Prefix {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX);
    let behind = last.map(|last| {
        let mut behind = prefix[..=last].to_vec();
        behind[last] += 1;
        behind
    });
    Prefix {
        start: prefix.to_vec(),
        behind,
    }
}

/// The byte strings that begin alike: from [`prefix`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    start: Vec<u8>,
    /// The first byte string behind all of them, if there is one.
    behind: Option<Vec<u8>>,
}

impl RangeBounds<[u8]> for Prefix {
    fn start_bound(&self) -> Bound<&[u8]> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&[u8]> {
        self.behind
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded)
    }
}
