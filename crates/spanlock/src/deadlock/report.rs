//! What is told.

use super::account::{Account, LockKey};
use super::monitor;
use crate::range::id::OwnerId;
use crate::range::mode::Mode;
use crate::range::shown::{HeldRange, Shown, ShownKeys};
use crate::range::span::Span;
use prim::clock::Duration;
use prim::sync::{Arc, Mutex};
use std::fmt::{self, Write};
use std::panic::Location;

/// A ring: each waits for what the next holds, and the last for what the first holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlock {
    /// Those in the ring. There is one, if it waits for itself.
    pub steps: Vec<Step>,
}

/// One in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Who waits: a thread, unless an [`Owner`](crate::range::Owner) was named.
    pub owner: OwnerId,
    /// The thread that sleeps meanwhile. `None`: it is a task's request.
    pub thread: Option<u32>,
    /// An address within the lock.
    pub lock: usize,
    /// The range that it waits for. Of a reader-writer lock: everything.
    pub span: Span,
    /// In a lock over keys, what of them it is: then `span` is everything. `None` there: the keys cannot be shown.
    pub keys: Option<ShownKeys>,
    /// How it is to hold that.
    pub mode: Mode,
    /// The line that asks for it.
    pub place: &'static Location<'static>,
    /// What the next one holds in its way.
    pub held: HeldRange,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "deadlock of {}:", self.steps.len())?;
        let nexts = self.steps.iter().cycle().skip(1);
        for (step, next) in self.steps.iter().zip(nexts) {
            step.write(f, next.owner)?;
        }
        Ok(())
    }
}

impl Step {
    /// Two lines: what it waits for, and who holds that.
    fn write(&self, f: &mut fmt::Formatter<'_>, holder: OwnerId) -> fmt::Result {
        write!(f, "  {}", self.owner)?;
        match self.thread {
            Some(thread) if self.owner != OwnerId::from(thread) => write!(f, " (thread {thread})")?,
            Some(_) => {}
            None => f.write_str(" (a task)")?,
        }
        let (asks, holds) = (self.mode.word(), self.held.mode.word());
        let (asked, held) = (Shown(self.span, self.keys), self.held.shown());
        let (lock, at) = (self.lock, self.place);
        writeln!(
            f,
            " waits for {asked} {asks} of the lock {lock:#x}, at {at}"
        )?;
        write!(f, "    which {holder} holds: {held} {holds}")?;
        match self.held.place {
            Some(place) => writeln!(f, ", locked at {place}"),
            None => writeln!(f),
        }
    }
}

impl std::error::Error for Deadlock {}

/// A task that was woken to take its range, and was not polled since. It is in nobody's way, but its range may be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotPolled {
    /// Whose request it is.
    pub owner: OwnerId,
    /// An address within the lock.
    pub lock: usize,
    /// What is asked for.
    pub span: Span,
    /// In a lock over keys, what of them it is: then `span` is everything. `None` there: the keys cannot be shown.
    pub keys: Option<ShownKeys>,
    /// How it is to be held.
    pub mode: Mode,
    /// The line that asks for it.
    pub place: &'static Location<'static>,
    /// For how long it has not been polled, at least.
    pub at_least: Duration,
}

impl fmt::Display for NotPolled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            owner,
            lock,
            span,
            keys,
            mode,
            place,
            at_least,
        } = self;
        let (asked, asks) = (Shown(*span, *keys), mode.word());
        writeln!(
            f,
            "not polled: {owner} was woken for {asked} {asks} of the lock {lock:#x}, asked for at {place}, \
             and its task was not polled for {at_least:.1?}"
        )
    }
}

/// What a look has found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// A ring. It is told once.
    Deadlock(Deadlock),
    /// A task that does not act. It is told once, until it is polled.
    NotPolled(NotPolled),
    /// An [`Owner`](crate::range::Owner) waits for what it holds itself. Another of its threads or tasks may release
    /// that, so it is no ring, and never refused. It is told once.
    OwnRange(Step),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock(deadlock) => deadlock.fmt(f),
            Self::NotPolled(task) => task.fmt(f),
            Self::OwnRange(step) => {
                writeln!(f, "an owner waits for what it holds:")?;
                step.write(f, step.owner)?;
                writeln!(
                    f,
                    "    which another of its threads or tasks releases, or nobody does"
                )
            }
        }
    }
}

type Handler = Arc<dyn Fn(&Report) + Send + Sync>;

prim::global! {
    static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);
}

/// Calls `handler` with each report from now on, instead of printing it to the standard error output.
///
/// The calls come on a thread of the library, which also ends the turns of tasks: `handler` should be short, and must
/// not wait for a range. If it panics, that report is lost.
pub fn on_report(handler: impl Fn(&Report) + Send + Sync + 'static) {
    let before = HANDLER.lock().replace(Arc::new(handler));
    drop(before);
}

pub(super) fn tell(report: &Report) {
    let handler = HANDLER.lock().clone();
    match handler {
        Some(handler) => handler(report),
        None => {
            // A timer of the program's may call on any thread.
            let _uncancelled = prim::thread::Uncancelled::new();
            eprint!("spanlock: {report}");
        }
    }
}

/// Lists the waiting requests of all locks that [look for deadlocks](super::Deadlocks), with whom they wait for: for
/// people who look at a program that stands still.
///
/// Requests come and go meanwhile. It takes the mutex of one queue after the other, so it is for a thread that a signal
/// handler has woken and not for the handler itself. Nor is it for a panic hook, where comparators or formats of
/// [keys](crate::range::keys) may panic: such a mutex may be held then. A lock that nobody waits for is not listed.
/// [`RangeLock::snapshot`](crate::range::RangeLock::snapshot) lists any one lock.
#[must_use]
pub fn dump_all() -> String {
    let mut text = String::new();
    monitor::describe(&mut text).expect("a string takes whatever is written");
    text
}

/// Writes an account for people.
pub(super) fn describe(account: &Account, text: &mut dyn Write) -> fmt::Result {
    let thread = OwnerId::from(account.thread);
    writeln!(text, "{thread} sleeps")?;
    for (what, wish) in account
        .waits
        .iter()
        .map(|wish| ("waits for", wish))
        .chain(account.holds.iter().map(|wish| ("holds", wish)))
    {
        let (mode, at) = (wish.mode.word(), wish.at);
        match wish.lock {
            LockKey::Segments(number) => {
                writeln!(
                    text,
                    "  {what} segments {} {mode} of the lock number {number}, at {at}",
                    wish.span
                )?;
            }
            #[cfg(feature = "rw")]
            LockKey::Whole(lock) => writeln!(text, "  {what} the lock {lock:#x} {mode}, at {at}")?,
        }
    }
    Ok(())
}
