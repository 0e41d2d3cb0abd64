//! How an owner borrows from a slice.

use super::{LentRead, LentWrite, OwnedSliceReadGuard, OwnedSliceWriteGuard, RangeLocked, Whole};
use super::{positions, within};
use crate::range::holding::{
    Holding, OfPositions, SharedPlace,
    located::{Inside, Located},
    of_anonymous, over_positions,
};
use crate::range::methods::{granted, one_range};
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{Mode, RawOwned, Wait};
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
use std::ops::{Deref, Range, RangeBounds};

/// A slice as an [`Owner`] sees it: what is borrowed here, the owner holds. From [`RangeLocked::by`].
#[derive(Debug, Clone, Copy)]
pub struct SliceBy<'o, S> {
    pub(super) slice: S,
    pub(super) owner: &'o Owner,
}

/// Where what is lent finds its slice: a reference, or an [`Arc`], which keeps the slice.
impl<T, L: RawOwned> Located for &RangeLocked<T, L> {
    type Raw = L;

    over_positions!();

    fn raw_for(&self, _: Inside) -> &L {
        self.lock.raw()
    }
}

impl<T, L: RawOwned> SharedPlace for &RangeLocked<T, L> {}
impl<T, L: RawOwned> SharedPlace for Arc<RangeLocked<T, L>> {}

impl<T, L: RawOwned> Located for Arc<RangeLocked<T, L>> {
    type Raw = L;

    over_positions!();

    fn raw_for(&self, _: Inside) -> &L {
        self.lock.raw()
    }
}

/// A method to borrow in one mode, and the same with a limit of time.
macro_rules! borrows {
    (
        $Lent:ident in $mode:ident;
        $(#[$documented:meta])*
        $borrow:ident, $try_borrow:ident, $try_borrow_for:ident, $try_borrow_until:ident
    ) => {
        $(#[$documented])*
        #[track_caller]
        pub fn $borrow(&self, range: impl RangeBounds<usize>) -> Result<$Lent<[T], Whole<S>>, Refusal> {
            let (range, held) = hold(self.slice.clone(), self.owner, range, Mode::$mode, Wait::Forever)?;
            // SAFETY: the range is in bounds and held that way.
            Ok(unsafe { $Lent::new(self.slice.slice(&range), held) })
        }

        borrows! {
            @limited concat!("As [`", stringify!($borrow), "`](Self::", stringify!($borrow), "), but [`Refusal::Busy`] if it would block."),
            $Lent in $mode: $try_borrow(), Wait::Never
        }

        borrows! {
            @limited concat!("As [`", stringify!($borrow), "`](Self::", stringify!($borrow), "), but [`Refusal::Busy`] after `timeout`."),
            $Lent in $mode: $try_borrow_for(timeout: Duration), Wait::at_most(timeout)
        }

        borrows! {
            @limited concat!("As [`", stringify!($borrow), "`](Self::", stringify!($borrow), "), but [`Refusal::Busy`] at `deadline`."),
            $Lent in $mode: $try_borrow_until(deadline: Instant), Wait::Until(deadline)
        }
    };
    (@limited $documented:expr, $Lent:ident in $mode:ident: $borrow:ident($($limit:ident: $Limit:ty)?), $wait:expr) => {
        #[doc = $documented]
        ///
        /// # Errors
        /// See there.
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        #[track_caller]
        pub fn $borrow(
            &self,
            range: impl RangeBounds<usize>,
            $($limit: $Limit,)?
        ) -> Result<$Lent<[T], Whole<S>>, Refusal> {
            let (range, held) = hold(self.slice.clone(), self.owner, range, Mode::$mode, $wait)?;
            // SAFETY: the range is in bounds and held that way.
            Ok(unsafe { $Lent::new(self.slice.slice(&range), held) })
        }
    };
}

impl<T, L: RawOwned, S> SliceBy<'_, S>
where
    S: OfPositions<Raw = L> + Deref<Target = RangeLocked<T, L>> + Clone,
{
    borrows! {
        LentRead in Shared;
        /// Lends a range to read; blocks while a writer has any of it.
        ///
        /// # Errors
        /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end; in debug builds, when what this thread has
        /// borrowed for this owner is in the way.
        read, try_read, try_read_for, try_read_until
    }

    borrows! {
        LentWrite in Exclusive;
        /// Lends a range to write; blocks while any other borrower has any of it.
        ///
        /// # Errors
        /// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`].
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end; in debug builds, when this thread has
        /// borrowed some of it for this owner.
        write, try_write, try_write_for, try_write_until
    }
}

/// Holds a range of indices, once it is known to be in bounds.
#[track_caller]
fn hold<T, L: RawOwned, S>(
    slice: S,
    owner: &Owner,
    range: impl RangeBounds<usize>,
    mode: Mode,
    wait: Wait,
) -> Result<(Range<usize>, Whole<S>), Refusal>
where
    S: OfPositions<Raw = L> + Deref<Target = RangeLocked<T, L>>,
{
    let range = within(range, slice.len());
    let held = Holding::acquire(slice, owner, positions(&range), mode, wait)?;
    Ok((range, Whole::new(held)))
}

impl<T, L: RawOwned> RangeLocked<T, L> {
    /// This slice as `owner` sees it: what is borrowed by the result the owner holds, and not the thread.
    ///
    /// ```
    /// use spanlock::range::{Owner, RangeLocked};
    ///
    /// let pages = RangeLocked::from([0_u8; 64]);
    /// let client = Owner::new();
    /// let mut mine = pages.by(&client).write(0..32)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || mine.fill(1)); // Another thread fills and releases it.
    /// });
    /// assert_eq!(pages.read(31..33)[..], [1, 0]);
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    pub fn by<'o>(&self, owner: &'o Owner) -> SliceBy<'o, &Self> {
        let slice = self;
        SliceBy { slice, owner }
    }

    /// As [`by`](Self::by), where what is lent is to keep the slice.
    pub fn by_arc<'o>(self: &Arc<Self>, owner: &'o Owner) -> SliceBy<'o, Arc<Self>> {
        let slice = Arc::clone(self);
        SliceBy { slice, owner }
    }

    one_range! {
        owned range of usize, by read_owned_within, as OwnedSliceReadGuard<T, L>;
        panics "When the range is reversed or reaches past the end.";
        refused "because of another borrower";
        /// As [`read`](Self::read), where what is lent keeps the slice, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        read_owned, try_read_owned, try_read_owned_for, try_read_owned_until
    }

    one_range! {
        owned range of usize, by write_owned_within, as OwnedSliceWriteGuard<T, L>;
        panics "When the range is reversed or reaches past the end.";
        refused "because of another borrower";
        /// As [`write`](Self::write), where what is lent keeps the slice, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        write_owned, try_write_owned, try_write_owned_for, try_write_owned_until
    }

    #[track_caller]
    fn read_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<usize>,
        wait: Wait,
    ) -> Option<OwnedSliceReadGuard<T, L>> {
        let (slice, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = hold(slice, &anonymous, range, Mode::Shared, wait);
        let (range, held) = of_anonymous(held, wait)?;
        // SAFETY: the range is in bounds and shared.
        Some(unsafe { LentRead::new(self.slice(&range), held) })
    }

    #[track_caller]
    fn write_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<usize>,
        wait: Wait,
    ) -> Option<OwnedSliceWriteGuard<T, L>> {
        let (slice, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = hold(slice, &anonymous, range, Mode::Exclusive, wait);
        let (range, held) = of_anonymous(held, wait)?;
        // SAFETY: the range is in bounds and held alone.
        Some(unsafe { LentWrite::new(self.slice(&range), held) })
    }
}
