//! The locks of files. Each is a function for [`Options::with_lock`](crate::store::Options::with_lock).
//!
//! | function | the lock |
//! |---|---|
//! | [`slots`] | the default: exact ranges, fair; threads that do not conflict share no cache line |
//! | [`list_rw`] | exact ranges, fair, the least memory |
//! | [`srl_array`], [`srl_tree`] | P3's segment locks, mended: a word for each page. Truncations and appends lock every word |
//! | [`inode`] | NOVA's: one reader-writer lock for the whole file, so writers of one file take turns |
//!
//! Any other [`RawRangeLock`](spanlock::range::raw::RawRangeLock) does as well, such as the interval tree of the
//! package `spanlock-workbench`.

use crate::store::format::PAGE_BYTES;
use spanlock::range::list::ListRw;
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::range::slots::RawSlots;
use spanlock::rw::{FutexRwLock, WholeRange};

/// Pages that have a word of their own, in the segment locks: those of the first gigabyte. The others share the last.
const SEGMENTS: u64 = 1 << 18;

/// Exact ranges, in a slot for each thread once threads have met.
#[must_use]
pub fn slots() -> RawSlots {
    RawSlots::new()
}

/// Exact ranges in a list.
#[must_use]
pub fn list_rw() -> ListRw {
    ListRw::new()
}

/// A word for each page, in an array: a mebibyte for each file.
#[must_use]
pub fn srl_array() -> SrlArray {
    let array = SrlArray::builder().segment(PAGE_BYTES);
    array.length(SEGMENTS * PAGE_BYTES).build()
}

/// A word for each page, in a tree that grows where pages are used.
#[must_use]
pub fn srl_tree() -> SrlTree {
    let tree = SrlTree::builder().segment(PAGE_BYTES).fan_out(64);
    tree.depth(SEGMENTS.ilog(64)).build()
}

/// One lock for the whole file.
#[must_use]
pub fn inode() -> WholeRange<FutexRwLock> {
    WholeRange::new(FutexRwLock::new())
}
