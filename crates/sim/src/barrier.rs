//! An asymmetric store-load fence: here both halves are the full fence, so the cheap half is dearer than on hardware.

use crate::atomic::{Ordering, fence};

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half.
#[track_caller]
pub fn light() {
    fence(Ordering::SeqCst);
}

/// The dear half.
#[track_caller]
pub fn heavy() {
    fence(Ordering::SeqCst);
}
