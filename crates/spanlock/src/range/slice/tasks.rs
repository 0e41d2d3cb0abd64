//! How tasks borrow from a slice.

use super::{LentRead, LentWrite, LentWrites, OwnedSliceReadGuard, OwnedSliceWriteGuard};
use super::{RangeLocked, SliceBy, Whole, apart, positions, within};
use crate::range::holding::{By, LockBy, OfPositions, of_anonymous};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{Mode, RawOwned, Wait};
use prim::clock::Duration;
use prim::sync::Arc;
use std::future::Future;
use std::ops::{Deref, Range, RangeBounds};

/// A request for a range of indices, once it is known to be in bounds.
#[track_caller]
fn ask<T, L: RawOwned, S>(
    slice: S,
    owner: &Owner,
    range: impl RangeBounds<usize>,
    mode: Mode,
    wait: Wait,
) -> (Range<usize>, LockBy<S>)
where
    S: OfPositions<Raw = L> + Deref<Target = RangeLocked<T, L>>,
{
    let range = within(range, slice.len());
    let request = LockBy::new(slice, owner.clone(), positions(&range), mode, wait);
    (range, request)
}

/// A request for several ranges of indices, to be held alone.
#[track_caller]
fn ask_many<T, L: RawOwned, S, R: RangeBounds<usize>, const N: usize>(
    slice: S,
    owner: &Owner,
    ranges: [R; N],
    wait: Wait,
) -> impl Future<Output = Result<LentWrites<T, N, Whole<S>>, Refusal>> + use<T, L, S, R, N>
where
    S: OfPositions<Raw = L> + Deref<Target = RangeLocked<T, L>> + Clone,
{
    let ranges = apart(ranges, slice.len());
    let alone = ranges
        .clone()
        .map(|range| (positions(&range), Mode::Exclusive));
    let request = By::new(slice.clone(), owner).many(alone, wait);
    async move {
        let held = Whole::new(request.await?);
        let slices = ranges.map(|range| slice.slice(&range));
        // SAFETY: the ranges are in bounds and do not overlap, and they are held alone.
        Ok(unsafe { LentWrites::new(slices, held) })
    }
}

/// Methods to borrow in one mode: on a reference, with a limit of time, and on an `Arc`.
macro_rules! borrows {
    (
        $Lent:ident and $Owned:ident in $mode:ident;
        $(#[$documented:meta])*
        $borrow:ident, $try_borrow_for:ident, $borrow_owned:ident
    ) => {
        $(#[$documented])*
        #[track_caller]
        pub fn $borrow<R: RangeBounds<usize>>(
            &self,
            range: R,
        ) -> impl Future<Output = $Lent<[T], Whole<&Self>>> + use<'_, T, L, R> {
            let (range, request) = ask(self, &Owner::anonymous(), range, Mode::$mode, Wait::Forever);
            async move {
                let held = of_anonymous(request.await, Wait::Forever).expect("it waits for ever");
                // SAFETY: the range is in bounds and held that way.
                unsafe { $Lent::new(self.slice(&range), Whole::new(held)) }
            }
        }

        #[doc = concat!("As [`", stringify!($borrow), "`](Self::", stringify!($borrow), "), but `None` after `timeout`.")]
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        #[track_caller]
        pub fn $try_borrow_for<R: RangeBounds<usize>>(
            &self,
            range: R,
            timeout: Duration,
        ) -> impl Future<Output = Option<$Lent<[T], Whole<&Self>>>> + use<'_, T, L, R> {
            let wait = Wait::at_most(timeout);
            let (range, request) = ask(self, &Owner::anonymous(), range, Mode::$mode, wait);
            async move {
                let held = request.await.ok()?;
                // SAFETY: the range is in bounds and held that way.
                Some(unsafe { $Lent::new(self.slice(&range), Whole::new(held)) })
            }
        }

        #[doc = concat!("As [`", stringify!($borrow), "`](Self::", stringify!($borrow), "), where what is lent keeps the slice.")]
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        #[track_caller]
        pub fn $borrow_owned<R: RangeBounds<usize>>(
            self: &Arc<Self>,
            range: R,
        ) -> impl Future<Output = $Owned<T, L>> + use<T, L, R> {
            let slice = Arc::clone(self);
            let (range, request) =
                ask(Arc::clone(self), &Owner::anonymous(), range, Mode::$mode, Wait::Forever);
            async move {
                let held = of_anonymous(request.await, Wait::Forever).expect("it waits for ever");
                // SAFETY: the range is in bounds and held that way.
                unsafe { $Lent::new(slice.slice(&range), Whole::new(held)) }
            }
        }
    };
}

