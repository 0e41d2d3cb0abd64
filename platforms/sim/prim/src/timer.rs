//! Calls at points in time: a simulated machine has none, since no simulated workload has tasks.

/// A timer of the program, which is called on hardware only.
pub use hardware::timer::{AlreadyInstalled, Call, CallAt, install};

use crate::clock::Instant;
use std::sync::{Arc, Weak};

/// Something that is to happen at a point in time.
pub trait Due: Send + Sync {
    /// The time has come. `at` is the point in time that was asked for, or a later one.
    fn due(self: Arc<Self>, at: Instant);
}

/// There is no timer here, and no call.
pub fn at(_when: Instant, _whom: Weak<dyn Due>) -> bool {
    false
}
