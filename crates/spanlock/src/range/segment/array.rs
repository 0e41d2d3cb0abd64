//! A word for every segment, made with the lock (the paper's SRL(array)).

use super::store::{Sealed, Store};
use super::word::Word;

/// The words of all segments, in one piece.
#[derive(Debug)]
pub struct Array {
    words: Box<[Word]>,
}

impl Array {
    pub(super) fn new(segments: usize) -> Self {
        assert!(segments > 0, "a lock has at least one segment");
        Self {
            words: (0..segments).map(|_| Word::new()).collect(),
        }
    }
}

impl Sealed for Array {}

impl Store for Array {
    fn last(&self) -> u64 {
        self.words.len() as u64 - 1
    }

    #[inline]
    fn words_from(&self, segment: u64) -> &[Word] {
        // No segment is beyond the last, and that one's number came from a `usize`.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let at = segment as usize;
        &self.words[at..]
    }

    fn visit(&self, visit: &mut dyn FnMut(u64, &[Word])) {
        visit(0, &self.words);
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}
