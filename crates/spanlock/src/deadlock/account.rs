//! What a thread that sleeps says of itself: what it holds in locks whose words do not know their holders, and what it
//! waits for there.
//!
//! Such are segment locks and, in debug builds, reader-writer locks. A thread keeps account of its own holds. It
//! publishes the account before it sleeps, and takes it back when it wakes. A thread that has published that it waits
//! holds what it has published, since it does nothing else meanwhile.

use crate::deadlock::monitor;
use crate::range::mode::Mode;
use crate::range::span::Span;
use std::cell::Cell;
use std::panic::Location;

/// A lock that does not know its holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKey {
    /// A segment lock, by its number. Positions count segments.
    Segments(u64),
    /// A reader-writer lock, by its address. Positions stand for kinds of readers.
    #[cfg(feature = "rw")]
    Whole(usize),
}

/// What a thread holds or waits for there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) lock: LockKey,
    pub(crate) span: Span,
    pub(crate) mode: Mode,
    pub(crate) at: &'static Location<'static>,
}

impl Wish {
    /// Of a reader-writer lock, these positions.
    #[cfg(feature = "rw")]
    pub(crate) fn whole(
        lock: usize,
        (first, last, mode): (u64, u64, Mode),
        at: &'static Location<'static>,
    ) -> Self {
        Self {
            lock: LockKey::Whole(lock),
            span: Span::inclusive(first, last).expect("positions are in order"),
            mode,
            at,
        }
    }

    /// Whether this one waits for who holds that.
    pub(super) fn waits_for(&self, held: &Self) -> bool {
        let conflicts = self.mode.conflicts(held.mode) && self.span.overlaps(held.span);
        self.lock == held.lock && conflicts
    }
}

/// What a thread says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// The number of its request, which no other has, unless that stands in a queue and has a number there.
    pub(crate) number: u64,
    pub(crate) thread: u32,
    /// What it waits for, if that is in such a lock.
    pub(crate) waits: Option<Wish>,
    pub(crate) holds: Vec<Wish>,
}

/// Adds what a thread holds in some locks.
type AddHolds = fn(&mut Vec<Wish>);

prim::local! {
    /// What adds what this thread holds in reader-writer locks, once it has held one of them.
    static WHOLE: Cell<Option<AddHolds>> = Cell::new(None);
}

/// From now on `add` tells what the running thread holds in reader-writer locks.
#[cfg(feature = "rw")]
pub(crate) fn tells_whole(add: AddHolds) {
    WHOLE.with(|whole| whole.set(Some(add)));
}

/// Adds what the running thread holds in reader-writer locks.
pub(crate) fn with_whole(mut wishes: Vec<Wish>) -> Vec<Wish> {
    if let Some(add) = WHOLE.with(Cell::get) {
        add(&mut wishes);
    }
    wishes
}

/// An account that is published until this is dropped.
pub(crate) struct Published(u32);

/// Publishes an account.
#[cold] // The thread is about to sleep.
pub(crate) fn publish(account: Account) -> Published {
    let thread = account.thread;
    monitor::with_accounts(|accounts| accounts.publish(account));
    Published(thread)
}

impl Drop for Published {
    fn drop(&mut self) {
        monitor::with_accounts(|accounts| accounts.take_back(self.0));
    }
}

/// All that is published.
#[derive(Debug)]
pub(super) struct Accounts(Vec<Account>);

impl Accounts {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    fn publish(&mut self, account: Account) {
        self.0.push(account);
    }

    /// The last one of that thread.
    fn take_back(&mut self, thread: u32) {
        let is_its = |account: &Account| account.thread == thread;
        if let Some(at) = self.0.iter().rposition(is_its) {
            self.0.remove(at);
        }
    }

    pub(super) fn all(&self) -> &[Account] {
        &self.0
    }
}
