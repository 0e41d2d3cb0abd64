//! What users call.

use crate::keeper::{self, Ask, Command};
use crate::{Engine, Extent, Mode, Pending, Span, Token, Trouble};
use std::error::Error;
use std::fmt;
use std::future::IntoFuture;
use std::io;
use std::ops::RangeBounds;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// What is assumed of clocks, and how often is asked without being told.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Options {
    /// By how many thousandths the clocks of two machines may differ in speed. A lease counts as lost so much earlier.
    /// 10 unless it is set.
    pub drift_per_mille: u32,
    /// A request that waits asks again after so long, also if nothing was reported. 500 ms unless it is set. Engines
    /// need not keep a wish for longer than some seconds that is not repeated.
    pub poll: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            drift_per_mille: 10,
            poll: Duration::from_millis(500),
        }
    }
}

/// The shortest ttl. Within a quarter of it the keeper has to be woken, ask and be answered.
pub const SHORTEST: Duration = Duration::from_millis(50);

/// Leases of ranges of one resource: of positions, unless [`KeyLease`](crate::KeyLease) names it.
///
/// Clones share the engine and the thread that keeps the leases. The thread ends when all clones are dropped, and all
/// tokens released or lost, of which the engine is told for up to a ttl.
///
/// Requests that conflict are granted in the order in which they came, except that one whose range is free passes an
/// earlier one after it has given way for a limited time, which each [`Engine`] states. Requests of one process
/// conflict as those of others do.
#[derive(Debug)]
pub struct RangeLease<R = Span> {
    keeper: mpsc::UnboundedSender<Command<R>>,
}

impl<R> Clone for RangeLease<R> {
    fn clone(&self) -> Self {
        let keeper = self.keeper.clone();
        Self { keeper }
    }
}

impl<R: Extent> RangeLease<R> {
    /// Starts the thread that keeps the leases, and reaches the engine.
    ///
    /// # Errors
    /// When the engine cannot be used, or the thread not be started.
    pub fn open<E: Engine<Range = R> + Send>(engine: E) -> Pending<Result<Self, NotOpened>> {
        Self::open_with(engine, Options::default())
    }

    /// As [`open`](Self::open), with other assumptions.
    ///
    /// # Errors
    /// When the engine cannot be used, or the thread not be started.
    pub fn open_with<E: Engine<Range = R> + Send>(
        engine: E,
        options: Options,
    ) -> Pending<Result<Self, NotOpened>> {
        let (keeper, commands) = mpsc::unbounded_channel();
        keeper::start(engine, options, commands, Self { keeper })
    }

    /// As [`open_with`](Self::open_with), on this thread: within the second future.
    #[cfg(test)]
    pub(crate) fn open_here<E: Engine<Range = R>>(
        engine: E,
        options: Options,
    ) -> (Pending<Result<Self, NotOpened>>, impl Future<Output = ()>) {
        let (keeper, commands) = mpsc::unbounded_channel();
        let (answer, opening) = Pending::new(|| unreachable!("the future is polled"));
        let keeps = keeper::keep(engine, options, commands, Self { keeper }, answer);
        (opening, keeps)
    }

    /// The keeper polls a future to its end.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        // If the keeper has gone, nothing is held that anybody could wish for.
        let _ = self.keeper.send(Command::Poll(Box::pin(future)));
    }

    pub(crate) fn request(&self, span: Option<R>, mode: Mode, ttl: Duration) -> Acquire<'_, R> {
        Acquire {
            lease: self,
            span,
            ask: Ask {
                mode,
                ttl,
                limit: None,
                grow: None,
                cancel: None,
            },
        }
    }
}

impl RangeLease {
    /// A request for a range, which begins with [`start`](Acquire::start), [`wait`](Acquire::wait) or `.await`.
    ///
    /// # Panics
    /// When the range starts after it ends.
    #[track_caller]
    pub fn acquire(&self, range: impl RangeBounds<u64>, mode: Mode, ttl: Duration) -> Acquire<'_> {
        self.request(Span::of(range), mode, ttl)
    }
}

/// A request that has not begun.
#[must_use = "it has not begun"]
#[derive(Debug)]
pub struct Acquire<'a, R = Span> {
    lease: &'a RangeLease<R>,
    span: Option<R>,
    ask: Ask,
}

