//! The sequential model of the address space's own tests, on the simulated machine's types.

#[path = "../../../vm/tests/sequential/block.rs"]
pub(super) mod block;
#[path = "../../../vm/tests/sequential/calls.rs"]
mod calls;
#[path = "../../../vm/tests/sequential/model.rs"]
pub(super) mod model;
#[path = "../../../vm/tests/sequential/step.rs"]
pub(super) mod step;
