//! A range lock, as its functions use it: ranges and modes of C become the library's.

use crate::answer::{Answer, Refused};
use crate::copies::Copy;
use crate::memory::given;
use libc::{EBUSY, EINVAL, ETIMEDOUT};
use prim::atomic::AtomicBool;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::slots::{RawSlots, Token};
use spanlock::range::{RangeLock, Span};
use std::ptr;

/// A lock for ranges of one resource. It lives on the heap, and is known by its address.
#[repr(C)] // Another copy of the library, of another version, finds the first word.
pub struct Handle {
    pub(crate) copy: Copy,
    /// Whether a request was ever submitted.
    pub(crate) has_submitted: AtomicBool,
    pub(crate) lock: RangeLock,
}

impl Handle {
    pub(crate) fn new(lock: RangeLock) -> Self {
        Self {
            copy: Copy::this(0),
            has_submitted: AtomicBool::new(false),
            lock,
        }
    }

    /// The lock at that address. `EINVAL` if there is none, and `EXDEV` if it is another copy's.
    ///
    /// # Safety
    /// The pointer is null, or leads to a lock that lives for `'a`.
    #[inline]
    pub(crate) unsafe fn at<'a>(pointer: *const Self) -> Answer<&'a Self> {
        // SAFETY: the caller's promise.
        let handle = unsafe { given(pointer) }?;
        handle.copy.check()?;
        Ok(handle)
    }

    /// Acquires a range; `None` if that takes longer than it may.
    #[inline]
    pub(crate) fn acquire(&self, mode: Mode, span: Span, wait: Wait) -> Option<Token> {
        let raw: &RawSlots = self.lock.raw();
        match mode {
            Mode::Shared => raw.lock_shared(Ask::new(span, wait)),
            Mode::Exclusive => raw.lock_exclusive(Ask::new(span, wait)),
        }
    }

    /// Releases what a token acquired.
    ///
    /// # Safety
    /// [`acquire`](Self::acquire) of this lock returned the token, on this thread.
    #[inline]
    pub(crate) unsafe fn release(&self, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.raw().unlock(token) };
    }

    /// Makes an exclusive acquisition a shared one.
    ///
    /// # Safety
    /// [`acquire`](Self::acquire) of this lock returned the token, exclusively, on this thread.
    pub(crate) unsafe fn downgrade(&self, token: Token) -> Token {
        // SAFETY: the caller's promise.
        unsafe { self.lock.raw().downgrade(token) }
    }

    /// The lock, for those who keep what they acquire in places that know no lifetimes.
    ///
    /// # Safety
    /// What is acquired by the result is released, or forgotten, before the lock ends. (While it is held, a program
    /// cannot end the lock.)
    pub(crate) unsafe fn lasting(&self) -> &'static RangeLock {
        // SAFETY: the caller's promise.
        unsafe { &*ptr::from_ref(&self.lock) }
    }
}

/// The error of a request that was not granted.
#[inline]
pub(crate) fn given_up(wait: Wait) -> Refused {
    Refused::by(match wait {
        Wait::Never => EBUSY,
        Wait::Until(_) | Wait::Forever => ETIMEDOUT,
    })
}

/// The positions from `start` to `last`, both included, so that a range can reach to the last position of all. Made by
/// `spanlock_range_of`, whose end is not included, `spanlock_range_from` and `spanlock_range_all`.
///
/// A range whose `start` is one more than its `last` is empty: it is granted at once and conflicts with nothing. One
/// that starts later than that is reversed, and refused with EINVAL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first position.
    pub start: u64,
    /// The last position, which belongs to the range.
    pub last: u64,
}

impl Range {
    /// As the locks keep it; `None` if it is empty.
    #[inline]
    pub(crate) fn span(self) -> Answer<Option<Span>> {
        match Span::inclusive(self.start, self.last) {
            Some(span) => Ok(Some(span)),
            None if self.last + 1 == self.start => Ok(None),
            None => Err(Refused::by(EINVAL)),
        }
    }
}

/// Together with other holders that share.
pub const SPANLOCK_SHARED: u32 = 1;

/// Alone.
pub const SPANLOCK_EXCLUSIVE: u32 = 2;

/// The mode of that number.
pub(crate) fn mode(number: u32) -> Answer<Mode> {
    match number {
        SPANLOCK_SHARED => Ok(Mode::Shared),
        SPANLOCK_EXCLUSIVE => Ok(Mode::Exclusive),
        _ => Err(Refused::by(EINVAL)),
    }
}

/// The number of a mode.
pub(crate) fn mode_number(mode: Mode) -> u32 {
    match mode {
        Mode::Shared => SPANLOCK_SHARED,
        Mode::Exclusive => SPANLOCK_EXCLUSIVE,
    }
}
