//! How tasks borrow from a slice.

use super::{LentRead, LentWrite, OwnedSliceReadGuard, OwnedSliceWriteGuard, RangeLocked, SliceBy};
use super::{Whole, positions, within};
use crate::range::holding::{LockBy, OfPositions, of_anonymous};
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
}
