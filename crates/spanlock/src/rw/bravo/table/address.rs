//! The table's name for a lock: its address.

use std::num::NonZeroUsize;
use std::ptr;

/// The address of a lock. It distinguishes a lock from others as long as the lock does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockAddress(pub(super) NonZeroUsize);

impl LockAddress {
    /// The address of a lock, which must have a size.
    #[inline]
    #[must_use]
    pub fn of<L>(lock: &L) -> Self {
        const {
            assert!(
                size_of::<L>() > 0,
                "a lock without a size has no address of its own"
            )
        };
        Self(ptr::NonNull::from_ref(lock).addr())
    }
}
