//! What an engine has to do.

use crate::{Mode, Span, names};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Tells later grants from earlier ones.
///
/// Of two leases that conflict, the later one has the larger fence. Fences of leases that do not conflict are not
/// ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// How often the engine may have lost its latest grants, as in a failover. It comes first in comparisons.
    pub epoch: u32,
    /// The number of the grant within the epoch.
    pub counter: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.counter)
    }
}

/// The name of a request, by which it may be repeated. No two requests have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u128);

impl RequestId {
    /// That of no request.
    pub(crate) const NONE: Self = Self(0);

    /// A new one.
    pub(crate) fn new() -> Self {
        Self(names::fresh())
    }
}

impl RequestId {
    /// It as a number, all of whose bits are random.
    #[must_use]
    pub fn number(self) -> u128 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::str::FromStr for RequestId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

/// A range of what a resource is leased by: of positions ([`Span`]) or of byte strings ([`KeySpan`](crate::KeySpan)).
pub trait Extent: Clone + fmt::Debug + Send + 'static {
    /// Whether two ranges overlap.
    fn meets(&self, other: &Self) -> bool;

    /// The block of `2^k` positions that the range lies in, if it lies in one.
    fn block(&self, k: u32) -> Option<Self>;
}

impl Extent for Span {
    fn meets(&self, other: &Self) -> bool {
        self.overlaps(*other)
    }

    fn block(&self, k: u32) -> Option<Self> {
        let rest = u64::MAX.checked_shr(64 - k.min(64)).unwrap_or(0);
        let block = Self::inclusive(self.start() & !rest, self.start() | rest);
        block.filter(|block| self.last() <= block.last())
    }
}

/// What is asked of an engine.
#[derive(Debug, Clone, Copy)]
pub struct Request<R = Span> {
    /// Its name.
    pub id: RequestId,
    /// The range.
    pub span: R,
    /// How it is to be held.
    pub mode: Mode,
    /// For how long, unless it is renewed.
    pub ttl: Duration,
    /// The engine may grant the largest block of `2^k` positions that holds the range and is free, with `k` at most
    /// this, which is 63 or less. Without it, the range alone.
    pub grow: Option<u32>,
}

impl<R: Extent> Request<R> {
    /// What it may be granted: the largest block that it asks for which is free, and which nobody else wishes for; or
    /// the range alone, if that is free. For engines that look for it themselves.
    pub fn largest(
        &self,
        is_free: impl Fn(&R) -> bool,
        is_wished_for: impl Fn(&R) -> bool,
    ) -> Option<R> {
        let grown = self
            .grow
            .into_iter()
            .flat_map(|k| (0..=k).rev().filter_map(|k| self.span.block(k)));
        let grown = grown.filter(|span| !is_wished_for(span));
        grown.chain([self.span.clone()]).find(|span| is_free(span))
    }
}

/// What an engine says to a request.
#[derive(Debug, Clone, Copy)]
pub enum Answer<R = Span> {
    /// It is held, for its ttl from when the engine decided.
    Granted {
        /// What is held: the range that was asked for, or the block around it.
        span: R,
        /// The fence of the grant.
        fence: Fence,
    },
    /// Others hold a part of it. The engine keeps the wish for a while, and tells the holders.
    Busy {
        /// After this time a lease that is in the way will have run out, if it is not renewed.
        expires: Option<Duration>,
    },
}

/// What an engine says to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// It is held for another ttl.
    Kept {
        /// Whether somebody wishes for a part of it and has to wait.
        wanted: Wanted,
    },
    /// It has run out, and others may have it.
    Gone,
}

/// Whether somebody waits for a part of what a lease holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Somebody does.
    Yes,
    /// Nobody does.
    No,
}

/// What an engine reports by itself. Reports may be lost: they save time only.
#[derive(Debug, Clone, Copy)]
pub enum News {
    /// What the request waits for may be free, or what it holds may be wished for, maybe since before it had it.
    About(RequestId),
    /// Reports were lost.
    Missed,
}

/// Why an engine does not answer.
#[derive(Debug)]
pub enum Trouble {
    /// It is not known whether the engine has done what it was asked for. Asking again may help.
    Unreachable(Box<dyn Error + Send + Sync>),
    /// The engine refuses, and would refuse again.
    Refused(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => {
                write!(f, "the engine of the leases cannot be reached: {why}")
            }
            Self::Refused(why) => write!(f, "the engine of the leases refuses: {why}"),
        }
    }
}

impl Error for Trouble {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreachable(why) | Self::Refused(why) => Some(why.as_ref()),
        }
    }
}

/// Keeps who holds which ranges of one resource.
///
/// All calls are made on one thread, within a runtime of tokio that has input and output. A release takes effect after
/// the acquisitions of the same request that were called before it, also if their futures were dropped.
pub trait Engine: 'static {
    /// What the resource is leased by.
    type Range: Extent;

    /// Reaches the engine for the first time.
    ///
    /// # Errors
    /// When it cannot be used.
    fn open(&self) -> impl Future<Output = Result<(), Trouble>>;

    /// Grants the request if nobody holds a conflicting range, and it need not give way. A request gives way to those
    /// that came earlier, conflict with it and still wait, for a limited time. The engines here do so until the other
    /// has waited for 1, 2, 4, 8, … seconds, whichever is the first after the request came. A request that is granted
    /// already is granted again, with the same range, for another ttl; its fence may be a larger one.
    ///
    /// # Errors
    /// When there is no answer. The request may be granted nevertheless.
    fn acquire(
        &self,
        request: &Request<Self::Range>,
    ) -> impl Future<Output = Result<Answer<Self::Range>, Trouble>>;

    /// Holds what the request was granted for another ttl, if that has not run out.
    ///
    /// # Errors
    /// When there is no answer.
    fn renew(&self, id: RequestId, ttl: Duration)
    -> impl Future<Output = Result<Renewal, Trouble>>;

    /// Forgets a request: what it holds, and what it wishes for. Each request ends so, or by a renewal that says that
    /// it is gone. Nothing of it need be kept after that, also if there is no answer.
    ///
    /// # Errors
    /// When there is no answer.
    fn release(&self, id: RequestId) -> impl Future<Output = Result<(), Trouble>>;

    /// Waits for what the engine reports. It may be dropped and called again.
    fn news(&self) -> impl Future<Output = News>;
}
