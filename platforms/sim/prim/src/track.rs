//! A marker for allocations, by which the simulator learns that memory was freed.

/// A field inside an allocation. When it is dropped, the next object at this address gets a new cache line. So a run
/// does not depend on how the host reuses memory.
#[derive(Debug, Default)]
pub struct Track(#[expect(dead_code, reason = "only its address is used")] u8);

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
