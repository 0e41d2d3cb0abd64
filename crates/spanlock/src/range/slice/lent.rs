//! What a slice lends: a part of it, for as long as its range is held.

use crate::range::guard::{Guards, ReadGuard, WriteGuard};
use crate::range::holding::{Holding, OfPositions, Place, SharedPlace, Until};
use crate::range::owner::Refusal;
use crate::range::raw::{RawRangeLock, Wait};
use crate::range::slots::RawSlots;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// A part of a [`RangeLocked`](super::RangeLocked) slice, to read: usually a range of it, and after a
/// [`map`](Self::map) whatever is within. The range is held by `H`: a thread's [`ReadGuard`], or [`Whole`] of an owner.
///
/// | type | who holds |
/// |---|---|
/// | [`SliceReadGuard`](super::SliceReadGuard) | the thread |
/// | [`OwnedSliceReadGuard`](super::OwnedSliceReadGuard) | an owner: it may go to another thread |
///
/// What the slice holds stays what it is, since an owner's can be upgraded and written:
/// ```compile_fail,E0597
/// use spanlock::range::{LentRead, Owner, RangeLocked, Whole};
///
/// let names: RangeLocked<&'static str> = RangeLocked::from(["long"]);
/// {
///     let short = String::from("short");
///     let lent: LentRead<[&str], Whole<_>> = names.by(&Owner::new()).read(..).unwrap();
///     lent.upgrade().unwrap()[0] = &short;
/// }
/// ```
#[must_use = "the range is released when it is dropped"]
pub struct LentRead<U: ?Sized, H> {
    /// Of the type of those that write, so that `U` is no other than the slice's: it may be upgraded.
    value: *mut U,
    hold: H,
}

/// A part of a [`RangeLocked`](super::RangeLocked) slice, to write: usually a range of it, and after a
/// [`map`](Self::map) whatever is within. The range is held by `H`: a thread's [`WriteGuard`], or [`Whole`] of an
/// owner.
///
/// | type | who holds |
/// |---|---|
/// | [`SliceWriteGuard`](super::SliceWriteGuard) | the thread |
/// | [`OwnedSliceWriteGuard`](super::OwnedSliceWriteGuard) | an owner: it may go to another thread |
///
/// What a thread holds stays on the thread:
/// ```compile_fail,E0277
/// let pages = spanlock::range::RangeLocked::from([0; 8]);
/// let lent = pages.write(..);
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(lent));
/// });
/// ```
#[must_use = "the range is released when it is dropped"]
pub struct LentWrite<U: ?Sized, H> {
    value: *mut U,
    hold: H,
}

/// What an owner holds of a slice by a range that is lent as a whole, and so can be split.
pub struct Whole<P: Place>(Holding<P>);

/// What an owner holds of a slice, once only a part of it is lent.
pub struct Part<P: Place>(Holding<P>);

mod sealed {
    pub trait Sealed {}
}

/// How the range of what is lent is held. Sealed.
pub trait Hold: sealed::Sealed {
    /// How it is held when only a part is lent.
    type OfPart;

    #[doc(hidden)]
    fn of_part(self) -> Self::OfPart;
}

macro_rules! holds {
    ($([$($generics:tt)*] $Hold:ty => $Part:ty: $held:ident => $made:expr;)+) => {$(
        impl<$($generics)*> sealed::Sealed for $Hold {}

        impl<$($generics)*> Hold for $Hold {
            type OfPart = $Part;

            fn of_part(self) -> $Part {
                let $held = self;
                $made
            }
        }
    )+};
}

