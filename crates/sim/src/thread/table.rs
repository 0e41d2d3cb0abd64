//! A value for each thread index, which other threads may look at.

use super::high_water;
use std::sync::OnceLock;

const CHUNK: usize = 16;
const CHUNKS: usize = 256;

/// A table with an entry for each of a few thousand threads. Entries are created by `Default`, which does not wait.
#[derive(Debug)]
pub struct Table<T> {
    chunks: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Default + Sync> Table<T> {
    /// A table of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The entry of an index, created if need be.
    ///
    /// # Panics
    /// When there are more threads than that.
    pub fn get(&self, index: usize) -> &T {
        let fresh = || (0..CHUNK).map(|_| T::default()).collect();
        &self.chunks[index / CHUNK].get_or_init(fresh)[index % CHUNK]
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
