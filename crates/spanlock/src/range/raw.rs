//! The traits that every range lock implements: raw acquisitions return a token, and releases consume it.

use super::inspect::Snapshot;
use super::owner::{Owner, Refusal};
use super::sought::Sought;
use super::span::Span;
use super::wait::TaskProgress;
use std::panic::Location;
use std::task::{Poll, Waker};

pub use super::mode::Mode;
pub use crate::wait::Wait;

/// What is asked of a raw lock, whose tokens are `T`: a range, in the mode that the method's name says.
#[derive(Debug)]
pub struct Ask<'a, T> {
    /// The range.
    pub span: Span,
    /// How long the request may take.
    pub wait: Wait,
    behind: Option<Behind<'a, T>>,
}

impl<'a, T> Ask<'a, T> {
    /// Asks for `span`.
    #[inline]
    #[must_use]
    pub const fn new(span: Span, wait: Wait) -> Self {
        Self {
            span,
            wait,
            behind: None,
        }
    }

    /// Asks for `span`, for a thread that holds ranges before it. A lock that keeps its ranges in order may begin its
    /// search behind those, so that many ranges cost no more than as many single ranges.
    ///
    /// # Safety
    /// Only the lock and the mode of `behind` are asked. Its range ends before `span` starts, and this thread holds it
    /// meanwhile.
    #[inline]
    #[must_use]
    pub const unsafe fn after(behind: Behind<'a, T>, span: Span, wait: Wait) -> Self {
        Self {
            span,
            wait,
            behind: Some(behind),
        }
    }

    /// What this thread holds before the range. It holds that in the lock and in the mode that are asked.
    #[inline]
    #[must_use]
    pub const fn behind(&self) -> Option<Behind<'a, T>> {
        self.behind
    }
}

impl<T> Clone for Ask<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ask<'_, T> {}

/// What a thread already holds before the range that it asks for: a place where the search may begin.
#[derive(Debug)]
pub struct Behind<'a, T> {
    /// The token of the last range held before the range asked for.
    pub token: &'a T,
    /// How many ranges are held before it, at least.
    pub ranges: usize,
}

impl<T> Clone for Behind<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Behind<'_, T> {}

/// A range lock that grants exclusive ranges.
///
/// # Safety
/// An implementation grants no two overlapping ranges at the same time. A later holder of an overlapping range sees all
/// that an earlier holder did. Both remain true when locks are dropped, guards leaked and threads gone.
pub unsafe trait RawRangeMutex {
    /// Proof of one acquisition, needed to release it.
    type Token;