holds! {
    ['a, L: RawRangeLock] ReadGuard<'a, L> => Self: held => held;
    ['a, L: RawRangeLock] WriteGuard<'a, L> => Self: held => held;
    [P: Place] Whole<P> => Part<P>: held => Part(held.0);
    [P: Place] Part<P> => Self: held => held;
}

// SAFETY: it lends `&U`, on whichever thread, and its hold may be released there.
unsafe impl<U: ?Sized + Sync, H: Send> Send for LentRead<U, H> {}
// SAFETY: it lends `&U` to those who share it.
unsafe impl<U: ?Sized + Sync, H: Sync> Sync for LentRead<U, H> {}
// SAFETY: it lends `&mut U`, on whichever thread, and its hold may be released there.
unsafe impl<U: ?Sized + Send, H: Send> Send for LentWrite<U, H> {}
// SAFETY: it lends `&U` to those who share it.
unsafe impl<U: ?Sized + Sync, H: Sync> Sync for LentWrite<U, H> {}

impl<U: ?Sized, H> LentRead<U, H> {
    /// # Safety
    /// The value is alive and may be read while the hold lives.
    pub(super) unsafe fn new(value: *mut U, hold: H) -> Self {
        Self { value, hold }
    }
}

impl<U: ?Sized, H> LentWrite<U, H> {
    /// # Safety
    /// The value is alive, and nobody else uses it while the hold lives.
    pub(super) unsafe fn new(value: *mut U, hold: H) -> Self {
        Self { value, hold }
    }
}

impl<U: ?Sized, H> Deref for LentRead<U, H> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: it may be read while the hold lives.
        unsafe { &*self.value }
    }
}

impl<U: ?Sized, H> Deref for LentWrite<U, H> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: it is held exclusively while the hold lives.
        unsafe { &*self.value }
    }
}

impl<U: ?Sized, H> DerefMut for LentWrite<U, H> {
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: it is held exclusively while the hold lives, and the guard is borrowed exclusively.
        unsafe { &mut *self.value }
    }
}

impl<U: ?Sized, H: Hold> LentRead<U, H> {
    /// Lends what `f` finds within. The whole range stays held.
    ///
    /// ```
    /// use spanlock::range::{LentRead, RangeLocked};
    ///
    /// let points = RangeLocked::from([(1, 2), (3, 4)]);
    /// let ordinate = LentRead::map(points.read(1..2), |points| &points[0].1);
    /// assert_eq!(*ordinate, 4);
    /// ```
    pub fn map<V: ?Sized>(this: Self, f: impl FnOnce(&U) -> &V) -> LentRead<V, H::OfPart> {
        let value = ptr::from_ref(f(&this)).cast_mut();
        let hold = this.hold.of_part();
        LentRead { value, hold }
    }

    /// As [`map`](Self::map), if `f` finds something.
    ///
    /// # Errors
    /// `f` finds nothing: what was lent.
    pub fn try_map<V: ?Sized>(
        this: Self,
        f: impl FnOnce(&U) -> Option<&V>,
    ) -> Result<LentRead<V, H::OfPart>, Self> {
        match f(&this).map(ptr::from_ref) {
            Some(value) => {
                let (value, hold) = (value.cast_mut(), this.hold.of_part());
                Ok(LentRead { value, hold })
            }
            None => Err(this),
        }
    }
}

impl<U: ?Sized, H: Hold> LentWrite<U, H> {
    /// Lends what `f` finds within. The whole range stays held.
    ///
    /// ```
    /// use spanlock::range::{LentWrite, RangeLocked};
    ///
    /// let points = RangeLocked::from([(1, 2), (3, 4)]);
    /// *LentWrite::map(points.write(1..2), |points| &mut points[0].1) += 1;
    /// assert_eq!(points.read(..)[1], (3, 5));
    /// ```
    pub fn map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> &mut V,
    ) -> LentWrite<V, H::OfPart> {
        let value = ptr::from_mut(f(&mut this));
        let hold = this.hold.of_part();
        LentWrite { value, hold }
    }

    /// As [`map`](Self::map), if `f` finds something.
    ///
    /// # Errors
    /// `f` finds nothing: what was lent.
    pub fn try_map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> Option<&mut V>,
    ) -> Result<LentWrite<V, H::OfPart>, Self> {
        match f(&mut this).map(ptr::from_mut) {
            Some(value) => {
                let hold = this.hold.of_part();
                Ok(LentWrite { value, hold })
            }
            None => Err(this),
        }
    }
}

