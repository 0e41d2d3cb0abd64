//! The asymmetric barrier. It behaves as Linux's `membarrier`, which makes one side free and interrupts all threads on
//! the other side; or both sides are full fences ([`Asymmetry`]).

use crate::Asymmetry;
use crate::world;

/// Does nothing: the simulated machine needs no preparation.
pub fn prepare() {}

/// The light side. With interrupts it does nothing: later loads may overtake earlier stores.
#[track_caller]
pub fn light() {
    if has_fences() {
        world::fence();
    }
}

/// The heavy side. With interrupts it waits until all stores that any thread has issued are visible. It charges each
/// running thread for an interrupt.
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
