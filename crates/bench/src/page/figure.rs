//! The papers' figures: which panels and locks are in each.

use crate::arr::Variant;
use crate::compare::{Phase, Place};

/// What is along a figure's x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Threads.
    Threads,
    /// Locks in a pool.
    Pool,
}

/// A figure of a paper, or several that are alike.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Which paper, section and figure: as claims have it.
    pub source: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its panels.
    pub places: &'static [Place],
    /// What is along its x axis.
    pub axis: Axis,
    /// The paper's locks, and some of ours to compare: no more than can be told apart.
    pub locks: &'static [&'static str],
}

/// Papers, as they are called here, with their titles.
pub const PAPERS: [(&str, &str); 5] = [
    (
        "P1",
        "Scalable Range Locks for Scalable Address Spaces and Beyond (EuroSys 2020)",
    ),
    (
        "P2",
        "BRAVO: Biased Locking for Reader-Writer Locks (ATC 2019)",
    ),
    (
        "P3",
        "Parallelizing Shared File I/O Operations of NVM File System for Manycore Servers",
    ),
    ("P4", "Concurrent Range Locking (thesis, 2024)"),
    ("Micro", "Microbenchmarks: shapes that are commonly told"),
];

/// Locks that are drawn together: of each list the first has the first style, the second the second, and so on. So a
/// lock has one style in all figures, and no two of a figure have the same.
const STYLED: [&[&str]; 4] = [
    &[
        "list-rw",
        "list-ex",
        "kernel-rw",
        "lustre-ex",
        "pnova-rw",
        "srl-array",
        "skip-rw",
        "srl-tree",
        "skip-ex",
        "song",
    ],
    RW_LOCKS,
    HEIGHTS,
    &["add", "compare-exchange", "ttas", "mcs", "rw-counter"],
];

/// The number of the style that a lock is drawn in, wherever it is; `None` of one that no figure has.
#[must_use]
pub fn style(lock: &str) -> Option<usize> {
    let mut lists = STYLED.iter();
    lists.find_map(|list| list.iter().position(|one| *one == lock))
}

const HEIGHTS: &[&str] = &[
    "skip-ex:h=1",
    "skip-ex:h=2",
    "skip-ex:h=3",
    "skip-ex:h=5",
    "skip-ex:h=6",
    "skip-ex:h=8",
];
const ARR_LOCKS: &[&str] = &[
    "list-rw",
    "list-ex",
    "kernel-rw",
    "lustre-ex",
    "pnova-rw",
    "srl-array",
    "skip-rw",
];
const RW_LOCKS: &[&str] = &[
    "pf-q",
    "bravo-pf-q",
    "bravo-pf-q-paper",
    "futex",
    "bravo-futex",
    "c-rw-wp",
    "per-cpu",
    "pthread",
];
const SEGMENT_LOCKS: &[&str] = &["srl-array", "srl-tree", "kernel-rw", "pnova-rw", "list-rw"];
const SKIP_LOCKS: &[&str] = &["skip-ex", "list-ex", "song", "list-rw", "srl-array"];

/// What P1's, P2's and P4's figures have in common.
const THROUGHPUT: Figure = Figure {
    source: "",
    title: "",
    places: &[],
    axis: Axis::Threads,
    locks: &[],
};