    /// Acquires the range exclusively; `None` if that takes longer than it may.
    ///
    /// With [`Wait::Forever`] the result is never `None`.
    #[track_caller]
    fn lock_exclusive(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token>;

    /// Releases what `token` acquired.
    ///
    /// # Safety
    /// `token` came from this lock, on this thread: a lock counts what each thread holds.
    unsafe fn unlock(&self, token: Self::Token);

    /// `span` rounded to the lock's granularity: all positions that a lock of coarse granularity grants with it. A
    /// thread that asks for two ranges with a granule in common asks for that granule twice.
    fn granule(&self, span: Span) -> Span {
        span
    }

    /// Whether somebody holds some of the range in the way of a request in that mode, as far as a look can tell that
    /// leaves nothing in anybody's way. A call that tries several ranges asks for each before it acquires the first.
    fn is_taken(&self, _span: Span, _mode: Mode) -> bool {
        false
    }

    /// The range that was asked for, or what is held of it in whole granules. `None` if the lock does not keep it.
    ///
    /// # Safety
    /// `token` came from this lock, and what it acquired is still held. The caller may be any thread, and several may
    /// call this at a time: an implementation only reads the token.
    unsafe fn span_of(&self, _token: &Self::Token) -> Option<Span> {
        None
    }

    /// The holders and the waiting requests, for people who debug a hang. `None` if the lock cannot list them.
    fn snapshot(&self) -> Option<Snapshot> {
        None
    }
}

/// A range lock that also grants shared ranges, which may overlap each other.
///
/// # Safety
/// As for [`RawRangeMutex`], and no shared range overlaps an exclusive one.
pub unsafe trait RawRangeLock: RawRangeMutex {
    /// Acquires the range shared; `None` if that takes longer than it may.
    ///
    /// With [`Wait::Forever`] the result is never `None`.
    #[track_caller]
    fn lock_shared(&self, ask: Ask<'_, Self::Token>) -> Option<Self::Token>;

    /// Turns an exclusive acquisition into a shared one. No other request holds any of it exclusively in between.
    ///
    /// # Safety
    /// `token` came from this lock's [`lock_exclusive`](RawRangeMutex::lock_exclusive), on this thread.
    unsafe fn downgrade(&self, token: Self::Token) -> Self::Token;
}

/// What an owner asks of a raw lock, whose tokens are `T`.
#[derive(Debug)]
pub struct AskBy<'a, T> {
    /// Who asks.
    pub owner: &'a Owner,
    /// The range.
    pub span: Span,
    /// How it is to be held.
    pub mode: Mode,
    /// How long the request may take.
    pub wait: Wait,
    replaced: Replaced<'a, T>,
}

/// What the owner holds of the range already, and is about to release.
#[derive(Debug)]
pub enum Replaced<'a, T> {
    /// It holds none of it.
    Nothing,
    /// All of it, shared, and it asks to have it alone. All that it shares in the lock, and keeps while it waits, is
    /// within the span.
    Shared(&'a T, Span),
    /// More than it, in the same mode or exclusively: it keeps a piece. Nobody else can hold the piece in the way of
    /// this, so the request is always granted, once those who try have withdrawn.
    Larger(&'a T),
}

impl<T> Clone for AskBy<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for AskBy<'_, T> {}

impl<T> Clone for Replaced<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Replaced<'_, T> {}

impl<'a, T> AskBy<'a, T> {
    /// Asks for a range of which the owner holds nothing.
    #[must_use]
    pub const fn new(owner: &'a Owner, span: Span, mode: Mode, wait: Wait) -> Self {
        Self {
            owner,
            span,
            mode,
            wait,
            replaced: Replaced::Nothing,
        }
    }

    /// Asks for a range alone that is within what the owner shares by that token. All that it shares is within
    /// `shares`: of two that want what the other may share, one is refused.
    ///
    /// # Safety
    /// The lock that is asked granted the token to this owner, which holds it meanwhile and shares it. It releases the
    /// token or what this request is granted before it asks for more within the token's range, but for pieces.
    #[must_use]
    pub const unsafe fn alone(
        owner: &'a Owner,
        token: &'a T,
        shares: Span,
        span: Span,
        wait: Wait,
    ) -> Self {
        Self {
            owner,
            span,
            mode: Mode::Exclusive,
            wait,
            replaced: Replaced::Shared(token, shares),
        }
    }

    /// Asks for a piece of what the owner holds by that token. Such a request is always granted.
    ///
    /// # Safety
    /// The lock that is asked granted the token to this owner, which holds it meanwhile: exclusively, or in the mode
    /// that is asked for. The owner asks for all pieces that it means to keep, for the last one first, and then
    /// releases the token. From the first piece on, it uses of the token's range only what the pieces cover.
    #[must_use]
    pub const unsafe fn piece(owner: &'a Owner, token: &'a T, span: Span, mode: Mode) -> Self {
        Self {
            owner,
            span,
            mode,
            wait: Wait::Forever,
            replaced: Replaced::Larger(token),
        }
    }

    /// What the owner holds of the range already.
    #[must_use]
    pub const fn replaced(&self) -> &Replaced<'a, T> {
        &self.replaced
    }

    /// What the owner shares, if it asks for some of that alone.
    pub(super) fn shares(&self) -> Option<Span> {
        match self.replaced {
            Replaced::Shared(_, shares) => Some(shares),
            Replaced::Nothing | Replaced::Larger(_) => None,
        }
    }

    /// The request, where these name its range, and what the owner shares.
    pub(super) fn naming(mut self, sought: &Sought, shared: Option<&Sought>) -> Self {
        self.span = sought.span();
        if let (Replaced::Shared(_, shares), Some(shared)) = (&mut self.replaced, shared) {
            *shares = shared.span();
        }
        self
    }
}

/// What is kept of a task's request from one poll to the next. Plain data, which may go to any thread.
#[derive(Debug)]
pub struct Asked {
    /// Where the program asks.
    pub(super) at: &'static Location<'static>,
    pub(super) kept: TaskProgress,
}

impl Asked {
    /// A request that was not polled yet, made by the caller.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        Self::at(Location::caller())
    }

