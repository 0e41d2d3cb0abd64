//! An asymmetric store-load fence, as Linux's `membarrier` makes one of a compiler fence and an interrupt.

use crate::world;

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half: nothing. Later loads may overtake the stores before.
pub fn light() {}

/// The dear half: waits until all stores that any thread has issued are visible, and costs every thread that runs an
/// interrupt.
#[track_caller]
pub fn heavy() {
    world::fence_everybody();
}
