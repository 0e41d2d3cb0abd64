//! An asymmetric store-load fence: as Linux's `membarrier` makes one of a compiler fence and an interrupt, or two full
//! fences ([`Asymmetry`]).

use crate::Asymmetry;
use crate::world;

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half. With interrupts nothing at all: later loads may overtake the stores before.
#[track_caller]
pub fn light() {
    if has_fences() {
        world::fence();
    }
}

/// The dear half: with interrupts it waits until all stores that any thread has issued are visible, and costs every
/// thread that runs an interrupt.
#[track_caller]
pub fn heavy() {
    if has_fences() {
        world::fence();
    } else {
        world::fence_everybody();
    }
}

fn has_fences() -> bool {
    let asymmetry = world::peek(|world| world.setup.asymmetry);
    asymmetry == Some(Asymmetry::Fences)
}
