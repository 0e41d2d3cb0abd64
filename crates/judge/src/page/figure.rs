//! The papers' figures as data: which panels each has, and which locks are drawn in it.

use crate::compare::{Phase, Place};
use crate::record::VmStat;
use crate::record::arr::Variant;
use crate::record::pattern::Pattern;
use crate::record::set::Chosen;
use crate::record::store::Kernel;

/// A paper, and the figures that the report has of it.
#[derive(Debug)]
pub struct Paper {
    /// Its short name in the report.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its figures, in its order.
    pub figures: &'static [Figure],
}

/// A figure of a paper, or several figures that are alike.
#[derive(Debug)]
pub struct Figure {
    /// Paper, section and figure, as in the `source` of its claims.
    pub source: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its panels; none where the workload is not built here.
    pub places: &'static [Place],
    /// The paper's locks, and some of ours to compare. No more than a reader can distinguish.
    locks: &'static str,
}

/// Lists of locks. The position of a lock in its list is its style in every figure; a lock is in one list only. `-`
/// skips a style.
const STYLED: [&str; 8] = [
    "list-rw list-ex kernel-rw lustre-ex pnova-rw srl-array skip-rw srl-tree skip-ex song",
    RW,
    HEIGHTS,
    SETS,
    SPACE,
    "- - - - bitmap",
    "- inode - plain-file",
    "add compare-exchange ttas mcs rw-counter",
];
const ARR: &str = "list-rw list-ex kernel-rw lustre-ex pnova-rw srl-array skip-rw";
const RW: &str = "pf-q bravo-pf-q bravo-pf-q-paper futex bravo-futex c-rw-wp per-cpu pthread";
const SEGMENTS: &str = "srl-array srl-tree kernel-rw pnova-rw list-rw";
const FILES: &str = "inode kernel-rw pnova-rw srl-array srl-tree list-rw plain-file";
const SPACE: &str = "stock tree-full tree-refined list-full list-refined list-pf list-mprotect ours ours-full stock-bravo ours-slots";
const VARIANTS: &str =
    "stock tree-full tree-refined list-full list-refined ours stock-bravo ours-slots";
const BREAKDOWN: &str = "list-full list-refined list-pf list-mprotect ours";
const WAITS: &str = "stock tree-full tree-refined list-full list-refined ours";
const TREES: &str = "tree-full tree-refined";
const SKIP: &str = "skip-ex list-ex song list-rw srl-array";
const BLOB: &str = "skip-ex list-ex song list-rw bitmap";
const SETS: &str = "range-list-ex range-list-rw range-skip-ex range-kernel-rw range-lustre-ex orig crossbeam-skiplist btree-rwlock";
const HEIGHTS: &str = "skip-ex:h=1 skip-ex:h=2 skip-ex:h=3 skip-ex:h=5 skip-ex:h=6 skip-ex:h=8";

/// The number of a lock's style, the same in every figure; `None` of a lock that no figure has.
fn style(lock: &str) -> Option<usize> {
    let position = |list: &&str| list.split(' ').position(|one| one == lock);
    STYLED.iter().find_map(position)
}

/// Locks that have a style, with its number.
pub fn styled<'a>(locks: impl Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    locks
        .filter_map(|lock| Some((style(lock)?, lock)))
        .collect()
}

/// Figures as rows: source, title, panels, locks.
macro_rules! figures {
    ($($source:literal $title:literal [$($place:expr),*] $locks:expr;)+) => {
        &[$(Figure { source: $source, title: $title, places: &[$($place),*], locks: $locks },)+]
    };
}

