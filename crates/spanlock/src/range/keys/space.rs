//! Many tables: a lock over keys for each, and calls that lock in several at once.
//!
//! # Edges
//!
//! - **tables-ascend**: a call that holds some of its ranges waits for the others in the order of the tables' numbers,
//!   however the program orders them. So no two calls wait for each other.

use super::{Compare, Key, KeyRangeLock, Natural};
use crate::range::holding::{Holding, tables};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{Mode, Wait};
use prim::atomic::{AtomicU64, Ordering};
use prim::clock::Duration;
use prim::sync::Arc;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};

/// Tables of keys, each with a comparator of its own, in which an [`Owner`] locks ranges by one call.
///
/// Ranges of different tables never exclude each other. What is locked in a single table is locked by the methods of
/// its lock, to which a [`Table`] leads.
///
/// ```
/// use spanlock::range::Owner;
/// use spanlock::range::keys::{KeySpace, Natural, point, prefix};
/// use spanlock::range::raw::Mode::{Exclusive, Shared};
///
/// let space = KeySpace::<[u8]>::new();
/// let (users, orders) = (space.table(Natural), space.table(Natural));
/// let transaction = Owner::new();
/// let wanted = [
///     (&users, prefix(b"ann"), Shared),
///     (&orders, prefix(b"ann"), Exclusive),
/// ];
/// let held = space.lock_many(&transaction, wanted)?;
/// assert!(users.try_read(point(b"anna")).is_some());
/// assert!(orders.try_read(point(b"anna")).is_none());
/// # drop(held);
/// # Ok::<(), spanlock::range::Refusal>(())
/// ```
///
/// # Cost
/// A table is a [`KeyRangeLock`]. A call costs what its ranges cost one by one, and sorts them.
pub struct KeySpace<K: ?Sized + Key, C: Compare<K> = Natural> {
    made: AtomicU64,
    tables: PhantomData<fn(&K, C)>,
}

/// A table of a [`KeySpace`]: its lock, which the clones of the table share.
pub struct Table<K: ?Sized + Key, C: Compare<K> = Natural> {
    number: u64,
    lock: Arc<KeyRangeLock<K, C>>,
}

impl<K: ?Sized + Key, C: Compare<K>> Table<K, C> {
    /// How many tables its space had before.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its lock.
    #[must_use]
    pub fn lock(&self) -> &Arc<KeyRangeLock<K, C>> {
        &self.lock
    }

    /// What calls agree on: the number, and between tables of several spaces where the lock is.
    fn place(&self) -> (u64, usize) {
        (self.number, Arc::as_ptr(&self.lock).addr())
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Deref for Table<K, C> {
    type Target = KeyRangeLock<K, C>;

    fn deref(&self) -> &KeyRangeLock<K, C> {
        &self.lock
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Clone for Table<K, C> {
    fn clone(&self) -> Self {
        let lock = Arc::clone(&self.lock);
        Self { lock, ..*self }
    }
}

impl<K: ?Sized + Key, C: Compare<K>> fmt::Debug for Table<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("number", &self.number)
            .field("lock", &self.lock)
            .finish()
    }
}

/// What an owner holds of several tables: of each, by its number, in ascending order. Dropping it releases all.
pub type TableHoldings<K, C> = Vec<(u64, Holding<Arc<KeyRangeLock<K, C>>>)>;

impl<K: ?Sized + Key, C: Compare<K>> KeySpace<K, C> {
    /// Without tables.
    #[must_use]
    pub fn new() -> Self {
        Self {
            made: AtomicU64::new(0),
            tables: PhantomData,
        }
    }

    /// Adds a table whose keys are in that order. It lives as long as the result, its clones, and what is held there.
    #[must_use]
    pub fn table(&self, compare: C) -> Table<K, C> {
        self.table_of(KeyRangeLock::ordered_by(compare))
    }

    /// Adds a table with that lock.
    #[must_use]
    pub fn table_of(&self, lock: KeyRangeLock<K, C>) -> Table<K, C> {
        Table {
            number: self.made.fetch_add(1, Ordering::Relaxed),
            lock: Arc::new(lock),
        }
    }

    /// Locks ranges of several tables for an owner, all or none. Blocks while others hold some of them in the way.
    /// Ranges of one table that overlap count as one where they do, and the stronger mode wins.
    ///
    /// Does not deadlock with other calls that lock many, of owners or of threads, in one table or in several, whatever
    /// their order. An owner that holds other ranges meanwhile is responsible for the order itself.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::TooMany`].
    ///
    /// # Panics
    /// When a range is reversed, or a comparison panics; in debug builds, when what this thread has locked, for
    /// itself or for this owner, is in the way.
    #[track_caller]
    pub fn lock_many<'t, R: RangeBounds<K>>(
        &self,
        owner: &Owner,
        wanted: impl IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
    ) -> Result<TableHoldings<K, C>, Refusal> {
        self.lock_many_within(owner, wanted, Wait::Forever)
    }

    /// As [`lock_many`](Self::lock_many), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed, or a comparison panics.
    #[track_caller]
    pub fn try_lock_many<'t, R: RangeBounds<K>>(
        &self,
        owner: &Owner,
        wanted: impl IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
    ) -> Result<TableHoldings<K, C>, Refusal> {
        self.lock_many_within(owner, wanted, Wait::Never)
    }

