//! Where the words of the segments are.

use super::word::Word;

pub trait Sealed {}

/// Finds the words of segments. Sealed: [`Array`](super::Array) or [`Tree`](super::Tree).
pub trait Store: Sealed + Send + Sync {
    /// The number of the last segment.
    #[doc(hidden)]
    fn last(&self) -> u64;

    /// The words of that segment and of those after it, as far as they lie side by side: one or more.
    #[doc(hidden)]
    fn words_from(&self, segment: u64) -> &[Word];

    /// Passes all the words there are to `visit`, piece by piece in ascending order, with the number of each piece's
    /// first segment.
    #[doc(hidden)]
    fn visit(&self, visit: &mut dyn FnMut(u64, &[Word]));

    /// The bytes of the words and of what leads to them.
    #[doc(hidden)]
    fn bytes(&self) -> usize;
}
