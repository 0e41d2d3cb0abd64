//! How long an acquisition takes: percentiles and the longest (P3 §VI-B1).

use crate::trial::setting::Resource;

/// Parts of the resource by default: each phase of a round lasts longer than a time slice, so that threads
/// meet though there be more of them than processors.
pub const PARTS: usize = 1 << 18;

/// The most parts.
pub const MAX_PARTS: usize = 1 << 20;

/// Acquisitions in a second lock before the first that counts, by default.
pub const WARMUP: usize = 1000;

/// The workload's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Parts of the resource: up to [`MAX_PARTS`].
    pub parts: usize,
    /// Acquisitions of each thread in a second lock before the first that counts; no more than there are parts.
    pub warmup: usize,
    /// Rounds, each on a fresh lock.
    pub rounds: u32,
}

/// One run, which ends by itself; or one of its rounds, of which `repeat` is the number.
pub type Trial = crate::trial::run::Trial<Load>;

impl Load {
    /// The resource: a part is one position, as if it were the number of a block of a file.
    #[must_use]
    pub const fn resource(self) -> Resource {
        Resource {
            units: self.parts as u64,
            grain: 1,
        }
    }
}
