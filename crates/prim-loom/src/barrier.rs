//! The asymmetric barrier. Here both sides are a full fence. A separate model covers [`light`](mod@light).

#[path = "../../prim/src/barrier/light.rs"]
pub mod light;

use crate::atomic::{Ordering, fence};

/// Does nothing: a model needs no preparation.
pub fn prepare() {}

/// The light side.
pub fn light() {
    fence(Ordering::SeqCst);
}

/// The heavy side.
pub fn heavy() {
    fence(Ordering::SeqCst);
}
