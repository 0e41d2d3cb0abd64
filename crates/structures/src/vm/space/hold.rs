//! Holding a range of the space.

use super::AddressSpace;
use super::stat::Operation;
use crate::vm::plan::Range;
use spanlock::range::Span;
use spanlock::range::raw::{Ask, Mode, RawRangeLock, Wait};

/// A range that the running thread holds.
pub(super) struct Held<'a, L: RawRangeLock> {
    lock: &'a L,
    token: Option<L::Token>,
    pub(super) range: Range,
}

impl<L: RawRangeLock, B> AddressSpace<L, B> {
    /// Acquires a range for an operation.
    #[inline]
    pub(super) fn hold(&self, operation: Operation, mode: Mode, range: Range) -> Held<'_, L> {
        let acquire = |wait| match mode {
            Mode::Shared => self.lock.lock_shared(Ask::new(range.span(), wait)),
            Mode::Exclusive => self.lock.lock_exclusive(Ask::new(range.span(), wait)),
        };
        let token = match &self.stat {
            None => acquire(Wait::Forever),
            Some(stat) => stat.acquire(operation, mode, acquire),
        };
        let token = Some(token.expect("a request that waits forever is granted"));
        Held {
            lock: &self.lock,
            token,
            range,
        }
    }
}

impl Range {
    #[inline]
    fn span(self) -> Span {
        match self {
            Self::ALL => Span::ALL,
            Self { start, end } => Span::of(start..end).expect("operations have pages"),
        }
    }
}

impl<L: RawRangeLock> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token came from this lock. It stays on this thread: holds are no longer than a call.
            unsafe { self.lock.unlock(token) };
        }
    }
}
