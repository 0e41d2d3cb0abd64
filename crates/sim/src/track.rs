//! A marker that tells the simulator when memory is given back.

/// Lives inside an allocation. When it goes, whatever the host puts there next is on a line of its own: hosts re-use
/// memory as they please, and runs must not depend on that.
#[derive(Debug, Default)]
pub struct Track(#[expect(dead_code, reason = "what counts is where it is")] u8);

impl Track {
    /// A new marker.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        crate::world::forget_lines(std::ptr::from_ref(self).addr(), 1);
    }
}
