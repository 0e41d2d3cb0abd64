//! Who holds and who waits: a listing for people who debug a hang.

use super::raw::Mode;
use super::span::Span;
use std::fmt;
use std::panic::Location;

/// A range, a mode and a thread: somebody who holds, or asks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The range.
    pub span: Span,
    /// How it is held or asked for.
    pub mode: Mode,
    /// The thread; on Linux its number in a debugger and in `ps -L`.
    pub thread: u32,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Shared => "shared",
            Mode::Exclusive => "exclusive",
        };
        write!(f, "thread {}: {} {mode}", self.thread, self.span)
    }
}

/// A thread asks for what it holds: the message of the panic.
pub(super) struct Deadlock {
    pub(super) asked: Claim,
    pub(super) held: Claim,
    /// Where it was locked.
    pub(super) at: &'static Location<'static>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, held, at } = self;
        write!(
            f,
            "deadlock: {asked} waits for a range that the same thread holds: {held}, locked at {at}"
        )
    }
}

/// A sleeping request, and who it sleeps behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// What is asked for.
    pub request: Claim,
    /// The holder, or the earlier request, that is in the way.
    pub behind: Claim,
}

/// The holders and waiters of a lock at about one time.
///
/// It is taken without stopping anybody: holders that come or go meanwhile may be in it or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Who holds, in order of range start.
    pub holders: Vec<Claim>,
    /// Who sleeps, first come first.
    pub waiters: Vec<Waiter>,
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
    pub fn new(holders: Vec<Claim>, waiters: Vec<Waiter>) -> Self {
        Self { holders, waiters }
    }
}

impl Claim {
    /// A claim.
    #[must_use]
    pub fn new(span: Span, mode: Mode, thread: u32) -> Self {
        Self { span, mode, thread }
    }

    /// Whether the two cannot be granted together.
    #[inline]
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.mode.conflicts(other.mode) && self.span.overlaps(other.span)
    }
}
