//! An asymmetric store-load fence: here both halves are the full fence. [`light`](mod@light) is modelled by itself.

#[path = "../../prim/src/barrier/light.rs"]
pub mod light;

use crate::atomic::{Ordering, fence};

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half.
pub fn light() {
    fence(Ordering::SeqCst);
}

/// The dear half.
pub fn heavy() {
    fence(Ordering::SeqCst);
}
