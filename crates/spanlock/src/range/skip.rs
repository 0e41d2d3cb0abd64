//! The skip-list range locks: the list locks with an index, for many ranges held at a time.
//!
//! A list lock looks at every range that is held and starts before the one asked for. A skip-list lock has sparser lists
//! above, each of about a quarter of the nodes in the one below, and goes along these to a place near by (P4 §3; a
//! reader-writer form is named as future work in P1 §8). All else it shares with the [list locks](super::list): who is
//! granted what is decided in the list, so the guarantees, the fairness and the fast path are the same.
//!
//! `docs/skip-list-locks.md` tells what the index adds to the protocol, with the arguments; the code is `levels.rs`,
//! `tower.rs` and `index.rs` in `range/list/`.
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
//! - A dozen ranges are held at a time: the index is not worth its upkeep, and [`RangeLock`](super::RangeLock)'s default
//!   is as fast and smaller.
//! - Writers among readers of wide ranges: a writer begins to look as far before its range as the longest shared range
//!   *ever* asked for could reach, so after one of everything it looks at all ranges that start before its own, as in
//!   the list lock.
//!
//! # Cost
//! As the list locks', but for a logarithmic walk instead of a linear one; and for one node in four, if the walk was of
//! more than a few steps, in each level one compare-exchange to enter it, one atomic operation to leave it, and a
//! compare-exchange and a subtraction by whoever removes it. One range in four takes 192 bytes instead of 64, from a
//! pool of 6 KiB a thread beside the list locks'; an idle lock takes 192.
//!
//! # Fairness, what blocks, errors and panics
//! As the list locks.

use super::list::{ExclusiveOnly, Levels, RawList, SharedExclusive};

/// The exclusive skip-list lock, `skip-ex` (P4 §3.2, mended).
pub type SkipEx = RawList<ExclusiveOnly, Levels>;

/// The reader-writer skip-list lock, `skip-rw`.
pub type SkipRw = RawList<SharedExclusive, Levels>;

#[cfg(test)]
mod tests {
    use super::{SkipEx, SkipRw};

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn an_idle_lock_is_three_cache_lines() {
        assert_eq!(size_of::<SkipRw>(), 192);
        assert_eq!(size_of::<SkipEx>(), 192);
    }

    #[test]
    #[should_panic(expected = "expected 1 to 15")]
    fn a_height_of_zero_is_refused() {
        let _ = SkipRw::builder().height(0);
    }
}
