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
//! - **cancel**: a thread lists itself, or a task its waker, under the owner's mutex, before it sleeps, and does not
//!   sleep if the owner is cancelled by then. A cancellation marks the owner, and signals all that are listed, under
//!   the same mutex.

use super::id::OwnerId;
pub use super::refusal::Refusal;
use crate::deadlock::Deadlock;
use crate::range::thread;
use crate::wait::{Parker, WakerId, Wakers, Wakeups};
use prim::atomic::{AtomicU32, AtomicU64, Ordering};
use prim::sync::Mutex;
use prim::track::Track;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::task::Waker;

prim::global! {
    /// How many owners were made, and the anonymous one.
    static MADE: AtomicU32 = AtomicU32::new(1);
}

/// Somebody who holds ranges and is no thread: a transaction, a client, a request that goes from thread to thread.
///
/// What an owner holds is a [`Holding`](super::Holding), which any thread may use and drop. An owner is cheap to make:
/// one allocation. A clone is the same owner. An [anonymous](Self::anonymous) one costs nothing.
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
/// - Two owners exclude each other as two threads do. So do two `Holding`s of one owner: threads and tasks of one owner
///   wait for each other. A thread, or a task, that asks for what it has itself locked for the owner, in another
///   `Holding`, waits for itself. Debug builds panic instead where it is a thread, and a lock that
///   [looks for deadlocks](crate::deadlock) [reports](crate::deadlock::Report::OwnRange) either. What it means to lock
///   again and again it locks by one [`Reentrant`](super::Reentrant).
/// - A blocking request blocks the thread that makes it. While it waits, what the owner holds and what that thread
///   itself holds do not give way to others that wait for it.
/// - An owner may be dropped while it holds ranges: each `Holding` keeps it.
pub struct Owner(Option<NonNull<Inner>>);

/// What all clones of an owner share. It comes from a box, which the last of them frees.
struct Inner {
    id: OwnerId,
    limit: usize,
    /// How many there are that keep it, and how many ranges it holds or asks for in all locks. Together, so that one
    /// operation counts a holding and its range.
    uses: AtomicU64,
    waits: Mutex<Waits>,
    _track: Track,
}

// SAFETY: what is shared may be sent and shared, and is freed by whichever thread drops the last of its owners.
unsafe impl Send for Owner {}
// SAFETY: the same.
unsafe impl Sync for Owner {}

impl Inner {
    /// One range, in `uses`.
    const RANGE: u64 = 1;
    /// One that keeps it.
    const KEEPER: u64 = 1 << 32;
    /// Marks a number of either that is too large.
    const TOO_MANY: u64 = 1 << 31 | 1 << 63;

    /// The ranges among those uses.
    const fn ranges(uses: u64) -> usize {
        (uses % Self::KEEPER) as usize
    }

    /// Counts more uses, and returns those before.
    ///
    /// # Panics
    /// When there are two thousand million already.
    #[inline]
    fn add(&self, uses: u64) -> u64 {
        // Relaxed: who counts has the owner, and a count orders nothing else.
        let before = self.uses.fetch_add(uses, Ordering::Relaxed);
        if before & Self::TOO_MANY != 0 {
            self.uses.fetch_sub(uses, Ordering::Relaxed);
            panic!("an owner is in use {} times", Self::TOO_MANY % Self::KEEPER);
        }
        before
    }
}

/// The threads and the tasks that wait for an owner, unless it is cancelled.
struct Waits {
    cancelled: bool,
    listed: Vec<&'static Parker>,
    tasks: BTreeMap<u64, Waker>,
    /// How many tasks were listed.
    named: u64,
    /// The last deadlock for which it was refused.
    deadlock: Option<Deadlock>,
}

