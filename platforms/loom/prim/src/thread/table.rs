//! A table with one value for each thread index. Other threads may read the values.

use super::high_water;

/// A table with an entry for each thread that loom can run.
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<T>,
}

impl<T: Default + Sync> Table<T> {
    /// A table of default values.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: (0..loom::MAX_THREADS).map(|_| T::default()).collect(),
        }
    }

    /// The entry of an index.
    #[must_use]
    pub fn get(&self, index: usize) -> &T {
        &self.entries[index]
    }

    /// The entries of all indices taken so far.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().take(high_water())
    }
}

impl<T: Default + Sync> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}
