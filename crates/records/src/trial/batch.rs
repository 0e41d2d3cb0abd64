//! W1 and W2 (P4 §4.3.1): threads write ranges of shared memory, one at a time or in batches held together.

use crate::trial::setting::Resource;
use serde::{Deserialize, Serialize};

/// Bytes in a range (P4 §4.3.1: "for each ranges we will write 1KB").
pub const RANGE_BYTES: usize = 1024;

/// Ranges in the area: 4 MiB, so that threads that hold 16 each seldom meet.
pub const RANGES: usize = 4096;

/// The largest area.
pub const MAX_RANGES: usize = 1 << 20;

/// The largest batch.
pub const MAX_HOLD: usize = 1024;

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Ranges held together: from 1 to [`MAX_HOLD`] and to `ranges`.
    pub hold: usize,
    /// Ranges in the area: up to [`MAX_RANGES`].
    pub ranges: usize,
}

/// One run.
pub type Trial = crate::trial::run::Trial<Load>;

impl Load {
    /// The area, in bytes.
    #[must_use]
    pub const fn resource(self) -> Resource {
        Resource {
            units: (self.ranges * RANGE_BYTES) as u64,
            grain: RANGE_BYTES as u64,
        }
    }
}
