//! The typed lock over keys.

use super::OverKeys;
use super::index::KeyIndex;
use super::order::KeyOrder;
use super::{Builder, Compare, Key, Natural};
use crate::range::Limited;
use crate::range::guard::{Guards, HeldToken, ReadGuard, WriteGuard};
use crate::range::list::{RawList, SharedExclusive};
use crate::range::many::{self, AcquireMode, Exclusive, Shared};
use crate::range::methods::{granted, many_ranges, one_range};
use crate::range::order::Ranges;
use crate::range::raw::{Ask, Wait};
use crate::range::sought::Sought;
use prim::clock::{Duration, Instant};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// The raw lock of a [`KeyRangeLock`]: a list lock whose words name keys. Only the typed lock makes such words.
pub type RawKeys<K, C> = RawList<SharedExclusive, KeyIndex<K, C>>;

/// A reader-writer lock for ranges of keys, of any type and in any order.
///
/// Two holders exclude each other only if their ranges overlap and at least one of them writes. Which keys exist the
/// lock does not know: a range is what lies between two ends, and between two different keys there may be another.
///
/// ```
/// use spanlock::range::keys::{KeyRangeLock, between, point, prefix};
///
/// let table = KeyRangeLock::<[u8]>::new();
/// let users = table.write(prefix(b"user/"));
/// let orders = table.read(between(b"order/1", b"order/2"));
/// assert!(table.try_read(point(b"user/7")).is_none());
/// assert!(table.try_read(point(b"order/17")).is_some());
/// drop((users, orders));
///
/// // An order that is known at run time alone, and keys that have a size.
/// let backwards = |a: &u128, b: &u128| b.cmp(a);
/// let numbers = KeyRangeLock::<u128, _>::ordered_by(backwards);
/// let few = numbers.write(9..=3);
/// assert!(numbers.try_read(4..=4).is_none());
/// # drop(few);
/// ```
///
/// `K` is what keys are lent as: `[u8]` and not `Vec<u8>`, `str` and not `String`.
///
/// A lock over keys of a type is none over another one, also where that is a subtype:
///
/// ```compile_fail
/// use spanlock::range::keys::{KeyRangeLock, Natural};
///
/// fn other<'l>(
///     lock: &'l KeyRangeLock<fn(&'static u8), Natural>,
/// ) -> &'l KeyRangeLock<for<'a> fn(&'a u8), Natural> {
///     lock
/// }
/// ```
///
/// # When not to use it
/// - Keys are integers of up to 64 bits, IPv4 addresses or times: [`positions`](crate::range::positions()) maps them to
///   a [`RangeLock`](crate::range::RangeLock), which costs less and has slots.
/// - Only single keys are locked, and it does no harm if some that differ exclude each other: locks that a hash of the
///   key chooses cost less.
/// - Many threads do nothing but lock, on many processors: the ranges held are one list, and they compete for its
///   lines, also where their ranges are disjoint.
///
/// # Cost
/// Uncontended, two atomic operations, and a copy of each key; no allocation once the thread is warm and keys are no
/// longer than earlier ones, and no system call. Else a walk among the ranges held, with a comparison for each range
/// passed. With more than some ranges held, an index shortens the walk, unless a writer meets a *scan*, a shared range
/// of more than one key, anywhere in the lock: then it walks from the first range.
///
/// A range held takes about 400 bytes and its keys, from a pool of some 25 KiB for each thread. Released keys stay
/// there, and are freed when the thread writes others in their place, or exits. The lock itself takes about one and a
/// half KiB.
///
/// # Fairness
/// As [`RangeLock`](crate::range::RangeLock#fairness).
///
/// # Blocking, panics, misuse
/// - As [`RangeLock`](crate::range::RangeLock#blocking-panics-misuse), and:
/// - A comparison that panics ends the request that makes it, with that panic. Nothing of it stays held, and those who
///   wait go on. A thread that compares for others, as it releases what they wait for, does not panic.
/// - A comparator that contradicts itself costs exclusion, or has requests wait for each other that do not overlap. It
///   costs neither memory safety nor the end of a walk.
/// - Comparators, and `Clone`, `Drop` and `Debug` of keys, must not use any range lock. A use of this one may hang.
///   Where one is searched, a use of any that searches as well panics, in all builds: a comparator panics then.
/// - Keys are dropped by any thread that has used a lock over keys, also as it exits, or by the timer's. A panic there
///   is heard by nobody.
/// - Guards have no `span()`: [`snapshot`](Self::snapshot) lists the ranges.
///
/// # Source
/// The [list locks](crate::range::list) and [skip lists](crate::range::skip) of this library. `docs/keys.md` explains
/// what keys add.
pub struct KeyRangeLock<K: ?Sized + Key, C: Compare<K> = Natural, L = RawKeys<K, C>> {
    pub(in crate::range) raw: L,
    keys: PhantomData<KeyOrder<K, C>>,
}

impl<K: ?Sized + Key + Ord> KeyRangeLock<K> {
    /// A fair lock over keys in their natural order.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins a lock with another policy. For keys without an order of their own: [`Builder::new`].
    pub const fn builder() -> Builder<K> {
        Builder::new()
    }
}

