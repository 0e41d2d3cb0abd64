//! What the table knows of a lock.

use std::num::NonZeroUsize;
use std::ptr;

/// What distinguishes a lock from others, as long as it stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockAddress(pub(super) NonZeroUsize);

impl LockAddress {
    /// Of a lock that has a size.
    #[inline]
    #[must_use]
    pub fn of<L>(lock: &L) -> Self {
        const {
            assert!(
                size_of::<L>() > 0,
                "what has no size has no address of its own"
            )
        };
        Self(ptr::NonNull::from_ref(lock).addr())
    }
}
