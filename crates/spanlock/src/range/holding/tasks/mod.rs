//! Requests of tasks: futures that are ready when a range is held.
//!
//! A future for one range is plain data: what is asked for, and the request's place in the lock's queue. It may be
//! polled by any thread, moved, dropped and leaked at any time. The queue does not know its address, so it need not be
//! pinned.
//!
//! | file | content |
//! |---|---|
//! | `by.rs` | what an owner asks for: one range or several |
//! | `convert.rs` | conversions |

mod by;
mod convert;

pub(super) use by::{All, Wanted, acquire_all};

use super::located::Leads;
use super::{Holding, Piece, Pieces, Place, TokenAt, of_anonymous};
use crate::range::order::Ranges;
use crate::range::owner::{Owner, Refusal};
use crate::range::raw::{AskBy, Asked, Mode, RawOwnedMutex, Wait};
use crate::range::sought::Sought;
use std::fmt;
use std::future::Future;
use std::ops::RangeBounds;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// How long a request of a task may wait, and the line that asks.
#[derive(Debug, Clone, Copy)]
pub(in crate::range) struct Until {
    wait: Wait,
    at: &'static Location<'static>,
}

impl Until {
    #[inline]
    #[track_caller]
    pub(in crate::range) fn new(wait: Wait) -> Self {
        let at = Location::caller();
        Self { wait, at }
    }
}

/// A request for one range, from poll to poll.
#[derive(Debug)]
struct One {
    sought: Sought,
    mode: Mode,
    wait: Wait,
    /// Whether its owner has counted the range.
    is_counted: bool,
    asked: Asked,
}

impl One {
    #[inline]
    fn new(sought: Sought, mode: Mode, until: Until) -> Self {
        Self {
            sought,
            mode,
            wait: until.wait,
            is_counted: false,
            asked: Asked::at(until.at),
        }
    }

    /// Goes on with the request. A range that is held stays counted.
    #[inline]
    fn poll<P: Place>(
        &mut self,
        lock: &P,
        ask: AskBy<'_, TokenAt<P>>,
        context: &Context<'_>,
    ) -> Poll<Result<TokenAt<P>, Refusal>> {
        let owner = ask.owner;
        let outcome = ready!(lock.raw().poll_by(ask, &mut self.asked, context.waker()));
        self.is_counted = false;
        if outcome.is_err() {
            owner.uncount();
        }
        Poll::Ready(outcome)
    }

    /// What it was granted.
    #[inline]
    fn piece<P: Place>(&self, lock: &P, token: TokenAt<P>) -> Piece<TokenAt<P>> {
        Piece::new(lock, &self.sought, self.mode, token)
    }

    /// Gives it up, if it is not over.
    #[cold]
    fn give_up<P: Place>(&mut self, lock: &P, owner: &Owner) {
        if std::mem::take(&mut self.is_counted) {
            lock.raw().forget_by(owner, self.mode, &mut self.asked);
            owner.uncount();
        }
    }
}

/// Locks a range for an [`Owner`] when it is awaited: from [`By::write_async`](super::By::write_async) and its kin. Its
/// output is a [`Holding`], which may be sent to other threads, or why there is none.
///
/// # What is promised
/// - *Order.* From the first poll that finds the range taken the request has a place in the lock's queue, among those
///   of threads and of other tasks.
/// - *Cancellation.* Dropping the future ends the request. Nothing is left behind, and those who have waited for it go
///   on. A range is acquired within a poll, so none is granted that nobody has seen.
/// - *No hostages.* When it is woken and its task does not poll it, others wait for it for about a millisecond, and
///   then go on. It keeps its place in the queue.
///
/// # What blocks
/// No poll does. It takes a bounded number of steps, and the mutex of the lock's queue, which is held for a few.
///
/// # Cost
/// While the range is free, that of [`By::write`](super::By::write). A request that waits costs an entry in the queue,
/// and its waker is cloned each time it goes to sleep. The first that needs the timer starts a thread of this library:
/// the timer ends the turns of tasks that are not polled, and the waits with a limit of time.
///
/// # Errors
/// [`Refusal::Cancelled`], [`Refusal::TooMany`], [`Refusal::LockFull`], [`Refusal::Busy`] if it has a limit of time.
///
/// # What waits for itself
/// Another task of the owner may hold some of the range, and release it: so this one waits for that, as it does for
/// others. A task that holds some of the range itself, in another [`Holding`], waits for ever. A lock that
/// [looks for deadlocks](crate::deadlock) [reports](crate::deadlock::Report::OwnRange) both, if they last, since it
/// does not know which of the owner's tasks holds it.
///
/// # Panics
/// When it is polled after it was ready.
#[must_use = "futures do nothing until they are polled"]
pub struct LockBy<P: Place> {
    /// `None`: it is over.
    lock: Option<P>,
    owner: Owner,
    /// `None`: the range is empty.
    one: Option<One>,
}

