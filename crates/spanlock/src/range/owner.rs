//! Who holds ranges: a thread, or an [`Owner`] that may go from thread to thread.
//!
//! ```text
//!   owner ---- is asked by name in each request ----> the request's node bears the owner's number
//!     |
//!     +-- counts the ranges that it holds, for its limit and for the rule of giving way
//!     +-- lists the threads that wait for it, for `cancel`
//! ```
//!
//! The numbers of owners are for reports, and for the hints that keep requests live. Exclusion never depends on them.
//!
//! # Edges
//!
//! - **cancel**: a thread lists itself, under the owner's mutex, before it sleeps, and does not sleep if the owner is
//!   cancelled by then. A cancellation marks the owner, and signals all that are listed, under the same mutex.

use crate::wait::{Parker, Wakeups};
use prim::atomic::{AtomicU32, AtomicUsize, Ordering};
use prim::sync::Arc;
use prim::sync::Mutex;
use std::fmt;

/// Names who holds a range or asks for it, in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId(u32);

impl OwnerId {
    /// The numbers from here on are those of owners, and those below are of threads.
    const FIRST: u32 = 1 << 31;

    /// The thread; on Linux its number in a debugger and in `ps -L`. `None`: it is an [`Owner`].
    #[must_use]
    pub fn thread(self) -> Option<u32> {
        (self.0 < Self::FIRST).then_some(self.0)
    }

    pub(crate) const fn of_thread(thread: u32) -> Self {
        Self(thread)
    }

    /// The number as it is kept beside a request.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

impl From<u32> for OwnerId {
    /// A thread's.
    fn from(thread: u32) -> Self {
        Self::of_thread(thread)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread() {
            Some(thread) => write!(f, "thread {thread}"),
            None => write!(f, "owner {}", self.0 - Self::FIRST),
        }
    }
}

prim::global! {
    /// How many owners were made.
    static MADE: AtomicU32 = AtomicU32::new(0);
}

/// Somebody who holds ranges and is no thread: a transaction, a client, a request that goes from thread to thread.
///
/// What an owner holds is a [`Holding`](super::Holding), which any thread may use and drop. An owner is cheap to make:
/// one allocation. A clone is the same owner.
///
/// ```
/// use spanlock::range::{Owner, RangeLock};
///
/// let lock = RangeLock::new();
/// let transaction = Owner::new();
/// let holding = lock.by(&transaction).write(0..100).expect("nobody cancels it");
/// std::thread::scope(|scope| {
///     scope.spawn(|| drop(holding)); // Another thread releases it.
/// });
/// assert!(lock.try_write(..).is_some());
/// ```
///
/// # Rules
/// - Two owners exclude each other as two threads do. An owner that asks for what it holds in another `Holding` waits
///   for itself; debug builds panic instead.
/// - A blocking request blocks the thread that makes it. While it waits, what the owner holds and what that thread
///   itself holds do not give way to others that wait for it.
/// - An owner may be dropped while it holds ranges: each `Holding` keeps it.
#[derive(Clone)]
pub struct Owner(Arc<Inner>);

struct Inner {
    id: OwnerId,
    limit: usize,
    /// Ranges held or asked for, in all locks.
    count: AtomicUsize,
    waits: Mutex<Waits>,
}

/// The threads that wait for an owner, unless it is cancelled.
struct Waits {
    cancelled: bool,
    listed: Vec<&'static Parker>,
}

impl Owner {
    /// An owner that may hold any number of ranges.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An owner that may hold or ask for so many ranges at a time, in all locks together. A request beyond that is
    /// refused with [`Refusal::TooMany`]. What it has already is never refused: a conversion that cuts a range in
    /// pieces counts each piece, and is granted.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Inner {
            id: OwnerId(OwnerId::FIRST | number),
            limit,
            count: AtomicUsize::new(0),
            waits: Mutex::new(Waits {
                cancelled: false,
                listed: Vec::new(),
            }),
        }))
    }

    /// Its name in reports. Names repeat after two thousand million owners.
    #[must_use]
    pub fn id(&self) -> OwnerId {
        self.0.id
    }

    /// How many ranges it holds or asks for, in all locks. Pieces count.
    #[must_use]
    pub fn asks_or_holds(&self) -> usize {
        // Relaxed: a count, which orders nothing.
        self.0.count.load(Ordering::Relaxed)
    }

    /// Ends all waits of this owner, now and from now on: they are refused with [`Refusal::Cancelled`]. What it holds
    /// it keeps, and a request that need not wait is granted as before. Any thread may call this.
    ///
    /// Costs a mutex, and a wake-up for each thread that waits.
    pub fn cancel(&self) {
        let mut wakeups = Wakeups::default();
        let mut waits = self.0.waits.lock();
        // [cancel] Under the mutex under which the waits are listed.
        waits.cancelled = true;
        for parker in waits.listed.drain(..) {
            if prim::intact!("cancel") {
                wakeups.signal(parker);
            }
        }
        drop(waits);
        wakeups.deliver();
    }

    /// Whether it was [cancelled](Self::cancel).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.waits.lock().cancelled
    }

    /// Counts one more range.
    ///
    /// # Errors
    /// It holds as many as it may.
    pub(super) fn count(&self) -> Result<(), Refusal> {
        let before = self.0.count.fetch_add(1, Ordering::Relaxed);
        if before < self.0.limit {
            return Ok(());
        }
        self.uncount();
        Err(Refusal::TooMany)
    }

    /// Counts a piece of what it holds, whatever its limit.
    pub(super) fn count_piece(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one less.
    pub(super) fn uncount(&self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lists a thread that is about to sleep for the owner. `None`: the owner is cancelled.
    pub(super) fn list(&self, parker: &'static Parker) -> Option<Listed<'_>> {
        let mut waits = self.0.waits.lock();
        // [cancel] Under the mutex under which the owner is marked.
        if waits.cancelled && prim::intact!("cancel") {
            return None;
        }
        waits.listed.push(parker);
        Some(Listed {
            owner: self,
            parker,
        })
    }
}

/// A thread that sleeps for an owner.
pub(super) struct Listed<'a> {
    owner: &'a Owner,
    parker: &'static Parker,
}

impl Listed<'_> {
    /// Ends the listing, and says whether the owner was cancelled meanwhile.
    pub(super) fn was_cancelled(self) -> bool {
        let mut waits = self.owner.0.waits.lock();
        let id = self.parker.id();
        if let Some(at) = waits.listed.iter().position(|listed| listed.id() == id) {
            waits.listed.swap_remove(at);
        }
        waits.cancelled
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("id", &self.id())
            .field("asks_or_holds", &self.asks_or_holds())
            .finish_non_exhaustive()
    }
}

/// Why an owner does not get a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody else holds or awaits some of it, and the request may not wait any longer.
    Busy,
    /// The owner was [cancelled](Owner::cancel).
    Cancelled,
    /// The owner holds and asks for as many ranges as it [may](Owner::with_limit).
    TooMany,
    /// The owner shares some of the range and wants it alone. Another owner does so, too, and waits already: each would
    /// wait for the other. Release what is shared, and ask again.
    OtherUpgrade,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another request holds or awaits some of the range",
            Self::Cancelled => "the owner was cancelled",
            Self::TooMany => "the owner holds and asks for as many ranges as it may",
            Self::OtherUpgrade => {
                "another owner that shares some of the range waits to have it alone"
            }
        })
    }
}

impl std::error::Error for Refusal {}
