//! Memory that workloads read and write.

/// Pieces of memory, each on cache lines of its own, all zero at first.
#[derive(Debug)]
pub struct Lines<T>(pub(crate) Box<[T]>);

impl<T: Default> Lines<T> {
    /// So many pieces.
    #[must_use]
    pub fn new(pieces: usize) -> Self {
        Self((0..pieces).map(|_| T::default()).collect())
    }
}
