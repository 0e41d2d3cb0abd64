//! The typed reader-writer range lock.

use super::guard::{Guards, Held, ReadGuard, WriteGuard};
use super::inspect::Snapshot;
use super::list::{Builder, ListRw, SharedExclusive};
use super::many;
use super::raw::{RawRangeLock, Wait};
use super::span::Span;
use prim::clock::{Duration, Instant};
use std::fmt;
use std::ops::RangeBounds;

/// A reader-writer lock for ranges of one resource.
///
/// Threads lock ranges of positions (bytes, pages, slots, keys: the unit is yours). Two holders exclude each other
/// only if their ranges overlap and at least one of them writes. Positions are all of `0..=u64::MAX`.
///
/// ```
/// use spanlock::range::RangeLock;
///
/// static FILE: RangeLock = RangeLock::new();
///
/// let head = FILE.write(0..4096);
/// let tail = FILE.write(4096..); // Disjoint: both are held.
/// assert!(FILE.try_read(100..200).is_none());
/// drop(head);
/// assert!(FILE.try_read(100..200).is_some());
/// # drop(tail);
/// ```
///
/// # When not to use it
/// - All requests are for the whole resource: a plain `RwLock` is as fast and smaller.
/// - Hundreds of ranges are held at a time: an acquisition walks past those that start before it.
/// - Somebody waits, for hours, for a range that is never released: others who want some of it are delayed, in the end
///   for hours too. Use the timed forms.
/// - The code is a global allocator: a thread's first acquisitions, and those that sleep, allocate.
/// - The protected code is a slice of your own: [`RangeLocked`](super::RangeLocked) lends it without `unsafe`.
///
/// # Cost
/// Uncontended, one compare-exchange to acquire and one to release; no allocation once a thread is warm and no
/// system call. Otherwise a walk over the ranges held, one compare-exchange, and for a writer a second walk; one
/// atomic operation to release. Memory: the lock itself, and one cache line per range held, from a pool of 8 KiB
/// per thread. A released range keeps its cache line until somebody walks past or sweeps the list: a thread that has to
/// allocate does so within its next acquisitions. What is kept so in one lock is, for each thread that uses it, on average
/// no more than a few hundred lines and one for each range that was held when the thread last swept; more, if the thread
/// rarely uses that lock among others.
///
/// # Fairness
/// A request that finds its range taken again after a millisecond of waiting has a *claim*: later ones that conflict with
/// it give way. A thread that holds some of what a claim asks for does not, since the claim waits for that thread. Giving
/// way is limited in time, because the claim may also wait for a holder that joins the thread which gives way, or that
/// wants a mutex which this thread holds. So claims are in force for two turns and suspended for one:
///
/// - The first turn lasts 10 ms; the three turns of each round are twice as long as those of the round before. Claims whose
///   ranges are connected share their turns, which are counted from the first of these claims that still waits.
/// - *A free range* is granted after one turn at most, which is 10 ms or as long as that claim is old, whichever is
///   more, and one more for each request ahead that gives up meanwhile. A computation that a holder waits for takes about
///   three times as long while somebody waits for the holder; longer, if those who wait give up and ask again, or if its
///   ranges are those of several claims that are not connected.
/// - *A request gets in* during the first turn that is longer than those in its way stay. If each of them leaves within `h`
///   of its own, the first claim is granted after a millisecond and eight times `h` at most (twice `h`, if that is
///   less than 10 ms), whatever they hold elsewhere; then comes the next. Requests that were asleep before it may go first.
/// - A thread that never lets go of all that another asks for starves it, in this lock as in any. So may threads that
///   acquire ranges of this lock and a mutex, or another lock, in both orders: those who wait for each other's turns to end
///   stay for longer than they would alone.
///
/// [`builder`](Self::builder) has other policies; without fairness nobody gives way.
///
/// # Blocking, panics, misuse
/// - Acquisitions spin for about a microsecond and then sleep. Releases never block.
/// - A range that starts after it ends panics; an empty one is granted at once and conflicts with nothing.
/// - A thread that asks for what it holds itself waits forever, as with a mutex; debug builds panic instead, at the
///   caller's line, and say which range is held and where it was locked.
/// - A panic while a guard lives releases its range, and there is no poisoning. A leaked guard leaves its range
///   locked and harms nothing else.
/// - In a thread-local that is destroyed after the library's own, what the thread holds is not known: it may have to
///   give way, for a time, to a request that waits for it.
/// - Not for signal handlers: one that interrupts an acquisition must not acquire.
/// - After `fork`, the child's thread is not known to hold what it held before: it may have to give way to one that waits
///   for that.
/// - After `fork`, ranges held by other threads stay locked in the child, and a lock that another thread was just
///   sleeping in or waking from must not be used there; any other lock can.
///
/// # Source
/// The default is the list lock of P1 §4 (Kogan, Dice, Issa, EuroSys 2020), mended: see [`list`](super::list).
#[derive(Default)]
pub struct RangeLock<L: RawRangeLock = ListRw> {
    raw: L,
}

