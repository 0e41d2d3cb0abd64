//! The sequential model of the address space's own tests, on the simulated machine's types.

use spanlock_structures_sim::vm;

#[path = "../../../../structures/tests/vm_sequential/block.rs"]
pub(super) mod block;
#[path = "../../../../structures/tests/vm_sequential/calls.rs"]
mod calls;
#[path = "../../../../structures/tests/vm_sequential/model.rs"]
pub(super) mod model;
#[path = "../../../../structures/tests/vm_sequential/step.rs"]
pub(super) mod step;