impl<'a, T, L: RawRangeLock> LentWrite<[T], WriteGuard<'a, L>> {
    /// Keeps the range, but shares it from now on: see [`WriteGuard::downgrade`].
    pub fn downgrade(self) -> LentRead<[T], ReadGuard<'a, L>> {
        LentRead {
            value: self.value,
            hold: self.hold.downgrade(),
        }
    }
}

impl<P: OfPositions + Clone> Whole<P> {
    /// The first `elements` elements, and the others.
    fn split(mut self, elements: usize) -> (Self, Self) {
        let start = self.0.span().map_or(0, |span| span.start());
        let others = self.0.split_off(start + elements as u64);
        (self, Self(others))
    }
}

impl<T, P: OfPositions + Clone> LentRead<[T], Whole<P>> {
    /// Splits the range in two at an element. Each half is held by itself from now on, and released by itself.
    ///
    /// Costs what [`Holding::split_off`] does. What a thread holds is not split: it is released as a whole.
    ///
    /// # Panics
    /// When there are fewer elements.
    #[track_caller]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let [first, others] = halves(self.value, at);
        let (of_first, of_others) = self.hold.split(at);
        let lent = |value, hold| LentRead { value, hold };
        (lent(first, of_first), lent(others, of_others))
    }
}

impl<T, P: SharedPlace> LentRead<[T], Whole<P>> {
    /// Waits to have the range alone, which is shared meanwhile: see [`Holding::upgrade`].
    ///
    /// # Errors
    /// The refusal, and what was lent.
    #[track_caller]
    pub fn upgrade(self) -> Result<LentWrite<[T], Whole<P>>, (Self, Refusal)> {
        self.upgrade_within(Wait::Forever)
    }

    /// As [`upgrade`](Self::upgrade), but [`Refusal::Busy`] if it would block.
    ///
    /// # Errors
    /// See there.
    #[track_caller]
    pub fn try_upgrade(self) -> Result<LentWrite<[T], Whole<P>>, (Self, Refusal)> {
        self.upgrade_within(Wait::Never)
    }

    /// As [`upgrade`](Self::upgrade), for a task: a future, which waits without blocking a thread. Dropping it releases
    /// the range.
    ///
    /// # Errors
    /// See there.
    #[track_caller]
    pub fn upgrade_async(
        mut self,
    ) -> impl Future<Output = Result<LentWrite<[T], Whole<P>>, (Self, Refusal)>>
    where
        P: Clone,
    {
        let until = Until::new(Wait::Forever);
        async move {
            let outcome = self.hold.0.upgrade_soon(until).await;
            self.upgraded(outcome)
        }
    }

    #[track_caller]
    fn upgrade_within(mut self, wait: Wait) -> Result<LentWrite<[T], Whole<P>>, (Self, Refusal)> {
        let outcome = self.hold.0.upgrade_within(wait);
        self.upgraded(outcome)
    }

    fn upgraded(
        self,
        outcome: Result<(), Refusal>,
    ) -> Result<LentWrite<[T], Whole<P>>, (Self, Refusal)> {
        match outcome {
            Ok(()) => Ok(LentWrite {
                // What the slice lends, it lends by a pointer that may write.
                value: self.value,
                hold: self.hold,
            }),
            Err(refusal) => Err((self, refusal)),
        }
    }
}