/// All of them, paper by paper.
pub static FIGURES: &[Figure] = &[
    Figure {
        source: "P1 §7.1, Fig. 3 (a, b)",
        title: "ArrBench, all lock the full range",
        places: &[Place::Arr(Variant::Full, (0, 100))],
        locks: ARR_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P1 §7.1, Fig. 3 (c, d)",
        title: "ArrBench, each locks its own part",
        places: &[Place::Arr(Variant::Disjoint, (0, 100))],
        locks: ARR_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P1 §7.1, Fig. 3 (e, f)",
        title: "ArrBench, random ranges",
        places: &[Place::Arr(Variant::Random, (0, 100))],
        locks: ARR_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P1 §7.1, Fig. 4",
        title: "A skip list that locks ranges",
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.1, Fig. 1",
        title: "Interference: readers of random locks of a pool",
        places: &[Place::Interference],
        axis: Axis::Pool,
        locks: RW_LOCKS,
    },
    Figure {
        source: "P2 §5.2, Fig. 2",
        title: "Alternator: readers one after the other, in a ring",
        places: &[Place::Alternator],
        locks: RW_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.3, Fig. 3",
        title: "test_rwlock: readers and one writer",
        places: &[Place::TestRwlock],
        locks: RW_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.4, Fig. 4 (a-c)",
        title: "RWBench, many writes",
        places: &[Place::Rwbench((0.1, 1.0))],
        locks: RW_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.4, Fig. 4 (d-f)",
        title: "RWBench, few writes",
        places: &[Place::Rwbench((0.0, 0.099))],
        locks: RW_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.5, Fig. 5",
        title: "RocksDB, readwhilewriting",
        ..THROUGHPUT
    },
    Figure {
        source: "P2 §5.6, Fig. 6",
        title: "hash_table: lookups, an inserter and an eraser",
        places: &[Place::HashTable],
        locks: RW_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P3 §VI-B1, Fig. 10",
        title: "The longest acquisition of a part",
        places: &[Place::Longest(&[Phase::First, Phase::Again])],
        locks: SEGMENT_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P3 §VI-B2, Fig. 11",
        title: "Memory of segment locks",
        ..THROUGHPUT
    },
    Figure {
        source: "P3 §VI-B3, Fig. 12 (a)",
        title: "Writers of their own parts, as W1 has them",
        places: &[Place::W1],
        locks: SEGMENT_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P3 §VI-B3, Fig. 12 (b)",
        title: "Readers of their own parts, as ArrBench has them",
        places: &[Place::Arr(Variant::Disjoint, (100, 100))],
        locks: SEGMENT_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P4 §4.3.2, Fig. 4.1",
        title: "Heights of the skip list",
        places: &[Place::W1, Place::W2],
        locks: HEIGHTS,
        ..THROUGHPUT
    },
    Figure {
        source: "P4 §4.3.3, Fig. 4.2",
        title: "W1: one range at a time",
        places: &[Place::W1],
        locks: SKIP_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "P4 §4.3.3, Fig. 4.3",
        title: "W2: batches of ranges",
        places: &[Place::W2],
        locks: SKIP_LOCKS,
        ..THROUGHPUT
    },
    Figure {
        source: "Micro, contended words",
        title: "Additions and compare-exchanges",
        places: &[Place::Micro],
        locks: &["add", "compare-exchange"],
        ..THROUGHPUT
    },
    Figure {
        source: "Micro, simple locks",
        title: "The simplest locks",
        places: &[Place::Micro],
        locks: &["ttas", "mcs", "rw-counter"],
        ..THROUGHPUT
    },
];

impl Figure {
    /// The paper, as it is called here.
    #[must_use]
    pub fn paper(&self) -> &'static str {
        self.source.split([' ', ',']).next().unwrap_or(self.source)
    }

    /// What links to it.
    #[must_use]
    pub fn anchor(&self) -> String {
        let word = |letter: char| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
            _ => '-',
        };
        let name: String = self.source.replace('§', "").chars().map(word).collect();
        let words: Vec<_> = name.split('-').filter(|word| !word.is_empty()).collect();
        words.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart::STYLES;
    use super::{FIGURES, style};

    #[test]
    fn the_locks_of_a_figure_have_a_style_each() {
        for figure in FIGURES {
            let mut styles: Vec<_> = figure
                .locks
                .iter()
                .map(|lock| style(lock).unwrap_or_else(|| panic!("{lock} has no style")))
                .collect();
            styles.sort_unstable();
            styles.dedup();
            assert_eq!(styles.len(), figure.locks.len(), "{}", figure.source);
            assert!(styles.iter().all(|style| *style < STYLES), "{styles:?}");
        }
        assert_eq!(style("list-rw"), Some(0));
        assert_eq!(style("nobody's"), None);
    }
}
