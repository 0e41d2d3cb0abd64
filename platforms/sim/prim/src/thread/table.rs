//! A table with one value for each thread index. Other threads may read the values.

use super::high_water;
use std::sync::OnceLock;

const CHUNK: usize = 16;
const CHUNKS: usize = 256;

/// A table with an entry for each of a few thousand threads. `Default` creates the entries; it must not wait.
#[derive(Debug)]
pub struct Table<T> {
    chunks: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Default + Sync> Table<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The entry of an index; the first call for an index creates it.
    ///
    /// # Panics
    /// When the index is larger than the table.
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