    /// As [`lock_many`](Self::lock_many), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed, or a comparison panics.
    #[track_caller]
    pub fn try_lock_many_for<'t, R: RangeBounds<K>>(
        &self,
        owner: &Owner,
        wanted: impl IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
        timeout: Duration,
    ) -> Result<TableHoldings<K, C>, Refusal> {
        self.lock_many_within(owner, wanted, Wait::at_most(timeout))
    }

    /// As [`lock_many`](Self::lock_many), for a task: a future, which waits without blocking a thread. It does nothing
    /// until it is polled.
    ///
    /// In its first three rounds it holds nothing while it waits. In the last it keeps what it has. So its task must be
    /// polled, as one that holds a range. A future that is dropped releases what it has.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed, or a comparison panics.
    #[track_caller]
    pub fn lock_many_async<'t, R, I>(
        &self,
        owner: &Owner,
        wanted: I,
    ) -> impl Future<Output = Result<TableHoldings<K, C>, Refusal>> + use<'t, K, C, R, I>
    where
        R: RangeBounds<K>,
        I: IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
    {
        Self::lock_many_soon(owner, wanted, Wait::Forever)
    }

    /// As [`lock_many_async`](Self::lock_many_async), but [`Refusal::Busy`] after `timeout`.
    ///
    /// # Errors
    /// See there.
    ///
    /// # Panics
    /// When a range is reversed, or a comparison panics.
    #[track_caller]
    pub fn try_lock_many_async_for<'t, R, I>(
        &self,
        owner: &Owner,
        wanted: I,
        timeout: Duration,
    ) -> impl Future<Output = Result<TableHoldings<K, C>, Refusal>> + use<'t, K, C, R, I>
    where
        R: RangeBounds<K>,
        I: IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
    {
        Self::lock_many_soon(owner, wanted, Wait::at_most(timeout))
    }

    #[track_caller]
    fn lock_many_soon<'t, R, I>(
        owner: &Owner,
        wanted: I,
        wait: Wait,
    ) -> impl Future<Output = Result<TableHoldings<K, C>, Refusal>> + use<'t, K, C, R, I>
    where
        R: RangeBounds<K>,
        I: IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
    {
        let ByTable {
            numbers,
            nothing,
            ranges,
        } = ByTable::of(owner, wanted);
        let held = tables::lock_all_soon(nothing, ranges, wait);
        async move { Ok(numbers.into_iter().zip(held.await?).collect()) }
    }

    #[track_caller]
    fn lock_many_within<'t, R: RangeBounds<K>>(
        &self,
        owner: &Owner,
        wanted: impl IntoIterator<Item = (&'t Table<K, C>, R, Mode)>,
        wait: Wait,
    ) -> Result<TableHoldings<K, C>, Refusal> {
        let ByTable {
            numbers,
            nothing,
            ranges,
        } = ByTable::of(owner, wanted);
        let held = tables::lock_all(nothing, ranges, wait)?;
        Ok(numbers.into_iter().zip(held).collect())
    }
}

/// What is wanted of each table, in the order that all calls agree on.
struct ByTable<K: ?Sized + Key, C: Compare<K>, R> {
    numbers: Vec<u64>,
    nothing: Vec<Holding<Arc<KeyRangeLock<K, C>>>>,
    ranges: Vec<Vec<(R, Mode)>>,
}

impl<K: ?Sized + Key, C: Compare<K>, R> ByTable<K, C, R> {
    fn of<'t>(owner: &Owner, wanted: impl IntoIterator<Item = (&'t Table<K, C>, R, Mode)>) -> Self {
        let mut by_table = BTreeMap::new();
        for (table, range, mode) in wanted {
            // [tables-ascend] In the mutant, as the program has named them.
            let place = match prim::intact!("tables-ascend") {
                true => table.place(),
                false => (by_table.len() as u64, 0),
            };
            let (_, ranges) = by_table.entry(place).or_insert_with(|| (table, Vec::new()));
            ranges.push((range, mode));
        }
        let (tables, ranges): (Vec<_>, Vec<_>) = by_table.into_values().unzip();
        let nothing = tables
            .iter()
            .map(|table| table.lock.by_arc(owner).nothing());
        Self {
            numbers: tables.iter().map(|table| table.number).collect(),
            nothing: nothing.collect(),
            ranges,
        }
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Default for KeySpace<K, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ?Sized + Key, C: Compare<K>> fmt::Debug for KeySpace<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySpace")
            .field("made", &self.made)
            .finish()
    }
}
