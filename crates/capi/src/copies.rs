//! Which copy of the library a lock belongs to.
//!
//! A process may have several copies of the library: the shared one, and static ones inside plug-ins. Each has tables
//! of its own, in which its readers and its threads are. A lock that two copies used would exclude nobody. So the first
//! word of each lock names the copy that made it, or that used it first.

use crate::answer::{Answer, Refused};
use libc::{EINVAL, EXDEV};
use prim::atomic::{AtomicU64, Ordering};

/// What is in the upper bits of the name of a copy. No address has bits there.
const MARK: u64 = 0x5350 << 48;
const MARKED: u64 = 0xffff << 48;

/// The first word of a lock whose life has ended.
const ENDED: u64 = 0xdead << 48;

/// Its address tells this copy from others.
static HERE: u8 = 0;

/// The first word of a lock: which copy of the library it belongs to.
#[repr(transparent)]
pub(crate) struct Copy(AtomicU64);

#[inline]
fn this() -> u64 {
    MARK | std::ptr::from_ref(&HERE).addr() as u64
}

impl Copy {
    /// This one.
    pub(crate) fn this() -> Self {
        Self(AtomicU64::new(this()))
    }

    /// Whether the lock belongs to this copy. Relaxed: the word names one copy for the life of the lock.
    #[inline(always)]
    pub(crate) fn is_this(&self) -> bool {
        self.0.load(Ordering::Relaxed) == this()
    }

    /// Nothing, if the lock belongs to this copy; else `EXDEV` if it belongs to another one, and `EINVAL` if its life
    /// has ended or it is none.
    #[inline]
    pub(crate) fn check(&self) -> Answer {
        if self.is_this() {
            Ok(())
        } else {
            self.refuse()
        }
    }

    #[cold]
    fn refuse(&self) -> Answer {
        let is_marked = self.0.load(Ordering::Relaxed) & MARKED == MARK;
        Err(Refused(if is_marked { EXDEV } else { EINVAL }))
    }

    /// As [`check`](Self::check), for a lock that may not have been used yet: then it belongs to this copy from now on.
    #[cold]
    pub(crate) fn claim(&self) -> Answer {
        match self
            .0
            .compare_exchange(0, this(), Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => Ok(()),
            Err(_) => self.check(),
        }
    }

    /// The lock's life ends.
    pub(crate) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }
}
