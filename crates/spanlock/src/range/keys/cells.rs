//! Where the keys of a range are kept while others may compare them.
//!
//! ```text
//!   a cell:    uses | what K is | from: before "b" | to: after "m"
//!
//!   a span:    [ address of the cell, its first end ][ address of the cell, its second end ]
//! ```
//!
//! An *end* lies between keys, or before or behind them all. A range is what lies between two ends, which may be those
//! of two cells: what is left of a range behind another begins where the other ends. So all bounds are of one kind, and
//! ranges are cut and joined without a new key.
//!
//! The users of a cell are the node that bears it, the request that it was made for, and the queue while a task waits.
//! The last one gives it to the running thread, which writes the next keys over these. So a warm thread allocates
//! nothing for keys that fit where the last ones were.
//!
//! Comparing ends does not count as use: who compares has a use, or a pin [key-life].
//!
//! # Edges
//!
//! - **own-keys**: the queue has a use of the keys of a task that waits, and so compares them whatever becomes of the
//!   future.

use super::{Compare, Key};
use crate::range::named::{Functions, Header, Named, SECOND};
use crate::range::span::Span;
use prim::cell::UnsafeCell;
use std::any::TypeId;
use std::borrow::Borrow;
use std::cmp;
use std::ops::{Bound, RangeBounds};
use std::ptr::{self, NonNull};

/// The keys of a range.
#[repr(C)]
struct Cell<K: ?Sized + Key> {
    header: Header,
    ends: UnsafeCell<Ends<K>>,
}

#[repr(C)] // What the comparison of points needs comes first.
struct Ends<K: ?Sized + Key> {
    /// Whether it is one key. Then that is the key of the first end alone.
    is_point: bool,
    sides: [Side; 2],
    /// The keys beside the ends. Of an end that is before or behind all keys: of no meaning.
    keys: [Option<K::Owned>; 2],
}

/// On which side of a key an end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    BeforeAll,
    Before,
    After,
    BehindAll,
}

/// A place between keys: the key beside it, and on which side it is. `None`: before or behind all keys.
pub(super) type End<'k, K> = (Side, Option<&'k K>);

/// Which of two ends comes first.
#[inline]
pub(super) fn compare<K: ?Sized, C: Compare<K>>(
    (side, key): End<'_, K>,
    (other_side, other): End<'_, K>,
    by: &C,
) -> cmp::Ordering {
    match (key, other) {
        (Some(key), Some(other)) => by.compare(key, other).then(side.cmp(&other_side)),
        _ => side.cmp(&other_side),
    }
}

impl<K: ?Sized + Key> Ends<K> {
    #[inline]
    fn end(&self, at: usize) -> End<'_, K> {
        let side = self.sides[at];
        if matches!(side, Side::BeforeAll | Side::BehindAll) {
            return (side, None);
        }
        let at = if self.is_point { 0 } else { at };
        (side, self.keys[at].as_ref().map(Borrow::borrow))
    }

    fn set(&mut self, at: usize, (side, key): End<'_, K>) {
        self.sides[at] = side;
        match (key, &mut self.keys[at]) {
            (Some(key), Some(place)) => key.clone_into(place),
            (Some(key), place) => *place = Some(key.to_owned()),
            (None, _) => {}
        }
    }
}

impl<K: ?Sized + Key> Cell<K> {
    const FUNCTIONS: &'static Functions = &Functions {
        id: TypeId::of::<Self>,
        free: |cell| {
            // SAFETY: it is such a cell, which came from a box, and has no users.
            drop(unsafe { Box::from_raw(cell.cast::<Self>().as_ptr()) });
        },
        is_small: |cell| {
            // SAFETY: it is such a cell.
            let cell = unsafe { cell.cast::<Self>().as_ref() };
            // SAFETY: it has no other users, so nobody writes it.
            let ends = unsafe { &*cell.ends.with(|ends| ends) };
            let is_small = |key: &K::Owned| size_of_val::<K>(key.borrow()) <= LARGEST_KEPT;
            ends.keys.iter().flatten().all(is_small)
        },
    };
}

/// The largest key whose memory stays with its cell, in bytes.
const LARGEST_KEPT: usize = 256;

