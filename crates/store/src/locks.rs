//! The locks of files. Each is a function for [`Options::with_lock`](crate::Options::with_lock).
//!
//! | function | the lock |
//! |---|---|
//! | [`list_rw`] | the default: exact ranges, fair, no memory while nothing is held |
//! | [`srl_array`], [`srl_tree`] | P3's segment locks, mended: a word for each page. Truncations and appends lock every word |
//! | [`inode`] | NOVA's: one reader-writer lock for the whole file, so writers of one file take turns |
//!
//! Any other [`RawRangeLock`] does as well, such as the interval tree of the package `spanlock-baseline`.

use crate::format::PAGE_BYTES;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use spanlock::range::Span;
use spanlock::range::list::ListRw;
use spanlock::range::raw::{RawRangeLock, RawRangeMutex, Wait};
use spanlock::range::segment::{SrlArray, SrlTree};
use spanlock::rw::FutexRwLock;
use std::fmt;

/// Pages that have a word of their own, in the segment locks: those of the first gigabyte. The others share the last.
const SEGMENTS: u64 = 1 << 18;

/// Exact ranges in a list.
#[must_use]
pub fn list_rw() -> ListRw {
    ListRw::new()
}

/// A word for each page, in an array: a mebibyte for each file.
#[must_use]
pub fn srl_array() -> SrlArray {
    let array = SrlArray::builder().segment(PAGE_BYTES);
    array.length(SEGMENTS * PAGE_BYTES).build()
}

/// A word for each page, in a tree that grows where pages are used.
#[must_use]
pub fn srl_tree() -> SrlTree {
    let tree = SrlTree::builder().segment(PAGE_BYTES).fan_out(64);
    tree.depth(SEGMENTS.ilog(64)).build()
}

/// One lock for the whole file.
#[must_use]
pub fn inode() -> InodeLock {
    InodeLock(FutexRwLock::new())
}

/// A reader-writer lock for a whole file, as a range lock: it grants everything with each range.
pub struct InodeLock(FutexRwLock);

impl fmt::Debug for InodeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InodeLock")
    }
}

/// How the file is held.
pub enum Token {
    /// With others.
    Shared(<FutexRwLock as RawRwLock>::SharedGuard),
    /// Alone.
    Exclusive(<FutexRwLock as RawRwLock>::ExclusiveGuard),
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

// SAFETY: a writer holds the reader-writer lock alone, whatever its range, and a release orders as that lock's does.
unsafe impl RawRangeMutex for InodeLock {
    type Token = Token;

    #[track_caller]
    fn lock_exclusive(&self, _span: Span, wait: Wait) -> Option<Token> {
        let guard = match wait {
            Wait::Never => self.0.try_lock_exclusive(),
            Wait::Until(deadline) => self.0.try_lock_exclusive_until(deadline),
            Wait::Forever => Some(self.0.lock_exclusive()),
        };
        guard.map(Token::Exclusive)
    }

    unsafe fn unlock(&self, token: Token) {
        match token {
            // SAFETY: the token came from this lock, on this thread, by the caller's contract.
            Token::Shared(guard) => unsafe { self.0.unlock_shared(guard) },
            // SAFETY: as above.
            Token::Exclusive(guard) => unsafe { self.0.unlock_exclusive(guard) },
        }
    }

    fn granule(&self, _span: Span) -> Span {
        Span::ALL
    }
}

// SAFETY: readers hold the reader-writer lock shared, so not beside a writer.
unsafe impl RawRangeLock for InodeLock {
    #[track_caller]
    fn lock_shared(&self, _span: Span, wait: Wait) -> Option<Token> {
        let guard = match wait {
            Wait::Never => self.0.try_lock_shared(),
            Wait::Until(deadline) => self.0.try_lock_shared_until(deadline),
            Wait::Forever => Some(self.0.lock_shared()),
        };
        guard.map(Token::Shared)
    }

    unsafe fn downgrade(&self, token: Token) -> Token {
        match token {
            // SAFETY: the token came from this lock's `lock_exclusive`, on this thread, by the caller's contract.
            Token::Exclusive(guard) => Token::Shared(unsafe { self.0.downgrade(guard) }),
            Token::Shared(guard) => Token::Shared(guard),
        }
    }
}
