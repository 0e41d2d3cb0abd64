//! A lock over keys, as a program has it.

use crate::answer::{Answer, Refused, ensure};
use crate::copies::{Copy, Handle};
use crate::exports::key_lock::{
    CompareCallback, KeyRange, SPANLOCK_EXCLUDED, SPANLOCK_INCLUDED, SPANLOCK_UNBOUNDED,
};
use crate::memory::{elements, given};
use crate::owner_handle::{Held, Tables};
use crate::ranged::Ranged;
use crate::tables::Table;
use libc::{EINVAL, c_void};
use spanlock::range::keys::{self, Compare, KeyRangeLock};
use spanlock::range::raw::Mode;
use spanlock::range::{By, Owner};
use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};
use std::ptr;

/// The order of a lock's keys.
pub(crate) struct ByCallback {
    pub(crate) compare: CompareCallback,
    pub(crate) argument: *mut c_void,
}

// SAFETY: the program's function may be called on any thread, with its argument, as `CompareCallback` says.
unsafe impl Send for ByCallback {}
// SAFETY: as above.
unsafe impl Sync for ByCallback {}

impl Compare<[u8]> for ByCallback {
    #[inline]
    fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let Some(compare) = self.compare else {
            return one.cmp(other);
        };
        let (first, second) = (one.as_ptr().cast(), other.as_ptr().cast());
        // SAFETY: the program has given the function for that, and the pointers are valid for so many bytes.
        unsafe { compare(self.argument, first, one.len(), second, other.len()) }.cmp(&0)
    }
}

pub(crate) type Keys = KeyRangeLock<[u8], ByCallback>;

/// A lock for ranges of keys. It lives on the heap, and is known by its address.
#[repr(C)] // Another copy of the library, of another version, finds the first word.
pub struct KeyHandle {
    pub(crate) copy: Copy,
    pub(crate) lock: Keys,
    pub(crate) order: ByCallback,
}

impl Handle for KeyHandle {
    fn copy(&self) -> &Copy {
        &self.copy
    }
}

impl KeyHandle {
    /// How the ends of a range compare, and which of their keys it excludes. `None`: one of them is open.
    fn compare(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Option<(Ordering, bool, bool)> {
        let ((first, starts_behind), (last, ends_before)) = (excludes(start)?, excludes(end)?);
        let is_one = ptr::eq(first, last); // A point, as programs write it.
        let order = if is_one {
            Ordering::Equal
        } else {
            self.order.compare(first, last)
        };
        Some((order, starts_behind, ends_before))
    }

    fn is_reversed(&self, (start, end): Bounds<'_>) -> bool {
        matches!(
            self.compare(start, end),
            Some((Ordering::Greater, ..) | (Ordering::Equal, true, true))
        )
    }

    /// Whether a range that begins so and ends so is not empty.
    fn is_before(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
        matches!(
            self.compare(start, end),
            None | Some((Ordering::Less, ..) | (Ordering::Equal, false, false))
        )
    }
}

impl Ranged for KeyHandle {
    type Key = [u8];
    type Piece = keys::KeyRange<[u8]>;
    type Place = &'static Keys;
    type Given = *const KeyRange;
    type Asked<'a> = Bounds<'a>;

    unsafe fn asked<'a>(&self, range: *const KeyRange) -> Answer<Bounds<'a>> {
        // SAFETY: the caller's promise.
        let range = unsafe { given(range) }?;
        // SAFETY: the caller's promise.
        let start = unsafe { bound(range.start, range.start_size, range.start_kind) }?;
        // SAFETY: the caller's promise.
        let end = unsafe { bound(range.end, range.end_size, range.end_kind) }?;
        ensure(!self.is_reversed((start, end)), EINVAL)?;
        Ok((start, end))
    }

    unsafe fn by<'o>(&self, owner: &'o Owner) -> By<'o, &'static Keys> {
        // SAFETY: the caller's promise.
        let lasting: &'static Keys = unsafe { &*ptr::from_ref(&self.lock) };
        lasting.by(owner)
    }

    fn table(tables: &mut Tables) -> &mut Table<Held<Self>> {
        &mut tables.keys
    }

    fn overlaps(&self, held: &keys::KeyRange<[u8]>, asked: Bounds<'_>) -> bool {
        self.is_before(held.start_bound(), asked.1) && self.is_before(asked.0, held.end_bound())
    }

    /// Only owners hold keys.
    fn thread_is_in_its_way(&self, _: Bounds<'_>, _: Mode) -> bool {
        false
    }
}

/// A key at an end of a range, and whether it is excluded; nothing for an end that is open.
fn excludes(bound: Bound<&[u8]>) -> Option<(&[u8], bool)> {
    match bound {
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
        Bound::Unbounded => None,
    }
}

/// A range, as the library takes it.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// # Safety
/// The pointer is null, or valid for `size` bytes for `'a`.
unsafe fn bound<'a>(key: *const c_void, size: usize, kind: u32) -> Answer<Bound<&'a [u8]>> {
    // SAFETY: the caller's promise.
    let key = || unsafe { elements(key.cast::<u8>(), size) };
    match kind {
        SPANLOCK_INCLUDED => Ok(Bound::Included(key()?)),
        SPANLOCK_EXCLUDED => Ok(Bound::Excluded(key()?)),
        SPANLOCK_UNBOUNDED => Ok(Bound::Unbounded),
        _ => Err(Refused::by(EINVAL)),
    }
}