impl Named {
    /// The range that a program writes, if it is not empty. `spares` are the running thread's.
    ///
    /// # Errors
    /// It is reversed.
    pub(super) fn of<K: ?Sized + Key, C: Compare<K>>(
        range: &impl RangeBounds<K>,
        by: &C,
        spare: Option<Self>,
    ) -> Result<Option<Self>, Self> {
        let from = match range.start_bound() {
            Bound::Included(key) => (Side::Before, Some(key)),
            Bound::Excluded(key) => (Side::After, Some(key)),
            Bound::Unbounded => (Side::BeforeAll, None),
        };
        let to = match range.end_bound() {
            Bound::Included(key) => (Side::After, Some(key)),
            Bound::Excluded(key) => (Side::Before, Some(key)),
            Bound::Unbounded => (Side::BehindAll, None),
        };
        let order = match (from, to) {
            ((side, Some(key)), (other_side, Some(other))) => {
                let keys = match ptr::eq(key, other) {
                    true => cmp::Ordering::Equal,
                    false => by.compare(key, other),
                };
                (keys, keys.then(side.cmp(&other_side)))
            }
            ((side, _), (other_side, _)) => (cmp::Ordering::Less, side.cmp(&other_side)),
        };
        if order.1 == cmp::Ordering::Equal {
            return Ok(None);
        }
        let is_point = order.0 == cmp::Ordering::Equal;
        let made = Self::write(spare, |ends: &mut Ends<K>| {
            ends.is_point = is_point;
            ends.set(0, from);
            ends.set(1, (to.0, to.1.filter(|_| !is_point)));
        });
        match order.1 {
            cmp::Ordering::Less => Ok(Some(made)),
            _ => Err(made),
        }
    }

    /// The ends of a span, in a cell of their own.
    ///
    /// # Safety
    /// The span names ends of cells that are in use, and their keys are `K`.
    pub(super) unsafe fn of_span<K: ?Sized + Key>(span: Span, spare: Option<Self>) -> Self {
        Self::write(spare, |ends: &mut Ends<K>| {
            // What is left of a point is nothing.
            ends.is_point = false;
            let copy = |from: End<'_, K>, to: End<'_, K>| {
                ends.set(0, from);
                ends.set(1, to);
            };
            // SAFETY: the caller's promise.
            unsafe { with_ends(span.start(), span.last(), copy) };
        })
    }

    /// A cell that `write` has written.
    fn write<K: ?Sized + Key>(spare: Option<Self>, write: impl FnOnce(&mut Ends<K>)) -> Self {
        let named = match spare {
            Some(spare) if spare.is_of(TypeId::of::<Cell<K>>()) => spare,
            _ => Self::new::<K>(),
        };
        // SAFETY: it is such a cell.
        let cell = unsafe { named.as_raw().cast::<Cell<K>>().as_ref() };
        cell.ends.with_mut(|ends| {
            // SAFETY: a fresh or a spare cell has no other user.
            write(unsafe { &mut *ends });
        });
        named
    }

    #[cold] // A thread's first ranges, and those of which it keeps the keys elsewhere.
    fn new<K: ?Sized + Key>() -> Self {
        let cell: Box<Cell<K>> = Box::new(Cell {
            header: Header::new(Cell::<K>::FUNCTIONS),
            ends: UnsafeCell::new(Ends {
                is_point: false,
                sides: [Side::BeforeAll, Side::BehindAll],
                keys: [None, None],
            }),
        });
        let cell = NonNull::from(Box::leak(cell)).cast();
        // SAFETY: it comes from a box, the functions are of its type, and keys may be sent and shared, by `Key`. They
        // are written by `write`.
        unsafe { Self::from_raw(cell) }
    }
}

/// The cell of an end, and which of its ends it is.
///
/// # Safety
/// The name is that of an end of a cell that is in use as long as the result is, and its keys are `K`.
#[inline]
unsafe fn cell_of<'a, K: ?Sized + Key>(name: u64) -> (&'a Cell<K>, usize) {
    let cell = ptr::with_exposed_provenance::<Cell<K>>((name & !SECOND) as usize);
    // SAFETY: the caller's promise.
    (unsafe { &*cell }, (name & SECOND) as usize)
}

/// Calls `see` with two ends.
///
/// # Safety
/// The names are those of ends of cells that are in use, and their keys are `K`.
#[inline]
pub(super) unsafe fn with_ends<K: ?Sized + Key, R>(
    one: u64,
    other: u64,
    see: impl FnOnce(End<'_, K>, End<'_, K>) -> R,
) -> R {
    // SAFETY: the caller's promise.
    let (one, at) = unsafe { cell_of::<K>(one) };
    // SAFETY: the same.
    let (other, other_at) = unsafe { cell_of::<K>(other) };
    one.ends.with(|ends| {
        other.ends.with(|others| {
            // SAFETY: keys are written only by who is the only user of their cell.
            let ends = unsafe { &*ends };
            // SAFETY: the same.
            let others = unsafe { &*others };
            see(ends.end(at), others.end(other_at))
        })
    })
}

/// The key that a span is, if it is one.
///
/// # Safety
/// As [`with_ends`]; the result is used as long as the cells are.
#[inline]
pub(super) unsafe fn point_of<'a, K: ?Sized + Key>(span: Span) -> Option<&'a K> {
    if span.start() | SECOND != span.last() {
        return None;
    }
    // SAFETY: the caller's promise.
    let (cell, _) = unsafe { cell_of::<K>(span.start()) };
    cell.ends.with(|ends| {
        // SAFETY: keys are written only by who is the only user of their cell.
        let ends: &'a Ends<K> = unsafe { &*ends };
        let key = ends.keys[0].as_ref().filter(|_| ends.is_point);
        key.map(Borrow::borrow)
    })
}