impl Owner {
    /// An owner that may hold any number of ranges.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An owner that may hold or ask for `limit` ranges at a time, in all locks together. A request beyond that is
    /// refused with [`Refusal::TooMany`]. What it has already is never refused: a conversion that cuts a range in
    /// pieces counts each piece, and is granted.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        // The anonymous owner's number is left out, also when the numbers begin again.
        let fresh = || MADE.fetch_add(1, Ordering::Relaxed) & OwnerId::MOST;
        let number = std::iter::repeat_with(fresh)
            .find(|&number| number != 0)
            .unwrap_or(1);
        let inner = Box::new(Inner {
            id: OwnerId::of_owner(number),
            limit,
            uses: AtomicU64::new(Inner::KEEPER),
            waits: Mutex::new(Waits {
                cancelled: false,
                listed: Vec::new(),
                tasks: BTreeMap::new(),
                named: 0,
                deadlock: None,
            }),
            _track: Track::new(),
        });
        Self(Some(NonNull::from(Box::leak(inner))))
    }

    /// Somebody else for each range. It is for holders who need no name, and costs nothing. What it holds can be sent
    /// and converted as any holding.
    ///
    /// Since nobody knows what else it holds,
    /// - it gives way to requests that wait for what it holds, and goes on when its turn comes (see
    ///   [`RangeLock`](super::RangeLock), Fairness);
    /// - a request for what it holds itself waits for ever, in debug builds as well;
    /// - it has no limit and no count, and is not cancelled;
    /// - it is not equal to any owner, nor to itself.
    #[must_use]
    pub const fn anonymous() -> Self {
        Self(None)
    }

    /// Whether it is [anonymous](Self::anonymous).
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.0.is_none()
    }

    /// Its name in reports. Names repeat after two thousand million owners.
    #[inline]
    #[must_use]
    pub fn id(&self) -> OwnerId {
        self.inner().map_or(OwnerId::ANONYMOUS, |inner| inner.id)
    }

    /// How many ranges it holds or asks for, in all locks. Pieces count. Of an anonymous one: 0.
    #[must_use]
    pub fn asks_or_holds(&self) -> usize {
        // Relaxed: a count, which orders nothing.
        let count = |inner: &Inner| Inner::ranges(inner.uses.load(Ordering::Relaxed));
        self.inner().map_or(0, count)
    }

    /// Ends all waits of this owner, now and from now on: they are refused with [`Refusal::Cancelled`]. What it holds
    /// it keeps, and a request that need not wait is granted as before. Any thread may call this. It does nothing to
    /// an anonymous owner.
    ///
    /// Costs a mutex, and a wake-up for each thread or task that waits.
    pub fn cancel(&self) {
        let Some(inner) = self.inner() else {
            return;
        };
        let (mut wakeups, mut tasks) = (Wakeups::default(), Wakers::default());
        let mut waits = inner.waits.lock();
        // [cancel] Under the mutex under which the waits are listed.
        waits.cancelled = true;
        for parker in waits.listed.drain(..) {
            if prim::intact!("cancel") {
                wakeups.signal(parker);
            }
        }
        for waker in std::mem::take(&mut waits.tasks).into_values() {
            if prim::intact!("cancel") {
                tasks.wake(Some(waker));
            }
        }
        drop(waits);
        wakeups.deliver();
        thread::call_tasks(tasks);
    }

    /// Whether it was [cancelled](Self::cancel).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let is_cancelled = |inner: &Inner| inner.waits.lock().cancelled;
        self.inner().is_some_and(is_cancelled)
    }

    /// The last deadlock because of which a request of this owner was refused, by [`Refusal::Deadlock`].
    #[must_use]
    pub fn deadlock(&self) -> Option<Deadlock> {
        self.inner()?.waits.lock().deadlock.clone()
    }

    pub(super) fn note_deadlock(&self, deadlock: Deadlock) {
        if let Some(inner) = self.inner() {
            let before = inner.waits.lock().deadlock.replace(deadlock);
            drop(before);
        }
    }

    #[inline]
    fn inner(&self) -> Option<&Inner> {
        // SAFETY: this one keeps it.
        self.0.map(|inner| unsafe { inner.as_ref() })
    }

    /// Counts one more range.
    ///
    /// # Errors
    /// It holds as many as it may.
    #[inline]
    pub(super) fn count(&self) -> Result<(), Refusal> {
        self.add(Inner::RANGE)
    }

    /// A clone, with one more range counted.
    ///
    /// # Errors
    /// It holds as many as it may.
    #[inline]
    pub(super) fn clone_counted(&self) -> Result<Self, Refusal> {
        self.add(Inner::KEEPER + Inner::RANGE)?;
        Ok(Self(self.0))
    }

    /// Counts one more range, with whatever else there is in `uses`.
    #[inline]
    fn add(&self, uses: u64) -> Result<(), Refusal> {
        let Some(inner) = self.inner() else {
            return Ok(());
        };
        if inner.limit == usize::MAX {
            inner.add(uses);
            return Ok(());
        }
        let add = |before: u64| {
            let has_room = Inner::ranges(before) < inner.limit && before & Inner::TOO_MANY == 0;
            has_room.then(|| before + uses)
        };
        // Relaxed: as in `Inner::add`. In one step: a request that is refused refuses no other.
        let added = inner
            .uses
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map(drop).map_err(|_| Refusal::TooMany)
    }

    /// Whether it may ask for `ranges` more ranges, as far as a look can tell.
    pub(super) fn has_room_for(&self, ranges: usize) -> Result<(), Refusal> {
        match self.inner() {
            Some(inner) if self.asks_or_holds() + ranges > inner.limit => Err(Refusal::TooMany),
            _ => Ok(()),
        }
    }

    /// Counts a piece of what it holds, whatever its limit.
    pub(super) fn count_piece(&self) {
        if let Some(inner) = self.inner() {
            inner.add(Inner::RANGE);
        }
    }

    /// Counts one less.
    pub(super) fn uncount(&self) {
        if let Some(inner) = self.inner() {
            inner.uses.fetch_sub(Inner::RANGE, Ordering::Relaxed);
        }
    }

    /// Drops it, and counts `ranges` ranges less.
    #[inline]
    pub(super) fn drop_counted(mut self, ranges: usize) {
        if let Some(inner) = self.0.take() {
            // SAFETY: this one has kept it so far.
            unsafe { Self::leave(inner, Inner::KEEPER + Inner::RANGE * ranges as u64) };
        }
    }

    /// Ends some uses, and frees it if nobody keeps it any more.
    ///
    /// # Safety
    /// One that kept it is among those uses.
    #[inline]
    unsafe fn leave(inner: NonNull<Inner>, uses: u64) {
        // SAFETY: it was kept so far, and is until its last use has ended.
        let counted = unsafe { &inner.as_ref().uses };
        // Release: what this one did with it comes before it is freed.
        let before = counted.fetch_sub(uses, Ordering::Release);
        if before < uses + Inner::KEEPER {
            // Acquire: what the others did comes before. It is a load, since the thread sanitizer does not know fences.
            counted.load(Ordering::Acquire);
            // SAFETY: it comes from a box, and nobody keeps it any more.
            drop(unsafe { Box::from_raw(inner.as_ptr()) });
        }
    }

    /// Lists a thread that is about to sleep for the owner. `None`: the owner is cancelled.
    pub(super) fn list(&self, parker: &'static Parker) -> Option<Listed<'_>> {
        if let Some(inner) = self.inner() {
            let mut waits = inner.waits.lock();
            // [cancel] Under the mutex under which the owner is marked.
            if waits.cancelled && prim::intact!("cancel") {
                return None;
            }
            waits.listed.push(parker);
        }
        Some(Listed {
            owner: self,
            parker,
        })
    }
}

