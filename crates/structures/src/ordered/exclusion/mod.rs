//! How updates of a map exclude each other.
//!
//! An update of a node changes the links that lead to it, one in a predecessor at each of its levels. A removal also
//! ends the node's own links. Two updates that change the same links must exclude each other:
//!
//! ```text
//!   level 2   head ---------------------------------------> 50
//!   level 1   head ---------> 20 -------------------------> 50
//!   level 0   head -> 10 ---> 20 ---> 30 -----------------> 50
//!                                          ^
//!   to insert 40 with two levels, change     20 at level 1, and 30 at level 0
//!     ByRange   one lock of positions        30 and 20
//!     ByNode    a lock in each predecessor   30 and 20
//!   to remove 30 with one level
//!     ByRange                                30 and 20
//!     ByNode                                 30, the node itself, and 20
//! ```
//!
//! # Edges: steps that must not be left out
//!
//! - **set-neighbourhood**: the exclusion includes the predecessors at all levels of the node, up to the *top*. Two
//!   updates that change a link of the same predecessor then have the predecessor in common.
//! - **set-several**: an update of several keys excludes others of all these keys before it looks at any of them.
//! - **set-range**: the exclusion of a range of keys begins with the predecessors of its first key.
//! - **set-victim**: the exclusion of a removal includes the node that is removed. An insertion behind that node has it
//!   as a predecessor.

mod by_node;
mod by_range;

pub use by_node::{ByNode, NodeLock};
pub use by_range::ByRange;
pub(crate) use by_range::{Pieces, add_each};

/// How updates of a map exclude each other: [`ByRange`] or [`ByNode`].
pub trait Exclusion: sealed::Exclusion {}

impl<X: sealed::Exclusion> Exclusion for X {}

pub(crate) mod sealed {
    /// The operations of the public trait.
    pub trait Exclusion {
        /// What each node has for it.
        type OfNode: Default + Send + Sync;

        /// Other updates of the same nodes are excluded until this is dropped.
        type Held<'a>
        where
            Self: 'a;

        /// Waits until all conflicting updates have ended, and excludes more of them.
        ///
        /// `changed` are the nodes whose links change: the position of each, 0 for the head, and what it has for this.
        /// The largest key comes first, and the same node may come several times in a row.
        fn exclude<'a>(
            &'a self,
            changed: impl Iterator<Item = (u64, &'a Self::OfNode)>,
        ) -> Self::Held<'a>;
    }
}
