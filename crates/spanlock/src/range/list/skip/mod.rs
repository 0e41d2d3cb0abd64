//! The skip-list locks: list locks with an index, for many ranges held at the same time.
//!
//! A list lock walks past every range that is held and starts before the range asked for. A skip-list lock has sparser
//! lists above that list, each with about a quarter of the nodes of the list below. A request goes along these to a
//! node near its place, its *start hint*, and walks from there. Everything else is shared with the [list locks](super):
//! the list alone decides which request is granted, so the guarantees, the fairness and the fast path are the same.
//!
//! The exclusive form follows the thesis *Concurrent Range Locking* (P4 in this documentation, §3). The paper on list
//! locks names a reader-writer form as future work (P1 §8).
//!
//! `docs/skip-list-locks.md` explains what the index adds to the protocol, with the arguments.
//!
//! | file | content |
//! |---|---|
//! | `index.rs` | what a list asks of its index; no index |
//! | `levels.rs` | the levels: search, entry, removal |
//! | `tower.rs` | nodes with a link for each level |
//!
//! ```
//! use spanlock::range::RangeLock;
//! use spanlock::range::skip::SkipRw;
//!
//! let lock = RangeLock::from_raw(SkipRw::builder().height(4).build());
//! let records: Vec<_> = (0..1000).map(|at| lock.write(at * 10..at * 10 + 5)).collect();
//! assert!(lock.try_read(5000..5001).is_none());
//! assert!(lock.try_read(5005..5010).is_some());
//! # drop(records);
//! ```
//!
//! # When not to use it
//! - A dozen ranges are held at a time: the index is not worth its upkeep, and a
//!   [list lock](super) is as fast and smaller.
//! - Writers among readers of wide ranges: a writer begins its walk before its range by the length of the longest
//!   shared range *ever* asked for. After one shared request for everything, it walks past all ranges that start before
//!   its own, as in the list lock.
//!
//! # Cost
//! As the list locks, except for a logarithmic walk instead of a linear one. In addition, one node in four enters the
//! levels, if its walk took more than a few steps. In each of its levels that costs one compare-exchange to enter, one
//! atomic operation to leave, and a compare-exchange and a subtraction by the thread that removes it. One range in four
//! takes 192 bytes instead of 64, from a pool of 6 KiB a thread beside the list locks' pool. An idle lock takes 192
//! bytes.
//!
//! # Fairness, what blocks, errors and panics
//! As the list locks.

mod index;
pub(in crate::range) mod levels;
pub(in crate::range) mod tower;

pub(in crate::range) use index::StartHints;
pub use index::{Index, NoIndex};
pub use levels::SkipIndex;
pub(crate) use tower::TallNode;

use super::{ExclusiveOnly, RawList, SharedExclusive};

/// The exclusive skip-list lock, `skip-ex` (P4 §3.2, corrected).
pub type SkipEx = RawList<ExclusiveOnly, SkipIndex>;

/// The reader-writer skip-list lock, `skip-rw`.
pub type SkipRw = RawList<SharedExclusive, SkipIndex>;

#[cfg(test)]
mod tests {
    use super::SkipRw;

    #[test]
    #[should_panic(expected = "expected 1 to 15")]
    fn a_height_of_zero_is_refused() {
        let _ = SkipRw::builder().height(0);
    }
}
