//! What every range lock implements: raw acquisitions that return a token, and releases that consume it.

use super::inspect::Snapshot;
use super::span::Span;
use prim::clock::{Duration, Instant};

/// How a range is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// With others who hold it shared.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Whether holders of overlapping ranges in these modes exclude each other.
    #[inline]
    #[must_use]
    pub fn conflicts(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

/// How long an acquisition may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Never,
    /// Until a point in time.
    Until(Instant),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// So long from now; forever, if that is later than time can tell.
    #[must_use]
    pub fn at_most(timeout: Duration) -> Self {
        Instant::now()
            .checked_add(timeout)
            .map_or(Self::Forever, Self::Until)
    }

    /// The point in time at which to give up, if there is one.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::Never | Self::Forever => None,
        }
    }
}

/// Where a request that is one of many may begin to look: what the same thread holds before it.
#[derive(Debug)]
pub struct Behind<'a, T> {
    /// The last of the ranges held before the one asked for.
    pub token: &'a T,
    /// How many they are, at least.
    pub ranges: usize,
}

impl<T> Clone for Behind<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Behind<'_, T> {}

/// A range lock that grants exclusive ranges.
///
/// # Safety
/// An implementation grants no two overlapping ranges at a time; what a holder did is visible to all later holders
/// of overlapping ranges; and both hold although locks are dropped, guards leaked and threads gone.
pub unsafe trait RawRangeMutex {
    /// Proof of one acquisition, needed to release it.
    type Token;

    /// Acquires `span` exclusively; `None` if that takes longer than `wait` allows.
    ///
    /// With [`Wait::Forever`] the result is never `None`.
    #[track_caller]
    fn lock_exclusive(&self, span: Span, wait: Wait) -> Option<Self::Token>;

    /// As [`lock_exclusive`](Self::lock_exclusive), for a thread that holds ranges before `span`. A lock that keeps its
    /// ranges in order may begin to look behind those, so that many ranges cost no more than as many single ones.
    ///
    /// # Safety
    /// `behind` tells of a range that ends before `span` starts, and that this thread holds in this lock, exclusively.
    #[track_caller]
    unsafe fn lock_exclusive_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, Self::Token>,
    ) -> Option<Self::Token> {
        let _ = behind;
        self.lock_exclusive(span, wait)
    }

    /// Releases what `token` acquired.
    ///
    /// # Safety
    /// `token` came from this lock, on this thread: what a thread holds decides for whom it has to wait.
    unsafe fn unlock(&self, token: Self::Token);

    /// The positions that conflict as one with those of `span`, itself among them: what a lock of coarse granularity
    /// grants for it. A thread that asks for two ranges with a granule in common asks for it twice.
    fn granule(&self, span: Span) -> Span {
        span
    }

    /// Who holds and who waits, for people who look for a hang. `None` if the lock cannot tell.
    fn snapshot(&self) -> Option<Snapshot> {
        None
    }
}

/// A range lock that also grants shared ranges, which may overlap each other.
///
/// # Safety
/// As for [`RawRangeMutex`], and no shared range overlaps an exclusive one.
pub unsafe trait RawRangeLock: RawRangeMutex {
    /// Acquires `span` shared; `None` if that takes longer than `wait` allows.
    ///
    /// With [`Wait::Forever`] the result is never `None`.
    #[track_caller]
    fn lock_shared(&self, span: Span, wait: Wait) -> Option<Self::Token>;

    /// As [`lock_shared`](Self::lock_shared), for a thread that holds ranges before `span`: see
    /// [`lock_exclusive_behind`](RawRangeMutex::lock_exclusive_behind).
    ///
    /// # Safety
    /// `behind` tells of a range that ends before `span` starts, and that this thread holds in this lock, shared.
    #[track_caller]
    unsafe fn lock_shared_behind(
        &self,
        span: Span,
        wait: Wait,
        behind: Behind<'_, Self::Token>,
    ) -> Option<Self::Token> {
        let _ = behind;
        self.lock_shared(span, wait)
    }

    /// Turns an exclusive acquisition into a shared one; nobody else holds any of it exclusively in between.
    ///
    /// # Safety
    /// `token` came from this lock's [`lock_exclusive`](RawRangeMutex::lock_exclusive), on this thread.
    unsafe fn downgrade(&self, token: Self::Token) -> Self::Token;
}
