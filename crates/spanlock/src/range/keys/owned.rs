//! What owners hold of keys.

use super::OverKeys;
use super::order::KeyOrder;
use super::{Compare, Key, KeyRange, KeyRangeLock};
use crate::range::holding::{
    By, Holding, Lock, LockBy, Place, SharedPlace, TryLock,
    located::{Inside, Leads, Located},
    of_anonymous,
};
use crate::range::list::Token;
use crate::range::methods::{for_tasks, granted, one_range};
use crate::range::order::Ranges;
use crate::range::owner::Owner;
use crate::range::raw::{Mode, Wait};
use crate::range::span::Span;
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
use std::ops::{Bound, Deref, RangeBounds};

/// A reference to a lock over keys, or an [`Arc`] of one. Sealed.
///
/// The raw lock is not for programs, which may write any words:
///
/// ```compile_fail,E0599
/// fn raw<P: spanlock::range::keys::OfKeys>(place: P) {
///     place.raw();
/// }
/// ```
pub trait OfKeys:
    Place<Key = Self::Of, Ranges = KeyOrder<Self::Of, Self::By>, Raw = Self::Over>
    + Deref<Target = KeyRangeLock<Self::Of, Self::By, Self::Over>>
{
    /// What the keys are.
    type Of: ?Sized + Key;

    /// What compares them.
    type By: Compare<Self::Of>;

    /// The lock's raw lock.
    type Over: OverKeys<Self::Of, Self::By>;
}

/// References to locks, as places.
macro_rules! places {
    ($($Place:ty),+) => {$(
        impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> OfKeys for $Place {
            type Of = K;
            type By = C;
            type Over = L;
        }

        impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> SharedPlace for $Place {}

        impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> Located for $Place {
            type Raw = L;
            type Key = K;
            type Ranges = KeyOrder<K, C>;
            type Piece = KeyRange<K>;

            unsafe fn piece_for(&self, _: Inside, held: Span) -> KeyRange<K> {
                // SAFETY: the nodes that bear the keys are held.
                unsafe { KeyRange::of_span(held) }
            }

            #[inline]
            fn raw_for(&self, _: Inside) -> &L {
                &self.raw
            }

            #[inline]
            fn ranges_for(&self, _: Inside) -> &KeyOrder<K, C> {
                self.raw.keys().order()
            }

            /// The keys that the node bears.
            #[inline]
            fn held_for(&self, _: Inside, token: &Token, _: Span) -> Span {
                // SAFETY: it was granted just now.
                unsafe { token.span() }
            }
        }
    )+};
}

places!(&KeyRangeLock<K, C, L>, Arc<KeyRangeLock<K, C, L>>);

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    /// This lock as `owner` sees it: what is acquired by the result is held by the owner, and not by the thread.
    ///
    /// ```
    /// use spanlock::range::Owner;
    /// use spanlock::range::keys::{KeyRangeLock, between};
    /// use spanlock::range::raw::Mode;
    ///
    /// let table = KeyRangeLock::<str>::new();
    /// let transaction = Owner::new();
    /// let mut held = table.by(&transaction).read(between("a", "m"))?;
    /// held.convert(between("c", "d"), Mode::Exclusive)?;
    /// held.release(between("a", "b"));
    /// let pieces: Vec<_> = held.pieces().map(|(range, mode)| (range.to_string(), mode)).collect();
    /// assert_eq!(pieces[0], (r#""b".."c""#.to_string(), Mode::Shared));
    /// assert_eq!(pieces[1], (r#""c".."d""#.to_string(), Mode::Exclusive));
    /// assert_eq!(pieces[2], (r#""d".."m""#.to_string(), Mode::Shared));
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    pub fn by<'o>(&self, owner: &'o Owner) -> By<'o, &Self> {
        By::new(self, owner)
    }

    /// As [`by`](Self::by), where what is held is to keep the lock.
    pub fn by_arc<'o>(self: &Arc<Self>, owner: &'o Owner) -> By<'o, Arc<Self>> {
        By::new(Arc::clone(self), owner)
    }

    one_range! {
        owned range of K, by read_owned_within, as Holding<Arc<Self>>;
        panics "When the range is reversed, or a comparison panics.";
        refused "because a writer holds or awaits some of it";
        /// As [`read`](Self::read), where what is held keeps the lock, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics; in debug builds, when this thread holds some of it
        /// exclusively.
        read_owned, try_read_owned, try_read_owned_for, try_read_owned_until
    }

    one_range! {
        owned range of K, by write_owned_within, as Holding<Arc<Self>>;
        panics "When the range is reversed, or a comparison panics.";
        refused "because another request holds some of it, or a writer awaits it";
        /// As [`write`](Self::write), where what is held keeps the lock, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics; in debug builds, when this thread holds some of it.
        write_owned, try_write_owned, try_write_owned_for, try_write_owned_until
    }

    #[track_caller]
    fn read_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<K>,
        wait: Wait,
    ) -> Option<Holding<Arc<Self>>> {
        let (lock, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = Holding::acquire(lock, &anonymous, range, Mode::Shared, wait);
        of_anonymous(held, wait)
    }

    #[track_caller]
    fn write_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<K>,
        wait: Wait,
    ) -> Option<Holding<Arc<Self>>> {
        let (lock, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = Holding::acquire(lock, &anonymous, range, Mode::Exclusive, wait);
        of_anonymous(held, wait)
    }
}

/// Of locks over keys.
impl<P: OfKeys> Holding<P> {
    /// Splits off what it holds of the keys from `at` on.
    ///
    /// # Panics
    /// When a comparison panics.
    pub fn split_off_from(&mut self, at: &P::Of) -> Self
    where
        P: Clone,
    {
        self.split_off_behind(Bound::Included(at))
    }

    /// As [`split_off_from`](Self::split_off_from), for an end of any kind.
    ///
    /// # Panics
    /// When a comparison panics.
    pub fn split_off_behind(&mut self, start: Bound<&P::Of>) -> Self
    where
        P: Clone,
    {
        let behind = (start, Bound::Unbounded);
        let ranges = self.place().ranges();
        let behind = ranges.sought(&behind).expect("it is not empty");
        self.split_behind(&behind)
    }
}

impl<K: ?Sized + Key, C: Compare<K>, L: OverKeys<K, C>> KeyRangeLock<K, C, L> {
    for_tasks! {
        K, Shared;
        /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics.
        read_async, try_read_async_for; read_owned_async, try_read_owned_async_for
    }

    for_tasks! {
        K, Exclusive;
        /// As [`write`](Self::write), for a task: see [`read_async`](Self::read_async).
        ///
        /// # Panics
        /// When the range is reversed, or a comparison panics.
        write_async, try_write_async_for; write_owned_async, try_write_owned_async_for
    }
}
