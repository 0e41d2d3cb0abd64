//! A value for each thread index, which other threads may look at.

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

    /// The entry of an index, created if need be.
    pub fn get(&self, index: usize) -> &T {
        let chunk = &self.chunks[index / WORD];
        // Acquire: pairs with the Release below, which publishes the entries.
        let mut entries = chunk.load(Ordering::Acquire);
        if entries.is_null() {
            let fresh = Box::into_raw(Box::new(core::array::from_fn(|_| T::default())));
            let publish = chunk.compare_exchange(
                ptr::null_mut(),
                fresh,
                Ordering::Release,
                Ordering::Acquire,
            );
            entries = match publish {
                Ok(_) => fresh,
                Err(theirs) => {
                    // SAFETY: `fresh` came from a Box just above and nobody else has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    theirs
                }
            };
        }
        // SAFETY: published chunks are valid and are freed by `drop` alone.
        let entries = unsafe { &*entries };
        &entries[index % WORD]
    }

    /// The entries of all indices taken so far.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..high_water()).map(|index| self.get(index))
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
                // SAFETY: it came from a Box, and nobody can borrow from a table that is being dropped.
                drop(unsafe { Box::from_raw(entries) });
            }
        }
    }
}
