//! An asymmetric store-load fence, as Linux's `membarrier` makes one of a compiler fence and an interrupt.

use crate::world;

/// How far a [`heavy`] fence went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every thread is on one side of it or the other.
    All,
    /// Never here.
    Caller,
}

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half: nothing. Later loads may overtake the stores before.
pub fn light() {}

/// The dear half: waits until all stores that any thread has issued are visible, and costs every thread that runs an
/// interrupt.
#[must_use]
#[track_caller]
pub fn heavy() -> Reach {
    world::fence_everybody();
    Reach::All
}