impl<K: ?Sized + Key, C: Compare<K>> KeyRangeLock<K, C> {
    /// A fair lock over keys in that order.
    #[must_use]
    pub fn ordered_by(compare: C) -> Self {
        Builder::new().ordered_by(compare).build()
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    pub(super) fn from_raw(raw: L) -> Self {
        let keys = PhantomData;
        Self { raw, keys }
    }

    /// Makes it a lock of which all owners together may hold or await `limit` ranges: see [`Limited`].
    ///
    /// ```
    /// use spanlock::range::keys::{KeyRangeLock, point};
    /// use spanlock::range::{Owner, Refusal};
    ///
    /// let table = KeyRangeLock::<str>::new().limited(1);
    /// let client = Owner::new();
    /// let held = table.by(&client).write(point("a"))?;
    /// assert_eq!(table.by(&client).read(point("b")).map(drop), Err(Refusal::LockFull));
    /// assert_eq!(table.held_or_awaited(), 1);
    /// # drop(held);
    /// # Ok::<(), Refusal>(())
    /// ```
    #[must_use]
    pub fn limited(self, limit: usize) -> KeyRangeLock<K, C, Limited<L>> {
        KeyRangeLock::from_raw(Limited::new(self.raw, limit))
    }

    /// How its ranges compare.
    pub(super) fn order(&self) -> &KeyOrder<K, C> {
        self.raw.keys().order()
    }

    #[track_caller]
    fn acquire<M: AcquireMode<L>>(
        &self,
        range: &impl RangeBounds<K>,
        wait: Wait,
    ) -> Option<HeldToken<'_, L>> {
        let token = match self.order().sought(range) {
            Some(sought) => Some(M::acquire(&self.raw, Ask::new(sought.offer(), wait))?),
            None => None,
        };
        Some(HeldToken::new(&self.raw, token))
    }

    #[track_caller]
    fn read_within(&self, range: impl RangeBounds<K>, wait: Wait) -> Option<ReadGuard<'_, L>> {
        self.acquire::<Shared>(&range, wait).map(ReadGuard::new)
    }

    #[track_caller]
    fn write_within(&self, range: impl RangeBounds<K>, wait: Wait) -> Option<WriteGuard<'_, L>> {
        self.acquire::<Exclusive>(&range, wait).map(WriteGuard::new)
    }

    one_range! {
        range of K, by read_within, as ReadGuard<'_, L>;
        panics "When the range is reversed, or a comparison panics.";
        refused "because a writer holds or awaits some of it";
        /// Locks a range with other readers; blocks while a writer holds any of it.
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics; in debug builds, when this thread holds some of it
        /// exclusively.
        read, try_read, try_read_for, try_read_until
    }

    one_range! {
        range of K, by write_within, as WriteGuard<'_, L>;
        panics "When the range is reversed, or a comparison panics.";
        refused "because another request holds some of it, or a writer awaits it";
        /// Locks a range alone; blocks while any other request holds any of it.
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics; in debug builds, when this thread holds some of it.
        write, try_write, try_write_for, try_write_until
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    many_ranges! {
        of K, by read_many_within, as ReadGuard<'_, L>;
        does "Locks several ranges with other readers.";
        panics "When a range is reversed, or a comparison panics; in debug builds, when this thread holds some of them exclusively.";
        read_many, try_read_many, try_read_many_for
    }

    many_ranges! {
        of K, by write_many_within, as WriteGuard<'_, L>;
        does "Locks several ranges alone.";
        panics "When a range is reversed, or a comparison panics; in debug builds, when this thread holds some of them.";
        write_many, try_write_many, try_write_many_for
    }

    #[track_caller]
    fn read_many_within<R: RangeBounds<K>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
    ) -> Option<Guards<ReadGuard<'_, L>>> {
        self.acquire_many::<Shared, _, _>(ranges, wait, ReadGuard::new)
    }

    #[track_caller]
    fn write_many_within<R: RangeBounds<K>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
    ) -> Option<Guards<WriteGuard<'_, L>>> {
        self.acquire_many::<Exclusive, _, _>(ranges, wait, WriteGuard::new)
    }

    #[track_caller]
    fn acquire_many<'a, M: AcquireMode<L>, R: RangeBounds<K>, G>(
        &'a self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
        guard: impl FnMut(HeldToken<'a, L>) -> G,
    ) -> Option<Guards<G>> {
        let order = self.order();
        let mut all = Vec::new();
        for range in ranges {
            all.extend(order.sought(&range));
        }
        let spans = many::arrange(&self.raw, order, all.iter().map(Sought::span).collect());
        // Where ranges are joined, the ends are those of two of them.
        let joined: Vec<_> = spans.iter().map(|&span| order.part(span)).collect();
        let spans = joined.iter().map(Sought::span).collect();
        many::acquire_spans::<_, M, _>(&self.raw, spans, wait, guard)
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, Limited<L>> {
    /// How many ranges owners hold or wait for. Pieces count.
    #[must_use]
    pub fn held_or_awaited(&self) -> usize {
        self.raw.held_or_awaited()
    }
}

impl<K: ?Sized + Key + Ord> Default for KeyRangeLock<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> fmt::Debug for KeyRangeLock<K, C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.snapshot();
        f.debug_struct("KeyRangeLock")
            .field("holders", &listed.holders)
            .field("waiters", &listed.waiters)
            .finish()
    }
}