/// All papers.
pub static PAPERS: [Paper; 7] = [
    Paper {
        name: "P1",
        title: "Scalable Range Locks for Scalable Address Spaces and Beyond (EuroSys 2020)",
        figures: figures! {
            "P1 §7.1, Fig. 3 (a, b)" "ArrBench, all lock the full range" [Place::Arr(Variant::Full, (0, 100))] ARR;
            "P1 §7.1, Fig. 3 (c, d)" "ArrBench, each locks its own part" [Place::Arr(Variant::Disjoint, (0, 100))] ARR;
            "P1 §7.1, Fig. 3 (e, f)" "ArrBench, random ranges" [Place::Arr(Variant::Random, (0, 100))] ARR;
            "P1 §7.1, Fig. 4" "Skip lists: under a range lock, and with a lock in each node"
                [Place::Set(Chosen::Uniform)] SETS;
            "P1 §7.2, Fig. 5" "Metis: calls and faults of an address space"
                [Place::Vm(&["wc", "wr", "wrmem"])] VARIANTS;
            "P1 §7.2, Fig. 6" "Metis: what the refinement of each operation brings"
                [Place::Vm(&["wc", "wr", "wrmem"])] BREAKDOWN;
            "P1 §7.2, Fig. 7" "Metis: waits for the lock of the address space, in nanoseconds"
                [Place::VmStat(VmStat::ReadWait), Place::VmStat(VmStat::WriteWait)] WAITS;
            "P1 §7.2, Fig. 8" "Metis: waits for the spin lock of the tree, in nanoseconds"
                [Place::VmStat(VmStat::TreeWait)] TREES;
        },
    },
    Paper {
        name: "P2",
        title: "BRAVO: Biased Locking for Reader-Writer Locks (ATC 2019)",
        figures: figures! {
            "P2 §5.1, Fig. 1" "Interference: readers of random locks of a pool" [Place::Interference] RW;
            "P2 §5.2, Fig. 2" "Alternator: readers one after the other, in a ring" [Place::Alternator] RW;
            "P2 §5.3, Fig. 3" "test_rwlock: readers and one writer" [Place::TestRwlock] RW;
            "P2 §5.4, Fig. 4 (a-c)" "RWBench, many writes" [Place::Rwbench((0.1, 1.0))] RW;
            "P2 §5.4, Fig. 4 (d-f)" "RWBench, few writes" [Place::Rwbench((0.0, 0.099))] RW;
            "P2 §5.5, Fig. 5" "RocksDB, readwhilewriting" [] "";
            "P2 §5.6, Fig. 6" "hash_table: lookups, an inserter and an eraser" [Place::HashTable] RW;
        },
    },
    Paper {
        name: "P3",
        title: "Parallelizing Shared File I/O Operations of NVM File System for Manycore Servers",
        figures: figures! {
            "P3 §VI-B1, Fig. 10" "The longest acquisition of a part"
                [Place::Longest(&[Phase::First, Phase::Again])] SEGMENTS;
            "P3 §VI-B2, Fig. 11" "Memory of segment locks" [] "";
            "P3 §VI-B3, Fig. 12 (a)" "Writers of their own parts, as W1 has them" [Place::W1] SEGMENTS;
            "P3 §VI-B3, Fig. 12 (b)" "Readers of their own parts, as ArrBench has them"
                [Place::Arr(Variant::Disjoint, (100, 100))] SEGMENTS;
            "P3 §VI-B3, Fig. 12 (a), files" "DWOM: each writes a page of its own of one file"
                [Place::Store(&[Kernel::Dwom])] FILES;
            "P3 §VI-B3, Fig. 12 (b), files" "DRBM: each reads a page of its own of one file"
                [Place::Store(&[Kernel::Drbm])] FILES;
            "P3 §VI-B3, Fig. 12 (c)" "Three writes for each read, of a page of the thread's own of one file"
                [Place::Store(&[Kernel::Mix31])] FILES;
            "P3 §VI-B3, Fig. 12 (d)" "A write for three reads, of a page of the thread's own of one file"
                [Place::Store(&[Kernel::Mix13])] FILES;
            "P3 §VI-B4, Fig. 13" "HACC-IO: checkpoints in one file" [Place::Store(&[Kernel::Hacc])] FILES;
            "P3 §VI-B4, Fig. 14" "RocksDB, nine reads for each write" [] "";
            "P3 §VI-B5, Fig. 15" "Random pages of the thread's own region"
                [Place::Store(&[Kernel::RandomWrite, Kernel::RandomRead])] FILES;
        },
    },
    Paper {
        name: "P4",
        title: "Concurrent Range Locking (thesis, 2024)",
        figures: figures! {
            "P4 §4.3.2, Fig. 4.1" "Heights of the skip list" [Place::W1, Place::W2] HEIGHTS;
            "P4 §4.3.3, Fig. 4.2" "W1: one range at a time" [Place::W1] SKIP;
            "P4 §4.3.3, Fig. 4.3" "W2: batches of ranges" [Place::W2] SKIP;
            "P4 §4.4.3, Fig. 4.4" "BLOBs of 1 MB in an aliasing area" [Place::Blob] BLOB;
            "P4 §4.4.3, Fig. 4.5" "Hardware events of the same" [] "";
        },
    },
    Paper {
        name: "Patterns",
        title: "What users do and no paper measures, and what hurts a lock that adapts",
        figures: figures! {
            "Patterns, files" "Many files, few of them popular, ranges of all sizes" [Place::Pattern(Pattern::Files)] ARR;
            "Patterns, pages" "Random pages of one file" [Place::Pattern(Pattern::Pages)] ARR;
            "Patterns, append" "One thread appends, others use what is before the end" [Place::Pattern(Pattern::Append)] ARR;
            "Patterns, phases" "Own parts, then any range, and so on: in long phases and in short ones"
                [Place::Pattern(Pattern::Phases), Place::Pattern(Pattern::Restless)] ARR;
            "Patterns, owners" "Parts that pass on: after each operation, or after some"
                [Place::Pattern(Pattern::Alternate), Place::Pattern(Pattern::Owners)] ARR;
            "Patterns, everything" "Now and then somebody writes everything: each thread, or one"
                [Place::Pattern(Pattern::Sweep), Place::Pattern(Pattern::Everything)] ARR;
            "Patterns, churn" "Threads that soon end" [Place::Pattern(Pattern::Churn)] ARR;
            "Patterns, once" "Many locks, each used once by each thread" [Place::Pattern(Pattern::Once)] ARR;
        },
    },
    Paper {
        name: "Files",
        title: "Files that threads share as P3 does not measure",
        figures: figures! {
            "Files, private" "Files of the threads' own: what a shared file could reach at best"
                [Place::Store(&[Kernel::Dwol, Kernel::Drbl])] FILES;
            "Files, overlapping" "Random pages of the whole file: threads meet"
                [Place::Store(&[Kernel::OverlapWrite, Kernel::OverlapMixed])] FILES;
        },
    },
    Paper {
        name: "Micro",
        title: "Microbenchmarks: shapes that are commonly told",
        figures: figures! {
            "Micro, contended words" "Additions and compare-exchanges" [Place::Micro] "add compare-exchange";
            "Micro, simple locks" "The simplest locks" [Place::Micro] "ttas mcs rw-counter";
        },
    },
];

impl Paper {
    /// Its name and title, for headings.
    #[must_use]
    pub fn heading(&self) -> String {
        format!("{}: {}", self.name, self.title)
    }
}

/// The figures of all papers.
pub fn figures() -> impl Iterator<Item = &'static Figure> {
    PAPERS.iter().flat_map(|paper| paper.figures)
}

impl Figure {
    /// The locks that are drawn.
    pub fn locks(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.locks.split_whitespace()
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
    use super::{figures, style};
    use crate::compare::claims;
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