    /// A request that was not polled yet, made there.
    #[inline]
    pub(super) fn at(at: &'static Location<'static>) -> Self {
        let kept = TaskProgress::default();
        Self { at, kept }
    }
}

impl Default for Asked {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

/// A range lock whose ranges may be held by an [`Owner`], and so be released and cut by any thread.
///
/// # Safety
/// As for [`RawRangeMutex`]. What a request replaces is not in its way, and everything else is. Tokens may go to any
/// thread.
pub unsafe trait RawOwnedMutex: RawRangeMutex {
    /// Acquires a range for an owner. A lock that grants no shared ranges grants it alone, whatever the mode.
    ///
    /// # Errors
    /// [`Refusal`], but for a piece.
    #[track_caller]
    fn lock_by(&self, ask: AskBy<'_, Self::Token>) -> Result<Self::Token, Refusal>;

    /// Goes on with a request of a task, which its executor polls with that waker. `asked` is what is kept of the
    /// request from poll to poll: the same for all polls, and new for the first one. Unless the request is over, the
    /// task ends by [`forget_by`](Self::forget_by).
    ///
    /// # Errors
    /// As [`lock_by`](Self::lock_by).
    fn poll_by(
        &self,
        ask: AskBy<'_, Self::Token>,
        asked: &mut Asked,
        waker: &Waker,
    ) -> Poll<Result<Self::Token, Refusal>>;

    /// Gives up a request that was polled, if it is not over.
    fn forget_by(&self, owner: &Owner, mode: Mode, asked: &mut Asked);

    /// Releases what the owner acquired, on whatever thread.
    ///
    /// # Safety
    /// `token` came from [`lock_by`](Self::lock_by) of this lock.
    unsafe fn unlock_by(&self, token: Self::Token);
}

/// A lock that grants owners shared ranges, too: any thread may convert what an owner holds.
///
/// # Safety
/// As for [`RawOwnedMutex`] and [`RawRangeLock`].
pub unsafe trait RawOwned: RawOwnedMutex + RawRangeLock {
    /// Turns an exclusive acquisition of an owner into a shared one, on whatever thread.
    ///
    /// # Safety
    /// `token` came from [`lock_by`](RawOwnedMutex::lock_by) of this lock, and is exclusive.
    unsafe fn share_by(&self, token: &Self::Token);
}

/// The methods of the raw traits, of a lock with the methods `acquire`, `release` and `make_shared`.
macro_rules! by_mode {
    (exclusive: $Token:ty) => {
        type Token = $Token;

        #[inline]
        fn lock_exclusive(&self, ask: Ask<'_, $Token>) -> Option<$Token> {
            self.acquire(Mode::Exclusive, ask)
        }

        #[inline]
        unsafe fn unlock(&self, token: $Token) {
            // SAFETY: this lock granted the token, as the caller promises.
            unsafe { self.release(token) };
        }
    };
    (shared: $Token:ty) => {
        #[inline]
        fn lock_shared(&self, ask: Ask<'_, $Token>) -> Option<$Token> {
            self.acquire(Mode::Shared, ask)
        }

        unsafe fn downgrade(&self, token: $Token) -> $Token {
            // SAFETY: this lock granted the token, as the caller promises.
            unsafe { self.make_shared(&token) };
            token
        }
    };
}
pub(super) use by_mode;