impl<T, L: RawOwned> RangeLocked<T, L> {
    borrows! {
        LentRead and OwnedSliceReadGuard in Shared;
        /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread. What is lent may be
        /// sent to other threads.
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        read_async, try_read_async_for, read_owned_async
    }

    borrows! {
        LentWrite and OwnedSliceWriteGuard in Exclusive;
        /// As [`write`](Self::write), for a task: a future, which waits without blocking a thread. What is lent may be
        /// sent to other threads.
        ///
        /// ```
        /// use spanlock::range::RangeLocked;
        ///
        /// async fn fill(pages: &RangeLocked<u8>) {
        ///     let mut page = pages.write_async(0..4096).await;
        ///     page.fill(1);
        /// }
        /// # fn is_send(_: impl Send) {}
        /// # is_send(fill(&RangeLocked::from(vec![0; 4096])));
        /// ```
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        write_async, try_write_async_for, write_owned_async
    }

    /// As [`write_many`](Self::write_many), for a task: a future, which waits without blocking a thread. It does
    /// nothing until it is polled. What is lent may be sent to other threads.
    ///
    /// In its first three rounds it holds nothing while it waits. In the last it keeps what it has. So its task must be
    /// polled, as one that holds a range. A future that is dropped releases what it has.
    ///
    /// ```
    /// use spanlock::range::RangeLocked;
    ///
    /// async fn transfer(accounts: &RangeLocked<u64>, from: usize, to: usize) {
    ///     let mut both = accounts.write_many_async([from..from + 1, to..to + 1]).await;
    ///     let [from, to] = both.slices_mut();
    ///     (from[0], to[0]) = (from[0] - 50, to[0] + 50);
    /// }
    /// # fn is_send(_: impl Send) {}
    /// # is_send(transfer(&RangeLocked::from(vec![100; 10]), 1, 2));
    /// ```
    ///
    /// # Panics
    /// When a range is reversed or reaches past the end, or two of them overlap.
    #[track_caller]
    pub fn write_many_async<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
    ) -> impl Future<Output = LentWrites<T, N, Whole<&Self>>> + use<'_, T, L, R, N> {
        let request = ask_many(self, &Owner::anonymous(), ranges, Wait::Forever);
        async move { of_anonymous(request.await, Wait::Forever).expect("it waits for ever") }
    }

    /// As [`write_many_async`](Self::write_many_async), but `None` after `timeout`.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn try_write_many_async_for<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
        timeout: Duration,
    ) -> impl Future<Output = Option<LentWrites<T, N, Whole<&Self>>>> + use<'_, T, L, R, N> {
        let request = ask_many(self, &Owner::anonymous(), ranges, Wait::at_most(timeout));
        async move { request.await.ok() }
    }
}

impl<T, L: RawOwned, S> SliceBy<'_, S>
where
    S: OfPositions<Raw = L> + Deref<Target = RangeLocked<T, L>> + Clone,
{
    /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread.
    ///
    /// # Panics
    /// When the range is reversed or reaches past the end.
    #[track_caller]
    pub fn read_async<R: RangeBounds<usize>>(
        &self,
        range: R,
    ) -> impl Future<Output = Result<LentRead<[T], Whole<S>>, Refusal>> + use<T, L, S, R> {
        let slice = self.slice.clone();
        let (range, request) = ask(
            self.slice.clone(),
            self.owner,
            range,
            Mode::Shared,
            Wait::Forever,
        );
        async move {
            let held = Whole::new(request.await?);
            // SAFETY: the range is in bounds and shared.
            Ok(unsafe { LentRead::new(slice.slice(&range), held) })
        }
    }

    /// As [`write`](Self::write), for a task: a future, which waits without blocking a thread.
    ///
    /// # Panics
    /// When the range is reversed or reaches past the end.
    #[track_caller]
    pub fn write_async<R: RangeBounds<usize>>(
        &self,
        range: R,
    ) -> impl Future<Output = Result<LentWrite<[T], Whole<S>>, Refusal>> + use<T, L, S, R> {
        let slice = self.slice.clone();
        let (range, request) = ask(
            self.slice.clone(),
            self.owner,
            range,
            Mode::Exclusive,
            Wait::Forever,
        );
        async move {
            let held = Whole::new(request.await?);
            // SAFETY: the range is in bounds and held alone.
            Ok(unsafe { LentWrite::new(slice.slice(&range), held) })
        }
    }

    /// Lends several ranges to write, for a task: see [`RangeLocked::write_many_async`].
    ///
    /// # Panics
    /// When a range is reversed or reaches past the end, or two of them overlap.
    #[track_caller]
    pub fn write_many_async<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
    ) -> impl Future<Output = Result<LentWrites<T, N, Whole<S>>, Refusal>> + use<T, L, S, R, N>
    {
        ask_many(self.slice.clone(), self.owner, ranges, Wait::Forever)
    }
}
