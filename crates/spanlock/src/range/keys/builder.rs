//! How a lock over keys is made: with a comparator, and with another policy.

use super::index::KeyIndex;
use super::order::{Contained, KeyOrder, Show};
use super::{Compare, Key, KeyRangeLock, Natural};
use crate::deadlock::Deadlocks;
use crate::range::list::skip::levels::Levels;
use crate::range::list::{FastPath, Policy, Preference, RawList};
use crate::range::order::QueueOrder;
use crate::range::wait::{Fairness, Patience};
use prim::sync::Arc;
use std::fmt;

/// A lock over keys to be built: from [`KeyRangeLock::builder`], or [`Builder::new`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder<K: ?Sized, C = Natural> {
    compare: C,
    policy: Policy,
    patience: Patience,
    /// Levels above the list.
    levels: u32,
    enter_after: Option<u8>,
    deadlocks: Deadlocks,
    show: Show<K>,
}

impl<K: ?Sized + Key> Builder<K> {
    /// A fair lock over keys in their natural order, if they have one.
    pub const fn new() -> Self {
        Self {
            compare: Natural,
            policy: Policy::DEFAULT,
            patience: Patience::of(Fairness::DEFAULT),
            levels: Levels::DEFAULT,
            enter_after: None,
            deadlocks: Deadlocks::BY_ENVIRONMENT,
            show: |key, f| key.fmt(f),
        }
    }
}

impl<K: ?Sized + Key> Default for Builder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ?Sized + Key, C> Builder<K, C> {
    /// What compares keys. The default is [`Natural`], the order of [`Ord`].
    pub fn ordered_by<D: Compare<K>>(self, compare: D) -> Builder<K, D> {
        let Self {
            policy,
            patience,
            levels,
            enter_after,
            deadlocks,
            show,
            ..
        } = self;
        Builder {
            compare,
            policy,
            patience,
            levels,
            enter_after,
            deadlocks,
            show,
        }
    }

    /// How to treat requests that others keep overtaking. The default is [`Fairness::DEFAULT`].
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.patience = Patience::of(fairness);
        self
    }

    /// Which mode stays when a reader and a writer meet. The default is [`Preference::Readers`].
    pub fn preference(mut self, preference: Preference) -> Self {
        self.policy.preference = preference;
        self
    }

    /// Whether an empty lock takes a shortcut. The default is [`FastPath::On`].
    pub fn fast_path(mut self, fast_path: FastPath) -> Self {
        self.policy.fast_path = fast_path;
        self
    }

    /// Whether to look for deadlocks. The default is [`Deadlocks::BY_ENVIRONMENT`].
    pub fn deadlocks(mut self, deadlocks: Deadlocks) -> Self {
        self.deadlocks = deadlocks;
        self
    }

    /// How keys are printed in messages of panics, in [reports](crate::deadlock) and to
    /// [observers](crate::observe). The default is their `Debug`. Of each key 48 bytes are shown.
    ///
    /// ```
    /// use spanlock::range::keys::{Builder, point};
    /// use spanlock::range::Owner;
    ///
    /// let builder = Builder::<[u8]>::new();
    /// let table = builder.shown_by(|key, f| f.write_str(&String::from_utf8_lossy(key))).build();
    /// let held = table.by(&Owner::new()).write(point(b"order/17"))?;
    /// assert!(format!("{held:?}").contains("order/17..=order/17"));
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    ///
    /// It must say the same of a key each time, must not wait for anything, and must not use a lock of this library or
    /// [`dump_all`](crate::deadlock::dump_all): the queue's mutex may be held. Where it panics in a report, the keys
    /// are not shown.
    pub fn shown_by(mut self, show: fn(&K, &mut fmt::Formatter<'_>) -> fmt::Result) -> Self {
        self.show = show;
        self
    }

    /// How many levels the index has, and after how many steps a range enters it. For tests, which hold few ranges.
    #[doc(hidden)]
    pub fn levels(mut self, levels: u32, enter_after: u8) -> Self {
        self.levels = levels;
        self.enter_after = Some(enter_after);
        self
    }
}

impl<K: ?Sized + Key, C: Compare<K>> Builder<K, C> {
    /// The lock.
    #[must_use]
    pub fn build(self) -> KeyRangeLock<K, C> {
        let order = Arc::new(KeyOrder::new(self.compare, self.show));
        let queue = QueueOrder::Keys(Arc::new(Contained(Arc::clone(&order))));
        let index = KeyIndex::new(order, Levels::new(self.levels, self.enter_after));
        KeyRangeLock::from_raw(RawList::ordered(
            self.policy,
            self.patience,
            self.deadlocks,
            index,
            queue,
        ))
    }
}
