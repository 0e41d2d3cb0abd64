//! The papers' figures as data: which panels each has, and which locks are drawn in it.

use crate::compare::Figure;

/// Locks that figures draw together, by the word for them.
const LISTS: &str = "
arr: list-rw list-ex kernel-rw lustre-ex pnova-rw srl-array skip-rw
rw: pf-q bravo-pf-q bravo-pf-q-paper futex bravo-futex c-rw-wp per-cpu pthread
segments: srl-array srl-tree kernel-rw pnova-rw list-rw
files: inode kernel-rw pnova-rw srl-array srl-tree list-rw plain-file
space: stock tree-full tree-refined list-full list-refined list-pf list-mprotect ours stock-bravo ours-list
variants: stock tree-full tree-refined list-full list-refined ours stock-bravo ours-list
breakdown: list-full list-refined list-pf list-mprotect ours
waits: stock tree-full tree-refined list-full list-refined ours
trees: tree-full tree-refined
skip: skip-ex list-ex song list-rw srl-array
blob: skip-ex list-ex song list-rw bitmap
sets: range-slots range-list-ex range-skip-ex range-kernel-rw range-lustre-ex orig crossbeam-skiplist btree-rwlock
heights: skip-ex:h=1 skip-ex:h=2 skip-ex:h=3 skip-ex:h=5 skip-ex:h=6 skip-ex:h=8
";

/// The locks that a word stands for, or those named.
fn listed(text: &'static str) -> &'static str {
    let mut lists = LISTS.lines();
    let list = lists.find_map(|line| line.strip_prefix(text)?.strip_prefix(": "));
    list.unwrap_or(text)
}

/// Lists of locks. The position of a lock in its list is its style in every figure; a lock is in one list only. `-`
/// skips a style.
const STYLED: [&str; 8] = [
    "list-rw list-ex kernel-rw lustre-ex pnova-rw srl-array skip-rw srl-tree skip-ex song",
    "rw",
    "heights",
    "sets",
    "space",
    "- - - - bitmap",
    "- inode - plain-file",
    "add compare-exchange ttas mcs rw-counter",
];

/// The number of a lock's style, the same in every figure; `None` of a lock that no figure has.
fn style(lock: &str) -> Option<usize> {
    let position = |list: &&'static str| listed(list).split(' ').position(|one| one == lock);
    STYLED.iter().find_map(position)
}

/// Locks that have a style, with its number.
pub fn styled<'a>(locks: impl Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    locks
        .filter_map(|lock| Some((style(lock)?, lock)))
        .collect()
}

impl Figure {
    /// The locks that are drawn.
    pub fn locks(&self) -> impl Iterator<Item = &'static str> + Clone {
        listed(self.locks).split_whitespace()
    }

    /// Its id on the page: the words of its source.
    #[must_use]
    pub fn anchor(&self) -> String {
        words(&self.source.replace('§', ""))
    }
}

/// A text as an id: its letters and digits.
#[must_use]
pub fn words(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::super::chart::STYLES;
    use super::style;
    use crate::compare::{claims, figures};
    use std::collections::HashSet;

    #[test]
    fn the_locks_of_a_figure_have_a_style_each() {
        for figure in figures() {
            let styles = figure
                .locks()
                .map(|lock| style(lock).unwrap_or_else(|| panic!("{lock} has no style")));
            let distinct: HashSet<_> = styles.clone().collect();
            assert_eq!(distinct.len(), figure.locks().count(), "{}", figure.source);
            assert!(distinct.iter().all(|style| *style < STYLES), "{distinct:?}");
        }
        assert_eq!(style("list-rw"), Some(0));
        assert_eq!(style("nobody's"), None);
    }

    #[test]
    fn each_claim_is_of_a_figure_and_figures_are_distinct() {
        let sources: HashSet<_> = figures().map(|figure| figure.source).collect();
        assert_eq!(sources.len(), figures().count());
        for claim in claims() {
            assert!(sources.contains(claim.source), "{}", claim.source);
        }
        let anchors: HashSet<_> = figures().map(|figure| figure.anchor()).collect();
        assert_eq!(anchors.len(), figures().count());
    }
}
