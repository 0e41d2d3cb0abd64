//! A listing of the holders and waiters of a lock, for people who debug a hang.

use super::id::OwnerId;
use super::mode::Mode;
use super::span::Span;
use std::fmt;
use std::panic::Location;

/// A request: a range, a mode, and who holds the range or asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The range.
    pub span: Span,
    /// How it is held or asked for.
    pub mode: Mode,
    /// Who holds it or asks for it: a thread, unless an [`Owner`](super::Owner) was named.
    pub owner: OwnerId,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(&self.span.to_string()))
    }
}

/// The message of the panic when a thread or an owner asks for what it holds itself.
pub(super) struct SelfDeadlock {
    pub(super) asked: Request,
    pub(super) held: Request,
    /// The line that locked it.
    pub(super) at: &'static Location<'static>,
    /// Both ranges as people read them, if they are no numbers.
    pub(super) ranges: Option<(String, String)>,
}

impl fmt::Display for SelfDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            asked, held, at, ..
        } = self;
        let kind = match (asked.owner.thread(), held.owner.thread()) {
            (None, None) => "owner",
            (None, Some(_)) => "calling thread",
            _ => "thread",
        };
        let (asked, held) = match &self.ranges {
            None => (asked.to_string(), held.to_string()),
            Some((wanted, had)) => (asked.shown(wanted), held.shown(had)),
        };
        write!(
            f,
            "deadlock: {asked} waits for a range that the same {kind} holds: {held}, locked at {at}"
        )
    }
}

/// A sleeping request, and what it sleeps behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingRequest {
    /// What is asked for.
    pub request: Request,
    /// The holder, or the earlier request, that is in the way.
    pub behind: Request,
}

/// The holders and waiters of a lock at about one time.
///
/// Other threads go on while it is taken: holders that come or go meanwhile may be in it or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The holders, in order of range start.
    pub holders: Vec<Request>,
    /// The sleeping requests, first come first.
    pub waiters: Vec<WaitingRequest>,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "held by {}", self.holders.len())?;
        for holder in &self.holders {
            writeln!(f, "  {holder}")?;
        }
        writeln!(f, "awaited by {}", self.waiters.len())?;
        for waiter in &self.waiters {
            writeln!(f, "  {}, behind {}", waiter.request, waiter.behind)?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// A snapshot of these holders and waiters.
    #[must_use]
    pub fn new(holders: Vec<Request>, waiters: Vec<WaitingRequest>) -> Self {
        Self { holders, waiters }
    }

    /// Who is in the way of a request, as `F_GETLK` of `fcntl` answers: of the holders that conflict with it, the one
    /// whose range begins first. What its own owner holds is not in its way.
    ///
    /// ```
    /// use spanlock::range::inspect::Request;
    /// use spanlock::range::raw::Mode;
    /// use spanlock::range::{Owner, RangeLock, Span};
    ///
    /// let (file, client, other) = (RangeLock::new(), Owner::new(), Owner::new());
    /// let _record = file.by(&client).write(100..200)?;
    /// let span = Span::of(..150).expect("it is not empty");
    /// let asks = |owner: &Owner| Request::new(span, Mode::Shared, owner.id());
    /// let snapshot = file.snapshot();
    /// assert_eq!(snapshot.blocker(&asks(&other)).map(|it| it.owner), Some(client.id()));
    /// assert_eq!(snapshot.blocker(&asks(&client)), None);
    /// # Ok::<(), spanlock::range::Refusal>(())
    /// ```
    #[must_use]
    pub fn blocker(&self, request: &Request) -> Option<&Request> {
        let mut holders = self.holders.iter();
        holders.find(|holder| holder.conflicts(request) && !holder.owner.is_same(request.owner))
    }

    /// Ends the description of a lock for people who debug, with the requests.
    pub(super) fn finish(&self, described: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result {
        described
            .field("holders", &self.holders)
            .field("waiters", &self.waiters)
            .finish()
    }
}

impl Request {
    /// The request, with its range as people read it.
    pub(super) fn shown(&self, range: &str) -> String {
        format!("{}: {range} {}", self.owner, self.mode.word())
    }

    /// A request.
    #[must_use]
    pub fn new(span: Span, mode: Mode, owner: impl Into<OwnerId>) -> Self {
        let owner = owner.into();
        Self { span, mode, owner }
    }

    /// Whether the two cannot be granted together.
    #[inline]
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.mode.conflicts(other.mode) && self.span.overlaps(other.span)
    }
}
