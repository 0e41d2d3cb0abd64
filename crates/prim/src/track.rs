//! A marker for allocations: a model checker counts the markers, to find allocations that were never freed.

/// A field of a type that must not be leaked. It has no size and no effect here.
#[derive(Debug, Default)]
pub struct Track;

impl Track {
    /// A new marker.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}
