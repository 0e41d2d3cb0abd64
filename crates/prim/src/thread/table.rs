//! A table with one value for each thread index. Other threads may read the values.

use super::{WORD, WORDS, high_water};
use crate::atomic::{AtomicPtr, Ordering};
use core::ptr;

/// A growable table indexed by [`with_index`](super::with_index)'s indices. Entries are created by `Default`, never
/// move, and live as long as the table.
#[derive(Debug)]
pub struct Table<T> {
    chunks: [AtomicPtr<[T; WORD]>; WORDS],
}

impl<T: Default + Sync> Table<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; WORDS],
        }
    }

    /// The entry of an index; the first call for an index creates it.
    pub fn get(&self, index: usize) -> &T {
        let chunk = &self.chunks[index / WORD];
        // Acquire: pairs with the Release in `publish`.
        let mut entries = chunk.load(Ordering::Acquire);
        if entries.is_null() {
            entries = publish(chunk);
        }
        // SAFETY: a published chunk is initialised, and only `drop` frees it, which needs the table exclusively.
        let entries = unsafe { &*entries };
        &entries[index % WORD]
    }

    /// The entries of all indices taken so far.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..high_water()).map(|index| self.get(index))
    }
}

/// The chunk, which this call has made unless another thread was first. Entries are made one by one on the heap: a
/// whole chunk may be larger than a thread's stack.
#[cold]
#[inline(never)]
fn publish<T: Default>(chunk: &AtomicPtr<[T; WORD]>) -> *mut [T; WORD] {
    let entries: Box<[T]> = (0..WORD).map(|_| T::default()).collect();
    let fresh = Box::into_raw(entries).cast::<[T; WORD]>();
    // Release: publishes the entries.
    match chunk.compare_exchange(ptr::null_mut(), fresh, Ordering::Release, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(theirs) => {
            // SAFETY: `fresh` is the box above, of `WORD` entries. It was not published, so no other thread has it.
            drop(unsafe { Box::from_raw(fresh) });
            theirs
        }
    }
}

impl<T: Default + Sync> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for chunk in &mut self.chunks {
            let entries = *chunk.get_mut();
            if !entries.is_null() {
                // SAFETY: the pointer comes from a Box, and no borrow of an entry outlives the table.
                drop(unsafe { Box::from_raw(entries) });
            }
        }
    }
}
