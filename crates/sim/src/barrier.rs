//! An asymmetric store-load fence: here both halves are the full fence, so the cheap half is dearer than on hardware.

use crate::atomic::{Ordering, fence};

/// How far a [`heavy`] fence went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every thread is on one side of it or the other.
    All,
    /// Never here.
    Caller,
}

/// There is nothing to prepare.
pub fn prepare() {}

/// The cheap half.
#[track_caller]
pub fn light() {
    fence(Ordering::SeqCst);
}

/// The dear half.
#[must_use]
#[track_caller]
pub fn heavy() -> Reach {
    fence(Ordering::SeqCst);
    Reach::All
}