impl RangeLock {
    prim::const_fn! {
        /// A lock with nothing held.
        #[must_use]
        pub const fn new() -> Self {
            Self { raw: ListRw::new() }
        }
    }

    /// Begins a lock with another policy; [`Builder::build`] makes it, [`from_raw`](Self::from_raw) types it.
    pub const fn builder() -> Builder<SharedExclusive> {
        ListRw::builder()
    }
}

impl<L: RawRangeLock> RangeLock<L> {
    /// The typed face of a raw lock.
    #[must_use]
    pub const fn from_raw(raw: L) -> Self {
        Self { raw }
    }

    /// The raw lock.
    #[must_use]
    pub const fn raw(&self) -> &L {
        &self.raw
    }

    /// Locks a range with other readers; blocks while a writer holds any of it.
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread holds some of it exclusively.
    #[inline]
    #[track_caller]
    pub fn read(&self, range: impl RangeBounds<u64>) -> ReadGuard<'_, L> {
        granted(self.read_within(range, Wait::Forever))
    }

    /// Locks a range alone; blocks while anybody holds any of it.
    ///
    /// # Panics
    /// When the range is reversed; in debug builds, when this thread holds some of it.
    #[inline]
    #[track_caller]
    pub fn write(&self, range: impl RangeBounds<u64>) -> WriteGuard<'_, L> {
        granted(self.write_within(range, Wait::Forever))
    }

    /// As [`read`](Self::read), but `None` if it would block: a writer holds some of it, or has waited too long
    /// for some of it.
    ///
    /// # Panics
    /// When the range is reversed.
    #[inline]
    #[track_caller]
    pub fn try_read(&self, range: impl RangeBounds<u64>) -> Option<ReadGuard<'_, L>> {
        self.read_within(range, Wait::Never)
    }

    /// As [`write`](Self::write), but `None` if it would block: somebody holds some of it, or has waited too long
    /// for some of it.
    ///
    /// # Panics
    /// When the range is reversed.
    #[inline]
    #[track_caller]
    pub fn try_write(&self, range: impl RangeBounds<u64>) -> Option<WriteGuard<'_, L>> {
        self.write_within(range, Wait::Never)
    }

    /// As [`read`](Self::read), but `None` after `timeout`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_read_for(
        &self,
        range: impl RangeBounds<u64>,
        timeout: Duration,
    ) -> Option<ReadGuard<'_, L>> {
        self.read_within(range, Wait::at_most(timeout))
    }

    /// As [`write`](Self::write), but `None` after `timeout`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write_for(
        &self,
        range: impl RangeBounds<u64>,
        timeout: Duration,
    ) -> Option<WriteGuard<'_, L>> {
        self.write_within(range, Wait::at_most(timeout))
    }

    /// As [`read`](Self::read), but `None` at `deadline`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_read_until(
        &self,
        range: impl RangeBounds<u64>,
        deadline: Instant,
    ) -> Option<ReadGuard<'_, L>> {
        self.read_within(range, Wait::Until(deadline))
    }

    /// As [`write`](Self::write), but `None` at `deadline`.
    ///
    /// # Panics
    /// When the range is reversed.
    #[track_caller]
    pub fn try_write_until(
        &self,
        range: impl RangeBounds<u64>,
        deadline: Instant,
    ) -> Option<WriteGuard<'_, L>> {
        self.write_within(range, Wait::Until(deadline))
    }

    /// Locks several ranges with other readers: all or none. Ranges that overlap or touch count as one.
    ///
    /// Does not deadlock with other calls that lock many, whatever their order, as long as the raw lock lets a thread
    /// that holds something pass requests that wait, as all of this library do. A thread that holds other ranges while
    /// it calls this answers for the order itself, as with any lock.
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when this thread holds some of them exclusively.
    #[track_caller]
    pub fn read_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Guards<ReadGuard<'_, L>> {
        granted(self.read_many_within(ranges, Wait::Forever))
    }

    /// Locks several ranges alone: all or none. Ranges that overlap or touch count as one.
    ///
    /// ```
    /// # use spanlock::range::RangeLock;
    /// let accounts = RangeLock::new();
    /// let (from, to) = (17, 4);
    /// let transfer = accounts.write_many([from..=from, to..=to]);
    /// # drop(transfer);
    /// ```
    ///
    /// Does not deadlock with other calls that lock many, whatever their order, as long as the raw lock lets a thread
    /// that holds something pass requests that wait, as all of this library do. A thread that holds other ranges while
    /// it calls this answers for the order itself, as with any lock.
    ///
    /// # Panics
    /// When a range is reversed; in debug builds, when this thread holds some of them.
    #[track_caller]
    pub fn write_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Guards<WriteGuard<'_, L>> {
        granted(self.write_many_within(ranges, Wait::Forever))
    }

    /// As [`read_many`](Self::read_many), but `None` if it would block.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_read_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Option<Guards<ReadGuard<'_, L>>> {
        self.read_many_within(ranges, Wait::Never)
    }

    /// As [`write_many`](Self::write_many), but `None` if it would block.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_write_many<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Option<Guards<WriteGuard<'_, L>>> {
        self.write_many_within(ranges, Wait::Never)
    }

    /// As [`read_many`](Self::read_many), but `None` after `timeout`.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_read_many_for<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        timeout: Duration,
    ) -> Option<Guards<ReadGuard<'_, L>>> {
        self.read_many_within(ranges, Wait::at_most(timeout))
    }

    /// As [`write_many`](Self::write_many), but `None` after `timeout`.
    ///
    /// # Panics
    /// When a range is reversed.
    #[track_caller]
    pub fn try_write_many_for<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        timeout: Duration,
    ) -> Option<Guards<WriteGuard<'_, L>>> {
        self.write_many_within(ranges, Wait::at_most(timeout))
    }

    /// Who holds and who waits, for people who look for a hang; nothing, if the lock cannot tell.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.raw.snapshot().unwrap_or_default()
    }

    #[inline]
    #[track_caller]
    pub(super) fn read_within(
        &self,
        range: impl RangeBounds<u64>,
        wait: Wait,
    ) -> Option<ReadGuard<'_, L>> {
        let token = match Span::of(range) {
            Some(span) => Some(self.raw.lock_shared(span, wait)?),
            None => None,
        };
        Some(ReadGuard::new(Held::new(&self.raw, token)))
    }

    #[inline]
    #[track_caller]
    pub(super) fn write_within(
        &self,
        range: impl RangeBounds<u64>,
        wait: Wait,
    ) -> Option<WriteGuard<'_, L>> {
        let token = match Span::of(range) {
            Some(span) => Some(self.raw.lock_exclusive(span, wait)?),
            None => None,
        };
        Some(WriteGuard::new(Held::new(&self.raw, token)))
    }

    #[track_caller]
    fn read_many_within<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
    ) -> Option<Guards<ReadGuard<'_, L>>> {
        let spans = many::arrange(&self.raw, ranges);
        let held = many::acquire(many::Shared, &self.raw, &spans, wait)?;
        Some(Guards::new(held.into_iter().map(ReadGuard::new).collect()))
    }

    #[track_caller]
    fn write_many_within<R: RangeBounds<u64>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
        wait: Wait,
    ) -> Option<Guards<WriteGuard<'_, L>>> {
        let spans = many::arrange(&self.raw, ranges);
        let held = many::acquire(many::Exclusive, &self.raw, &spans, wait)?;
        Some(Guards::new(held.into_iter().map(WriteGuard::new).collect()))
    }
}

impl<L: RawRangeLock> fmt::Debug for RangeLock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            holders, waiters, ..
        } = self.snapshot();
        f.debug_struct("RangeLock")
            .field("holders", &holders)
            .field("waiters", &waiters)
            .finish()
    }
}

/// What a wait without end was granted.
#[inline]
pub(super) fn granted<G>(guard: Option<G>) -> G {
    guard.expect("a request that waits forever is granted")
}