impl<P: Place> LockBy<P> {
    #[inline]
    #[track_caller]
    pub(in crate::range) fn new(
        lock: P,
        owner: Owner,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Self {
        let sought = lock.ranges().sought(&range);
        Self::sought(lock, owner, sought, mode, Until::new(wait))
    }

    /// What nobody in particular asks for.
    #[inline]
    #[track_caller]
    pub(in crate::range) fn anonymous(
        lock: P,
        range: impl RangeBounds<P::Key>,
        mode: Mode,
        wait: Wait,
    ) -> Self {
        Self::new(lock, Owner::anonymous(), range, mode, wait)
    }

    #[inline]
    fn sought(lock: P, owner: Owner, sought: Option<Sought>, mode: Mode, until: Until) -> Self {
        let one = sought.map(|sought| One::new(sought, mode, until));
        let lock = Some(lock);
        Self { lock, owner, one }
    }

    /// What is granted when the request is over: nothing, if the range is empty.
    #[inline(never)] // It returns a word or two. Its caller makes a holding of them where that is to be.
    fn go_on(&mut self, context: &Context<'_>) -> Poll<Result<Option<TokenAt<P>>, Refusal>> {
        let Self { lock, owner, one } = self;
        let lock = lock.as_ref();
        let lock = lock.expect("a future is not polled again when it is over");
        let Some(one) = one else {
            return Poll::Ready(Ok(None));
        };
        if !one.is_counted {
            owner.count()?;
            one.is_counted = true;
        }
        let ask = AskBy::new(owner, one.sought.span(), one.mode, one.wait);
        let token = ready!(one.poll(lock, ask, context))?;
        Poll::Ready(Ok(Some(token)))
    }

    /// What is held, now that the request is over.
    #[inline]
    fn end(&mut self, granted: Option<TokenAt<P>>) -> Holding<P> {
        let lock = self.lock.take().expect("it was not over");
        let owner = std::mem::replace(&mut self.owner, Owner::anonymous());
        let pieces = match (granted, &self.one) {
            (Some(token), Some(one)) => Pieces::<P>::from_buf([one.piece(&lock, token)]),
            _ => Pieces::<P>::new(),
        };
        Holding {
            lock,
            owner,
            pieces,
        }
    }
}

impl<P: Place> Holding<P> {
    /// Holds one piece more, which comes last.
    fn hold(&mut self, piece: Piece<TokenAt<P>>) {
        self.pieces.push(piece);
    }
}

// The queue does not know its address.
impl<P: Place> Unpin for LockBy<P> {}

impl<P: Place> Future for LockBy<P> {
    type Output = Result<Holding<P>, Refusal>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.go_on(context)) {
            Ok(granted) => Poll::Ready(Ok(self.end(granted))),
            Err(refusal) => {
                self.lock = None;
                Poll::Ready(Err(refusal))
            }
        }
    }
}

impl<P: Place> Drop for LockBy<P> {
    #[inline]
    fn drop(&mut self) {
        if let (Some(lock), Some(one)) = (&self.lock, &mut self.one) {
            one.give_up(lock, &self.owner);
        }
    }
}

impl<P: Place> fmt::Debug for LockBy<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let describe = |one: &One| {
            let ranges = self.lock.as_ref()?.ranges();
            Some((ranges.describe(one.sought.span()), one.mode))
        };
        let asked = self.one.as_ref().and_then(describe);
        f.debug_tuple("LockBy").field(&asked).finish()
    }
}

/// Locks a range when it is awaited: from [`RangeLock::read_async`](crate::range::RangeLock::read_async) and its kin.
/// Its output is a [`Holding`], which may be sent to other threads.
///
/// As [`LockBy`], of an [anonymous](Owner::anonymous) owner.
#[derive(Debug)]
#[must_use = "futures do nothing until they are polled"]
pub struct Lock<P: Place>(pub(in crate::range) LockBy<P>);

impl<P: Place> Future for Lock<P> {
    type Output = Holding<P>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(of_anonymous(outcome, Wait::Forever).expect("it waits for ever"))
    }
}

/// Locks a range when it is awaited, for a limited time: from
/// [`RangeLock::try_read_async_for`](crate::range::RangeLock::try_read_async_for) and its kin. Its output is a
/// [`Holding`], or `None` after that time.
///
/// As [`LockBy`], of an [anonymous](Owner::anonymous) owner.
#[derive(Debug)]
#[must_use = "futures do nothing until they are polled"]
pub struct TryLock<P: Place>(pub(in crate::range) LockBy<P>);

impl<P: Place> Future for TryLock<P> {
    type Output = Option<Holding<P>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(outcome.ok())
    }
}
