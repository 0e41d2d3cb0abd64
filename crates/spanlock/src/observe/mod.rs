//! Watching who waits for ranges, from outside: each wait that puts a thread or a task to sleep, and ranges that are
//! held for long while others wait for them.
//!
//! ```
//! use spanlock::observe::{self, Observer, Outcome, Waiting};
//! use std::time::Duration;
//!
//! struct Print;
//!
//! impl Observer for Print {
//!     fn wait_ends(&self, wait: &Waiting, lasted: Duration, outcome: Outcome) {
//!         eprintln!("{} {outcome:?} after {lasted:?}, asked for at {}", wait.owner, wait.place);
//!     }
//! }
//!
//! observe::set(&Print).expect("the only one");
//! ```
//!
//! With the feature `tracing` there is `observe::Tracing`, which makes events of the crate `tracing`, and with the
//! feature `metrics` there is `observe::Metrics`, which counts and measures by the crate `metrics`.
//!
//! Reader-writer locks are not observed. `rw::Counted` counts what BRAVO does, and `spanlock run --stats` says it of
//! the `pthread_rwlock`s of an unmodified program.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "metrics")]
pub use self::metrics::Metrics;
#[cfg(feature = "tracing")]
pub use self::tracing::Tracing;

use crate::range::id::OwnerId;
use crate::range::mode::Mode;
use crate::range::shown::{HeldRange, ShownKeys};
use crate::range::span::Span;
use prim::clock::{Duration, Instant};
use prim::contain;
use prim::sync::OnceLock;
use std::panic::Location;

/// A request that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Who waits: a thread, unless an [`Owner`](crate::range::Owner) was named.
    pub owner: OwnerId,
    /// The thread that sleeps. `None`: it is a task's request.
    pub thread: Option<u32>,
    /// An address within the lock.
    pub lock: usize,
    /// The range that it waits for.
    pub span: Span,
    /// In a lock over keys, what of them it is: then `span` is everything. `None` there: the keys cannot be shown.
    pub keys: Option<ShownKeys>,
    /// How it is to hold that.
    pub mode: Mode,
    /// The line that asks for it.
    pub place: &'static Location<'static>,
}

/// How a wait ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It holds its range.
    Granted,
    /// It was refused: out of time, cancelled, or for another [reason](crate::range::Refusal). Or a comparison of keys
    /// has panicked in it.
    Refused,
    /// Its future was dropped.
    Dropped,
}

/// A range that somebody holds while others have waited for it for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongHold {
    /// Who holds it.
    pub owner: OwnerId,
    /// An address within the lock.
    pub lock: usize,
    /// What is held.
    pub held: HeldRange,
    /// For how long it has been in the way, at least.
    pub at_least: Duration,
}

/// What is called when requests begin to wait, and when they end.
///
/// # What it must not do
/// It is called on the thread that waits, on that which polls the task, and on a thread of the library. It holds up
/// whoever that is: it should be short, and must not wait for a range. A panic ends that call alone: the request goes
/// on, and what it is granted is held.
///
/// # Cost
/// A request that does not sleep pays nothing. One that does reads the clock twice.
pub trait Observer: Sync {
    /// A request goes to sleep for the first time.
    fn wait_begins(&self, _wait: &Waiting) {}

    /// A wait is over, which lasted as long as that.
    fn wait_ends(&self, _wait: &Waiting, _lasted: Duration, _outcome: Outcome) {}

    /// A range has been held for longer than a period, while the same request has waited for it. Once for each such
    /// wait's holder, from locks that [look for deadlocks](crate::deadlock).
    fn held_for_long(&self, _hold: &LongHold) {}
}

static OBSERVER: OnceLock<&'static dyn Observer> = OnceLock::new();

/// Has this one observe all locks of the process, from now on for good.
///
/// # Errors
/// Another one does already.
pub fn set(observer: &'static dyn Observer) -> Result<(), AlreadyObserved> {
    OBSERVER.set(observer).map_err(|_| AlreadyObserved)
}

/// There is an observer already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyObserved;

impl std::fmt::Display for AlreadyObserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the locks of this process have an observer already")
    }
}

impl std::error::Error for AlreadyObserved {}

/// Whether there is one.
pub(crate) fn is_set() -> bool {
    OBSERVER.get().is_some()
}

/// Tells the observer, if there is one. That is foreign code: whoever tells it may have been granted a range just now.
pub(crate) fn tell(what: impl FnOnce(&dyn Observer)) {
    if let Some(observer) = OBSERVER.get() {
        contain(|| what(*observer));
    }
}

/// A wait whose begin was told.
pub(crate) struct Observed {
    pub(crate) wait: Waiting,
    pub(crate) since: Instant,
}

impl Observed {
    /// Tells that it is over.
    #[cold]
    pub(crate) fn end(self, outcome: Outcome) {
        let lasted = Instant::now().saturating_duration_since(self.since);
        tell(|observer| observer.wait_ends(&self.wait, lasted, outcome));
    }
}
