//! What an engine has to do.

use crate::{Mode, Span, names};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Tells later grants from earlier ones.
///
/// Of two leases that conflict, the later one has the larger fence. Fences of leases that do not conflict are not
/// ordered by time. Other programs compare it as its [`number`](Self::number), or as the text that `Display` writes:
/// both parts have a fixed width, so the order of texts is that of fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// How often the engine may have lost its latest grants, as in a failover. It comes first in comparisons.
    pub epoch: u32,
    /// The number of the grant within the epoch.
    pub counter: u64,
}

impl Fence {
    /// So many counters of one epoch are numbers.
    const COUNTERS: u64 = 10_u64.pow(13);

    /// The number of the first fence.
    const FIRST: u64 = 10_u64.pow(15);

    /// It as one number of 16 digits, which floating-point numbers have exactly: 100 plus the epoch, and 13 digits of
    /// the counter. So shells, `sort` with `-n` and without it, `awk`, JSON and databases compare it right. There is
    /// none from epoch 800 on, or from counter 10^13 on.
    #[must_use]
    pub fn number(self) -> Option<u64> {
        let (epoch, counter) = (u64::from(self.epoch), self.counter);
        (epoch < 800 && counter < Self::COUNTERS)
            .then(|| Self::FIRST + epoch * Self::COUNTERS + counter)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}.{:020}", self.epoch, self.counter)
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

/// A text that does not say where an engine is. What may be a password is not repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnAddress(String);

impl NotAnAddress {
    /// And why.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NotAnAddress {}

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

#[cfg(test)]
mod tests {
    use super::Fence;

    /// As text, as an integer and as a floating-point number, in order, with steps from 9 to 10 in each part.
    #[test]
    fn fences_compare_right_outside() {
        let most = Fence::COUNTERS - 1;
        let all = [
            (0, 0),
            (0, most),
            (1, 2),
            (1, 10),
            (1, 1351),
            (9, most),
            (10, 1),
            (799, most),
        ];
        let all = all.map(|(epoch, counter)| Fence { epoch, counter });
        for pair in all.windows(2) {
            let numbers = [0, 1].map(|at| pair[at].number().expect("it has one"));
            let [texts, words] = [
                pair.iter().map(Fence::to_string).collect::<Vec<_>>(),
                numbers.map(|number| number.to_string()).to_vec(),
            ];
            assert!(pair[0] < pair[1] && numbers[0] < numbers[1], "{pair:?}");
            assert!(texts[0] < texts[1] && words[0] < words[1], "{pair:?}");
            assert!((numbers[0] as f64) < numbers[1] as f64, "{pair:?}");
            assert!(words.iter().all(|word| word.len() == 16), "{words:?}");
        }
        assert!((most as f64 - 1.0) as u64 == most - 1 && all[7].number() < Some(1 << 53));
        for (epoch, counter) in [(800, 0), (0, most + 1), (u32::MAX, u64::MAX)] {
            assert_eq!(Fence { epoch, counter }.number(), None);
        }
    }
}
