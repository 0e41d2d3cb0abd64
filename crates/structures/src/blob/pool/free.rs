//! The free extents of a pool.

use std::collections::BTreeMap;

/// Free extents by where they begin, with their lengths. No two of them touch.
pub(super) struct Free(BTreeMap<usize, usize>);

impl Free {
    /// So many free bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(BTreeMap::from([(0, bytes)]))
    }

    /// Takes so many bytes, one at least, from the first free extent that has them: where they begin.
    pub(super) fn take(&mut self, bytes: usize) -> Option<usize> {
        let (&start, &length) = self.0.iter().find(|&(_, &length)| length >= bytes)?;
        self.0.remove(&start);
        if length > bytes {
            self.0.insert(start + bytes, length - bytes);
        }
        Some(start)
    }

    /// Gives back what was taken.
    pub(super) fn give(&mut self, start: usize, bytes: usize) {
        let (mut start, mut end) = (start, start + bytes);
        if let Some(length) = self.0.remove(&end) {
            end += length;
        }
        if let Some((&before, &length)) = self.0.range(..start).next_back()
            && before + length == start
        {
            start = before;
        }
        self.0.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::Free;
    use proptest::prelude::*;

    const PAGES: usize = 40;

    proptest! {
        /// The model is a page table: the owner of each page.
        #[test]
        fn agrees_with_a_table_of_pages(steps in prop::collection::vec((any::<bool>(), 1..9_usize), 0..200)) {
            let mut free = Free::new(PAGES);
            let mut pages = [None; PAGES];
            let mut taken = Vec::new();
            for (number, (takes, size)) in steps.into_iter().enumerate() {
                if takes {
                    let fits = |start: &usize| pages[*start..*start + size].iter().all(Option::is_none);
                    let first = (0..=PAGES - size).find(fits);
                    prop_assert_eq!(free.take(size), first);
                    if let Some(start) = first {
                        pages[start..start + size].fill(Some(number));
                        taken.push((start, size));
                    }
                } else if !taken.is_empty() {
                    let (start, size) = taken.swap_remove(number % taken.len());
                    free.give(start, size);
                    pages[start..start + size].fill(None);
                }
                let mut end = None;
                for (&start, &length) in &free.0 {
                    prop_assert!(length > 0 && end < Some(start), "they do not touch");
                    end = Some(start + length);
                }
                let count: usize = free.0.values().sum();
                prop_assert_eq!(count, pages.iter().filter(|page| page.is_none()).count());
            }
        }
    }
}
