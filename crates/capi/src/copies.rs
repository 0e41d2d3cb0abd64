//! Which copy of the library a lock belongs to.
//!
//! A process may have several copies of the library: the shared one, and static ones inside plug-ins. Each has tables
//! of its own, in which its readers and its threads are. A lock that two copies used would exclude nobody. So the first
//! word of each lock names the copy that made it, or that used it first.

use crate::answer::{Answer, Refused};
use crate::memory::given;
use libc::{EINVAL, EXDEV};
use prim::atomic::{AtomicU64, Ordering};

/// What is in the upper bits of the name of a copy. No address has bits there.
const MARK: u64 = 0x5350 << 48;
const MARKED: u64 = 0xffff << 48;

/// The first word of a lock whose life has ended.
const ENDED: u64 = 0xdead << 48;

/// Its address tells this copy from others. The lowest bit is free, for [`KIND`].
static HERE: u16 = 0;

/// Where a reader-writer lock has its kind.
const KIND: u64 = 1;

/// The first word of a lock: which copy of the library it belongs to, and of which kind it is. So one comparison tells
/// that it is a lock of this copy's and of the kind zero.
#[repr(transparent)]
pub(crate) struct Copy(AtomicU64);

#[inline]
fn this() -> u64 {
    MARK | std::ptr::from_ref(&HERE).addr() as u64
}

impl Copy {
    /// This one, of a lock of a kind, zero or one.
    pub(crate) fn this(kind: u64) -> Self {
        Self(AtomicU64::new(this() | kind))
    }

    /// Whether the lock belongs to this copy, and is of kind zero. Relaxed: the word names one copy for the life of the
    /// lock.
    #[inline(always)]
    pub(crate) fn is_this(&self) -> bool {
        self.0.load(Ordering::Relaxed) == this()
    }

    /// `EXDEV` if the lock belongs to another copy, and `EINVAL` if its life has ended or it is none.
    #[inline]
    pub(crate) fn check(&self) -> Answer {
        if self.is_this() {
            Ok(())
        } else {
            self.refuse()
        }
    }

    #[cold] // Or it is of the other kind.
    fn refuse(&self) -> Answer {
        let name = self.0.load(Ordering::Relaxed) & !KIND;
        if name == this() {
            return Ok(());
        }
        let is_marked = name & MARKED == MARK;
        Err(Refused::by(if is_marked { EXDEV } else { EINVAL }))
    }

    /// As [`check`](Self::check), for a lock that may not have been used yet: then it belongs to this copy from now on,
    /// and is of that kind.
    #[cold]
    pub(crate) fn claim(&self, kind: u64) -> Answer {
        let name = this() | kind;
        let fresh = self
            .0
            .compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed);
        fresh.map(|_| ()).or_else(|_| self.check())
    }

    /// The lock's life ends.
    pub(crate) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }
}

/// What lives on the heap, and is known to a program by its address.
pub(crate) trait Handle: Sized {
    /// The first word.
    fn copy(&self) -> &Copy;

    /// What is at that address. `EINVAL` if nothing is, and `EXDEV` if it is another copy's.
    ///
    /// # Safety
    /// The pointer is null, or leads to one that lives for `'a`.
    #[inline]
    unsafe fn at<'a>(pointer: *const Self) -> Answer<&'a Self> {
        // SAFETY: the caller's promise.
        let handle = unsafe { given(pointer) }?;
        handle.copy().check()?;
        Ok(handle)
    }
}
