//! A marker for allocations, which loom counts: an execution that ends with a marker alive has leaked.

/// A field of a type that must not be leaked.
#[derive(Debug)]
pub struct Track(#[expect(dead_code, reason = "its drop is what counts")] loom::alloc::Track<()>);

impl Track {
    /// A new marker.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self(loom::alloc::Track::new(()))
    }
}

impl Default for Track {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