impl Acquire<'_> {
    /// Takes the largest block of `2^k` positions around the range that is free, with `k` at most this, and at most 63.
    pub fn grown(mut self, k: u32) -> Self {
        self.ask.grow = Some(k.min(63));
        self
    }
}

impl<R> Acquire<'_, R> {
    /// Gives up after a time. It begins with the request, so a range that is free is not had either in less than a trip
    /// to the engine and back.
    pub fn within(mut self, limit: Duration) -> Self {
        self.ask.limit = Some(limit);
        self
    }

    /// Gives up when it is told to.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.ask.cancel = Some(cancel.0.subscribe());
        self
    }

    /// Begins. To drop what is returned is to cancel.
    ///
    /// # Errors
    /// Why nothing is held: see [`Refused`].
    pub fn start(self) -> Pending<Result<Token<R>, Refused>> {
        let (answer, pending) = Pending::new(|| Err(Refused::Stopped));
        let ttl = self.ask.ttl;
        let _ = match self.span {
            Some(_) if ttl < SHORTEST => {
                let least = SHORTEST;
                answer
                    .send(Err(Refused::TtlTooShort { ttl, least }))
                    .map_err(drop)
            }
            // If the keeper has gone, the pending answer says so.
            Some(span) => self
                .lease
                .keeper
                .send(Command::Acquire(span, self.ask, answer))
                .map_err(drop),
            None => answer.send(Err(Refused::Empty)).map_err(drop),
        };
        pending
    }

    /// Begins, and blocks the thread.
    ///
    /// # Errors
    /// Why nothing is held.
    ///
    /// # Panics
    /// Within an `async` context of tokio: `.await` it there.
    #[track_caller]
    pub fn wait(self) -> Result<Token<R>, Refused> {
        self.start().wait()
    }
}

impl<R> IntoFuture for Acquire<'_, R> {
    type Output = Result<Token<R>, Refused>;
    type IntoFuture = Pending<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.start()
    }
}

/// Ends requests that wait, from any thread.
#[derive(Debug, Clone, Default)]
pub struct Cancel(watch::Sender<bool>);

impl Cancel {
    /// One that has not been used.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all requests that were made with it, and those that will be. What is held stays held.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

/// Why nothing was acquired.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The range is empty, and there is no fence for nothing.
    Empty,
    /// It was busy for as long as the request might take.
    TimedOut,
    /// The engine did not say in time whether it is busy.
    NotAnswered,
    /// No renewal could keep it: it is below [`SHORTEST`], or time and again the lease was granted, and nearly over
    /// when that was known.
    TtlTooShort {
        /// For which it was asked.
        ttl: Duration,
        /// For which to ask: a lease that is to be renewed needs four times as long as the fastest grant took.
        least: Duration,
    },
    /// It was cancelled.
    Cancelled,
    /// The engine refused, or could not be reached in time.
    Engine(Trouble),
    /// The thread that keeps the leases has ended by a panic.
    Stopped,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty range cannot be leased"),
            Self::TimedOut => f.write_str("the range was not free in time"),
            Self::NotAnswered => f.write_str("the engine of the leases did not answer in time"),
            Self::TtlTooShort { ttl, least } => write!(
                f,
                "a lease for {ttl:.1?} is nearly over before it can be renewed: ask for {least:.1?} or more"
            ),
            Self::Cancelled => f.write_str("the request was cancelled"),
            Self::Engine(why) => why.fmt(f),
            Self::Stopped => f.write_str("the thread that keeps the leases has ended"),
        }
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Engine(why) => why.source(),
            _ => None,
        }
    }
}

/// Why leases cannot be had.
#[derive(Debug)]
pub enum NotOpened {
    /// The engine cannot be used.
    Engine(Trouble),
    /// The thread that keeps the leases cannot run.
    Thread(io::Error),
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(why) => why.fmt(f),
            Self::Thread(why) => write!(f, "the thread that keeps the leases cannot run: {why}"),
        }
    }
}

impl Error for NotOpened {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Engine(why) => why.source(),
            Self::Thread(why) => Some(why),
        }
    }
}
