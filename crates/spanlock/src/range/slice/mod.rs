//! A slice that lends its ranges.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | [`RangeLocked`], and how a thread borrows |
//! | `by.rs` | how an owner borrows |
//! | `lent.rs` | what is lent: a part of the slice, and the guard or holding of its range |

mod by;
mod lent;
mod tasks;

pub use by::SliceBy;
pub use lent::{Hold, LentRead, LentWrite, LentWrites, Part, SliceWriteGuards, Whole};

use super::guard::{ReadGuard, WriteGuard};
use super::lock::RangeLock;
use super::methods::{granted, one_range};
use super::raw::{RawRangeLock, Wait};
use super::slots::RawSlots;
use super::span::ReversedRange;
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::ptr;

/// A slice whose ranges are locked and lent, as `&[T]` to readers and `&mut [T]` to writers.
///
/// ```
/// use spanlock::range::RangeLocked;
///
/// let pages = RangeLocked::from(vec![0_u8; 64]);
/// std::thread::scope(|scope| {
///     scope.spawn(|| pages.write(0..32).fill(1));
///     scope.spawn(|| pages.write(32..64).fill(2)); // Disjoint: runs beside the first.
/// });
/// assert_eq!(pages.read(31..33)[..], [1, 2]);
/// ```
///
/// It is made `from` a `Vec`, a box or an array, and [`with_lock`](Self::with_lock) of another kind of range lock.
/// Empty slices, empty ranges and elements of no size are all fine.
///
/// # When not to use it
/// When the data is not a slice, or the lock is not only for the data: use a [`RangeLock`] beside it.
///
/// # Cost, fairness, blocking, misuse
/// Those of [`RangeLock`]; indices are its positions.
///
/// # Panics
/// As indexing a slice does: when a range is reversed or reaches past the end. The range is checked before any wait.
///
/// # What does not compile
/// Sharing what may not be shared:
/// ```compile_fail,E0277
/// fn is_sync<T: Sync>() {}
/// is_sync::<spanlock::range::RangeLocked<std::cell::Cell<u8>>>();
/// ```
/// Sending what may not be sent:
/// ```compile_fail,E0277
/// fn is_send<T: Send>() {}
/// is_send::<spanlock::range::RangeLocked<std::rc::Rc<u8>>>();
/// ```
/// Keeping what was lent:
/// ```compile_fail,E0597
/// # use spanlock::range::RangeLocked;
/// let pages = RangeLocked::from(vec![0_u8; 64]);
/// let kept: &[u8] = {
///     let guard = pages.read(..);
///     &guard[..]
/// };
/// assert_eq!(kept.len(), 64);
/// ```
pub struct RangeLocked<T, L: RawRangeLock = RawSlots> {
    lock: RangeLock<L>,
    elements: Box<[UnsafeCell<T>]>,
}

/// A range of a [`RangeLocked`] slice, to read.
pub type SliceReadGuard<'a, T, L = RawSlots> = LentRead<[T], ReadGuard<'a, L>>;

/// A range of a [`RangeLocked`] slice, to write.
pub type SliceWriteGuard<'a, T, L = RawSlots> = LentWrite<[T], WriteGuard<'a, L>>;

/// A range of a [`RangeLocked`] slice, to read. It keeps the slice, and may go to another thread.
pub type OwnedSliceReadGuard<T, L = RawSlots> = LentRead<[T], Whole<Arc<RangeLocked<T, L>>>>;

/// A range of a [`RangeLocked`] slice, to write. It keeps the slice, and may go to another thread.
pub type OwnedSliceWriteGuard<T, L = RawSlots> = LentWrite<[T], Whole<Arc<RangeLocked<T, L>>>>;

// SAFETY: it owns its elements and its lock, which may both be sent.
unsafe impl<T: Send, L: RawRangeLock + Send> Send for RangeLocked<T, L> {}
// SAFETY: threads get `&T` of the same element together, hence `Sync`, or `&mut T` one after another, hence `Send`.
unsafe impl<T: Send + Sync, L: RawRangeLock + Sync> Sync for RangeLocked<T, L> {}

impl<T> From<Box<[T]>> for RangeLocked<T> {
    fn from(elements: Box<[T]>) -> Self {
        Self::with_lock(elements, RangeLock::new())
    }
}

impl<T> From<Vec<T>> for RangeLocked<T> {
    fn from(elements: Vec<T>) -> Self {
        elements.into_boxed_slice().into()
    }
}

impl<T, const N: usize> From<[T; N]> for RangeLocked<T> {
    fn from(elements: [T; N]) -> Self {
        Vec::from(elements).into()
    }
}

impl<T> Default for RangeLocked<T> {
    /// An empty slice.
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> FromIterator<T> for RangeLocked<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

/// Acquires a range of indices, and lends it.
macro_rules! lends {
    ($within:ident as $Lent:ident by $Guard:ident) => {
        #[track_caller]
        fn $within(
            &self,
            range: impl RangeBounds<usize>,
            wait: Wait,
        ) -> Option<$Lent<[T], $Guard<'_, L>>> {
            let range = within(range, self.len());
            let guard = self.lock.$within(positions(&range), wait)?;
            // SAFETY: the range is in bounds, and the guard holds it that way.
            Some(unsafe { $Lent::new(self.slice(&range), guard) })
        }
    };
}

