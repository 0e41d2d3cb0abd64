//! A marker that a model checker counts, to find allocations that were never freed.

/// Lives inside an allocation that must not be leaked. Of no size and no effect here.
#[derive(Debug, Default)]
pub struct Track;

impl Track {
    /// A new marker.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}