impl Owner {
    /// Lists a task that is about to sleep for the owner, or its new waker. `false`: the owner is cancelled.
    pub(super) fn list_task(&self, listed: &mut Option<ListedTask>, waker: &Waker) -> bool {
        let Some(inner) = self.inner() else {
            return true;
        };
        if listed.is_some_and(|listed| listed.waker == WakerId::of(waker)) {
            return !self.is_cancelled() || !prim::intact!("cancel");
        }
        // Foreign code: not under the mutex.
        let fresh = waker.clone();
        let mut waits = inner.waits.lock();
        // [cancel] Under the mutex under which the owner is marked.
        if waits.cancelled && prim::intact!("cancel") {
            drop(waits);
            thread::discard(Some(fresh));
            return false;
        }
        let name = match listed {
            Some(listed) => listed.name,
            None => {
                waits.named += 1;
                waits.named
            }
        };
        let waker = WakerId::of(&fresh);
        let old = waits.tasks.insert(name, fresh);
        *listed = Some(ListedTask { name, waker });
        drop(waits);
        thread::discard(old);
        true
    }

    /// Ends a listing.
    pub(super) fn unlist(&self, listed: Option<ListedTask>) {
        let (Some(listed), Some(inner)) = (listed, self.inner()) else {
            return;
        };
        let mut waits = inner.waits.lock();
        let old = waits.tasks.remove(&listed.name);
        drop(waits);
        thread::discard(old);
    }
}

/// Where an owner lists a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListedTask {
    name: u64,
    /// The one that is listed, which is a clone of the task's.
    waker: WakerId,
}

/// A thread that sleeps for an owner.
pub(super) struct Listed<'a> {
    owner: &'a Owner,
    parker: &'static Parker,
}

impl Listed<'_> {
    /// Ends the listing, and says whether the owner was cancelled meanwhile.
    pub(super) fn was_cancelled(self) -> bool {
        let Some(inner) = self.owner.inner() else {
            return false;
        };
        let mut waits = inner.waits.lock();
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
        self.0.is_some() && self.0 == other.0
    }
}

impl Clone for Owner {
    fn clone(&self) -> Self {
        if let Some(inner) = self.inner() {
            inner.add(Inner::KEEPER);
        }
        Self(self.0)
    }
}

impl Drop for Owner {
    #[inline]
    fn drop(&mut self) {
        if let Some(inner) = self.0 {
            // SAFETY: this one has kept it so far.
            unsafe { Self::leave(inner, Inner::KEEPER) };
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("id", &self.id())
            .field("asks_or_holds", &self.asks_or_holds())
            .finish_non_exhaustive()
    }
}