impl<T, L: RawRangeLock> RangeLocked<T, L> {
    /// A slice under a lock of your choice, with nothing held.
    #[must_use]
    pub fn with_lock(elements: Box<[T]>, lock: RangeLock<L>) -> Self {
        // `UnsafeCell<T>` has the layout of `T`, so the slices have the same layout.
        let elements = Box::into_raw(elements) as *mut [UnsafeCell<T>];
        // SAFETY: it came from a Box just above, and `UnsafeCell<T>` has the layout of `T`.
        let elements = unsafe { Box::from_raw(elements) };
        Self { lock, elements }
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The lock, to inspect it. Locking with it lends nothing.
    #[must_use]
    pub fn lock(&self) -> &RangeLock<L> {
        &self.lock
    }

    /// All elements, without locking: the exclusive borrow proves that no guard lives.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut [T] {
        let all = self.slice(&(0..self.len()));
        // SAFETY: all elements, and `self` is borrowed exclusively, so no guard lives.
        unsafe { &mut *all }
    }

    /// The elements, without the lock.
    #[must_use]
    pub fn into_inner(self) -> Box<[T]> {
        let elements = Box::into_raw(self.elements) as *mut [T];
        // SAFETY: it came from a Box just above, and `UnsafeCell<T>` has the layout of `T`.
        unsafe { Box::from_raw(elements) }
    }

    one_range! {
        range of usize, by read_within, as SliceReadGuard<'_, T, L>;
        panics "When the range is reversed or reaches past the end.";
        refused "because of another borrower";
        /// Lends a range to read; blocks while a writer has any of it.
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        read, try_read, try_read_for, try_read_until
    }

    one_range! {
        range of usize, by write_within, as SliceWriteGuard<'_, T, L>;
        panics "When the range is reversed or reaches past the end.";
        refused "because of another borrower";
        /// Lends a range to write; blocks while any other borrower has any of it.
        ///
        /// # Panics
        /// When the range is reversed or reaches past the end.
        write, try_write, try_write_for, try_write_until
    }

    /// Lends several ranges to write, all or none; blocks while other borrowers have any of them. Does not deadlock
    /// with other calls that lock many, whatever their order.
    ///
    /// ```
    /// use spanlock::range::RangeLocked;
    ///
    /// let accounts = RangeLocked::from([100, 20, 3]);
    /// let mut both = accounts.write_many([2..3, 0..1]);
    /// let [to, from] = both.slices_mut();
    /// (to[0], from[0]) = (to[0] + 50, from[0] - 50);
    /// drop(both);
    /// assert_eq!(accounts.read(..)[..], [50, 20, 53]);
    /// ```
    ///
    /// # Panics
    /// When a range is reversed or reaches past the end, or two of them overlap.
    #[track_caller]
    pub fn write_many<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
    ) -> SliceWriteGuards<'_, T, N, L> {
        granted(self.write_many_within(ranges, Wait::Forever))
    }

    /// As [`write_many`](Self::write_many), but `None` if it would block.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn try_write_many<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
    ) -> Option<SliceWriteGuards<'_, T, N, L>> {
        self.write_many_within(ranges, Wait::Never)
    }

    /// As [`write_many`](Self::write_many), but `None` after `timeout`.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn try_write_many_for<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
        timeout: Duration,
    ) -> Option<SliceWriteGuards<'_, T, N, L>> {
        self.write_many_within(ranges, Wait::at_most(timeout))
    }

    #[track_caller]
    fn write_many_within<R: RangeBounds<usize>, const N: usize>(
        &self,
        ranges: [R; N],
        wait: Wait,
    ) -> Option<SliceWriteGuards<'_, T, N, L>> {
        let ranges = apart(ranges, self.len());
        let guards = self
            .lock
            .write_many_within(ranges.iter().map(positions), wait)?;
        let slices = ranges.map(|range| self.slice(&range));
        // SAFETY: the ranges are in bounds and do not overlap, and the guards hold them exclusively.
        Some(unsafe { SliceWriteGuards::new(slices, guards) })
    }

    lends!(read_within as LentRead by ReadGuard);
    lends!(write_within as LentWrite by WriteGuard);

    /// The elements of a range that is in bounds.
    fn slice(&self, range: &Range<usize>) -> *mut [T] {
        let first = UnsafeCell::raw_get(self.elements[range.start..].as_ptr());
        ptr::slice_from_raw_parts_mut(first, range.len())
    }
}

/// Ranges of indices as a slice of `len` elements understands them, none of which overlap.
#[track_caller]
fn apart<R: RangeBounds<usize>, const N: usize>(ranges: [R; N], len: usize) -> [Range<usize>; N] {
    let ranges = ranges.map(|range| within(range, len));
    for (at, one) in ranges.iter().enumerate() {
        // An empty range has no element, wherever it is.
        let overlaps = |other: &&Range<usize>| one.start.max(other.start) < one.end.min(other.end);
        if let Some(other) = ranges[..at].iter().find(overlaps) {
            panic!(
                "ranges {other:?} and {one:?} overlap: expected each element to be asked for once"
            );
        }
    }
    ranges
}

/// A range of indices as a slice of `len` elements understands it.
#[track_caller]
fn within(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => start..end,
        (Some(start), Some(end)) if start > end => {
            panic!("{}", ReversedRange::new(start as u128, end as u128))
        }
        _ => {
            let (start, end) = (range.start_bound(), range.end_bound());
            panic!("range from {start:?} to {end:?} is out of bounds: expected it within 0..{len}")
        }
    }
}

/// Indices as positions: a `usize` is no wider than a `u64` wherever Rust runs.
fn positions(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

impl<T, L: RawRangeLock> fmt::Debug for RangeLocked<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeLocked")
            .field("len", &self.len())
            .field("lock", &self.lock)
            .finish()
    }
}