impl<T, P: OfPositions + Clone> LentWrite<[T], Whole<P>> {
    /// Splits the range in two at an element. Each half is held by itself from now on, and released by itself.
    ///
    /// ```
    /// use spanlock::range::RangeLocked;
    /// use std::sync::Arc;
    /// use std::thread;
    ///
    /// let pages = Arc::new(RangeLocked::from([0; 8]));
    /// let (first, mut others) = pages.write_owned(..).split_at(2);
    /// let fills = thread::spawn(move || others.fill(7)); // It releases those that it has filled.
    /// fills.join().expect("it is filled");
    /// assert_eq!(pages.read(2..4)[..], [7, 7]);
    /// drop(first);
    /// ```
    ///
    /// Costs what [`Holding::split_off`] does. What a thread holds is not split: it is released as a whole.
    ///
    /// # Panics
    /// When there are fewer elements.
    #[track_caller]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let [first, others] = halves(self.value, at);
        let (of_first, of_others) = self.hold.split(at);
        let lent = |value, hold| LentWrite { value, hold };
        (lent(first, of_first), lent(others, of_others))
    }
}

/// The elements before one, and the others. Without references: what was lent by a pointer that may write stays so.
#[track_caller]
fn halves<T>(slice: *mut [T], at: usize) -> [*mut [T]; 2] {
    let others = slice.len().checked_sub(at);
    let others = others.expect("a slice is split at one of its elements or at its end");
    // SAFETY: not beyond the end of the slice, which is alive.
    let behind = unsafe { slice.cast::<T>().add(at) };
    [
        ptr::slice_from_raw_parts_mut(slice.cast(), at),
        ptr::slice_from_raw_parts_mut(behind, others),
    ]
}

impl<T, P: SharedPlace> LentWrite<[T], Whole<P>> {
    /// Keeps the range, but shares it from now on.
    pub fn downgrade(mut self) -> LentRead<[T], Whole<P>> {
        self.hold.0.downgrade();
        LentRead {
            value: self.value,
            hold: self.hold,
        }
    }
}

impl<P: Place> Whole<P> {
    /// What is lent as a whole.
    pub(super) fn new(holding: Holding<P>) -> Self {
        Self(holding)
    }
}

impl<U: ?Sized + fmt::Debug, H> fmt::Debug for LentRead<U, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<U: ?Sized + fmt::Debug, H> fmt::Debug for LentWrite<U, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Several ranges of a [`RangeLocked`](super::RangeLocked) slice, to write. They are held by `H`: a thread's
/// [`Guards`], or [`Whole`] of an owner.
#[must_use = "the ranges are released when it is dropped"]
pub struct LentWrites<T, const N: usize, H> {
    slices: [*mut [T]; N],
    #[expect(dead_code, reason = "its drop releases the ranges")]
    hold: H,
}

/// Several ranges of a [`RangeLocked`](super::RangeLocked) slice, which a thread writes.
pub type SliceWriteGuards<'a, T, const N: usize, L = RawSlots> =
    LentWrites<T, N, Guards<WriteGuard<'a, L>>>;

impl<T, const N: usize, H> LentWrites<T, N, H> {
    /// # Safety
    /// The slices are alive and do not overlap, and are held exclusively while the hold lives.
    pub(super) unsafe fn new(slices: [*mut [T]; N], hold: H) -> Self {
        Self { slices, hold }
    }

    /// The ranges, in the order in which they were asked for.
    #[must_use]
    pub fn slices(&self) -> [&[T]; N] {
        // SAFETY: the ranges are in bounds, and held exclusively while the hold lives.
        self.slices.map(|slice| unsafe { &*slice })
    }

    /// The ranges to write, in the order in which they were asked for.
    #[must_use]
    pub fn slices_mut(&mut self) -> [&mut [T]; N] {
        // SAFETY: the ranges are in bounds, and held exclusively while the hold lives. They do not overlap, and this is
        // borrowed exclusively.
        self.slices.map(|slice| unsafe { &mut *slice })
    }
}

// SAFETY: it lends `&mut [T]`, on whichever thread, and its hold may be released there.
unsafe impl<T: Send, const N: usize, H: Send> Send for LentWrites<T, N, H> {}
// SAFETY: it lends `&[T]` to those who share it.
unsafe impl<T: Sync, const N: usize, H: Sync> Sync for LentWrites<T, N, H> {}

impl<T: fmt::Debug, const N: usize, H> fmt::Debug for LentWrites<T, N, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slices().fmt(f)
    }
}
