//! The typed reader-writer range lock.

use super::guard::{Guards, ReadGuard, WriteGuard};
use super::holding::{self, By, Holding, Lock, LockBy, TryLock, places};
use super::inspect::Snapshot;
use super::many::{self, Exclusive, Shared};
use super::methods::{for_tasks, granted, many_ranges, one_range, over_raw_lock};
use super::owner::Owner;
use super::raw::{Mode, RawOwned, RawRangeLock, Wait};
use super::slots::{Builder, RawSlots};
use prim::clock::{Duration, Instant};
use prim::sync::Arc;
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
/// - Many ranges are always held at a time, by many threads: a [skip list](super::skip) has nothing else to look at.
/// - A request may wait for hours for a range that is not released. Requests that overlap it are then delayed, in the
///   end for hours as well. Use the timed forms.
/// - The code is a global allocator. Some acquisitions allocate: a thread's first ones, those that sleep, and those
///   with which the lock grows.
/// - The protected code is a slice of your own: [`RangeLocked`](super::RangeLocked) lends it without `unsafe`.
///
/// # Cost
/// Uncontended, one compare-exchange to acquire and one to release; no allocation once the thread is warm and
/// no system call. When threads meet, the lock gets a slot for each: from then on, one atomic operation on the thread's
/// own line to acquire, a look at the slot of each other thread, and one atomic operation to release. Where ranges are
/// narrow and far apart, an acquisition takes two atomic operations and no look at other threads. A thread may hold any
/// number of ranges: beyond some dozens they are in a skip list, and one more costs a logarithmic search.
///
/// Memory: the lock itself is one cache line. [`RawSlots`](super::slots::RawSlots) says what comes with slots.
///
/// Before threads have met, each range held takes one cache line, from a pool of 8 KiB for each thread.
///
/// # Fairness
/// A request gets a *reservation* when it goes to sleep behind a reader, or behind a writer of only a part of its
/// range: others could come in beside that one, one after another, while it sleeps. Behind a writer of all of its
/// range it gets one when it finds the range taken again after a millisecond of waiting. Later requests that conflict
/// with a reservation give way. A thread that holds some of what a reservation asks for does not, because the
/// reservation waits for that thread. Giving way is limited in time: the reservation may wait for a holder that joins
/// the thread which gives way, or for a holder that wants a mutex of that thread. So reservations are in force for two
/// turns and suspended for one:
///
/// - The first turn lasts 10 ms. The three turns of each round are twice as long as those of the round before. Each
///   reservation has turns of its own, and a request gives way to one of them at a time. In the second turn of a round
///   only requests that have not waited yet give way.
/// - *A free range* is granted after one turn at most, and one more turn for each request ahead that gives up
///   meanwhile. A turn is 10 ms or as long as that reservation is old, whichever is more. A computation that a holder
///   waits for takes about three times as long while a request waits for the holder. It takes longer if waiting
///   requests give up and ask again, or if its ranges belong to several reservations of different ages.
/// - *A reservation gets its range* during the first turn that is longer than the critical sections in its way. If each
///   of them ends within `h`, the first reservation is granted after a millisecond and eight times `h` at most (twice
///   `h`, if that is less than 10 ms), whatever its holder holds elsewhere. Requests that were asleep before it may go
///   first.
/// - *Reservations are granted together.* While some are in force no other is granted, and then none is granted for as
///   long as the last one lasted. Each of these two pauses is a millisecond at most. Then the next request that asks
///   gets one, and so do all that have asked meanwhile. So where critical sections are short, reservations are in force
///   for half of the time at most.
/// - A thread that never releases all that another asks for starves the other, in this lock as in any. Threads that
///   acquire ranges of this lock and a mutex, or another lock, in both orders may starve others, too: while they wait
///   for each other's turns to end, their critical sections last longer.
///
/// [`builder`](Self::builder) has other policies. They set the millisecond. Without fairness no request gives way.
///
/// # Blocking, panics, misuse
/// - Acquisitions spin before they sleep: for about as long as it takes to sleep and be woken (16 us), and for about a
///   microsecond if longer spins were in vain. They sleep at once while threads that this lock has woken wait for
///   processors. Releases never block.
/// - A release wakes whoever can have the range now, and one more. So who sleeps does not depend on one woken thread,
///   which may not run for a time slice while those that run take the range again and again.
/// - A try does not wait for a holder, nor for a writer that awaits some of the range. For a request that is about to
///   hold some of it or to withdraw it spins, at most 128 us in all, and then counts it as a holder. So a free range
///   may be refused if the thread of such a request does not run just then. A try that a holder refuses for as long as
///   it lasts is in nobody's way. A call for several ranges may be: it holds those that it has until it meets one that
///   is taken.
/// - A range that starts after it ends panics. An empty range is granted at once and conflicts with nothing.
/// - A thread that asks for what it holds itself waits forever, as with a mutex. Debug builds panic instead, at the
///   caller's line, and name the range that is held and the line that locked it. Threads and owners that wait for each
///   other are reported if the lock is told to [look for that](crate::deadlock).
/// - A panic while a guard lives releases its range, and there is no poisoning. A leaked guard leaves its range
///   locked and harms nothing else.
/// - In a thread-local that is destroyed after the library's own, the lock does not know what the thread holds. The
///   thread may have to give way, for a time, to a request that waits for it.
/// - Not for signal handlers: a handler that interrupts an acquisition or a release must not acquire.
/// - After `fork`, the lock does not know what the child's thread held before. The thread may have to give way, for a
///   time, to a request that waits for it.
/// - After `fork`, ranges that other threads held or were asking for stay locked in the child. A lock in which another
///   thread was just going to sleep or waking others must not be used there; any other lock can.
///
/// # Source
/// The default is the [slot lock](super::slots), which begins as the list lock of *Scalable Range Locks for Scalable
/// Address Spaces and Beyond* (Kogan, Dice and Issa, EuroSys 2020, §4), corrected: see [`list`](super::list).
#[derive(Default)]
pub struct RangeLock<L: RawRangeLock = RawSlots> {
    raw: L,
}

over_raw_lock! {
    RangeLock over RawRangeLock, by default RawSlots, built by Builder;
    Shared as ReadGuard: read_within, read_many_within;
    Exclusive as WriteGuard: write_within, write_many_within;
}

impl<L: RawOwned> RangeLock<L> {
    /// This lock as `owner` sees it: what is acquired by the result is held by the owner, and not by the thread.
    pub fn by<'o>(&self, owner: &'o Owner) -> By<'o, &Self> {
        By::new(self, owner)
    }

    /// As [`by`](Self::by), where what is held is to keep the lock.
    pub fn by_arc<'o>(self: &Arc<Self>, owner: &'o Owner) -> By<'o, Arc<Self>> {
        By::new(Arc::clone(self), owner)
    }

    one_range! {
        owned range of u64, by read_owned_within, as Holding<Arc<Self>>;
        panics "When the range is reversed.";
        refused "because a writer holds or awaits some of it";
        /// As [`read`](Self::read), where what is held keeps the lock, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it exclusively.
        read_owned, try_read_owned, try_read_owned_for, try_read_owned_until
    }

    one_range! {
        owned range of u64, by write_owned_within, as Holding<Arc<Self>>;
        panics "When the range is reversed.";
        refused "because another request holds some of it, or a writer awaits it";
        /// As [`write`](Self::write), where what is held keeps the lock, and may go to another thread: its owner is
        /// [anonymous](Owner::anonymous).
        ///
        /// ```
        /// use spanlock::range::RangeLock;
        /// use std::sync::Arc;
        ///
        /// let file = Arc::new(RangeLock::new());
        /// let held = file.write_owned(0..4096);
        /// std::thread::spawn(move || drop(held)).join().expect("it releases");
        /// assert!(file.try_write(..).is_some());
        /// ```
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it.
        write_owned, try_write_owned, try_write_owned_for, try_write_owned_until
    }

    #[track_caller]
    fn read_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<u64>,
        wait: Wait,
    ) -> Option<Holding<Arc<Self>>> {
        let (lock, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = Holding::acquire(lock, &anonymous, range, Mode::Shared, wait);
        holding::of_anonymous(held, wait)
    }

    #[track_caller]
    fn write_owned_within(
        self: &Arc<Self>,
        range: impl RangeBounds<u64>,
        wait: Wait,
    ) -> Option<Holding<Arc<Self>>> {
        let (lock, anonymous) = (Arc::clone(self), Owner::anonymous());
        let held = Holding::acquire(lock, &anonymous, range, Mode::Exclusive, wait);
        holding::of_anonymous(held, wait)
    }
}

impl<L: RawRangeLock> RangeLock<L> {
    one_range! {
        range of u64, by read_within, as ReadGuard<'_, L>;
        panics "When the range is reversed.";
        refused "because a writer holds or awaits some of it";
        /// Locks a range with other readers; blocks while a writer holds any of it.
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it exclusively.
        read, try_read, try_read_for, try_read_until
    }

    one_range! {
        range of u64, by write_within, as WriteGuard<'_, L>;
        panics "When the range is reversed.";
        refused "because another request holds some of it, or a writer awaits it";
        /// Locks a range alone; blocks while any other request holds any of it.
        ///
        /// # Panics
        /// When the range is reversed; in debug builds, when this thread holds some of it.
        write, try_write, try_write_for, try_write_until
    }

    many_ranges! {
        of u64, by read_many_within, as ReadGuard<'_, L>;
        does "Locks several ranges with other readers.";
        panics "When a range is reversed; in debug builds, when this thread holds some of them exclusively.";
        read_many, try_read_many, try_read_many_for
    }

    many_ranges! {
        of u64, by write_many_within, as WriteGuard<'_, L>;
        does "Locks several ranges alone.";
        panics "When a range is reversed; in debug builds, when this thread holds some of them.";
        /// ```
        /// # use spanlock::range::RangeLock;
        /// let accounts = RangeLock::new();
        /// let (from, to) = (17, 4);
        /// let transfer = accounts.write_many([from..=from, to..=to]);
        /// # drop(transfer);
        /// ```
        write_many, try_write_many, try_write_many_for
    }
}

places!(RangeLock over RawOwned, shared);

impl<L: RawOwned> RangeLock<L> {
    for_tasks! {
        u64, Shared;
        /// As [`read`](Self::read), for a task: a future, which waits without blocking a thread. What is held may be
        /// sent to other threads.
        ///
        /// ```
        /// use spanlock::range::RangeLock;
        ///
        /// static FILE: RangeLock = RangeLock::new();
        ///
        /// async fn serve() {
        ///     let head = FILE.read_async(0..4096).await;
        ///     // Reads, and awaits what it likes.
        ///     drop(head);
        /// }
        /// # fn is_send(_: impl Send) {}
        /// # is_send(serve());
        /// ```
        ///
        /// A guard of a thread is not sent, so a task that keeps one while it awaits cannot be spawned where tasks go
        /// from thread to thread:
        ///
        /// ```compile_fail,E0277
        /// # use spanlock::range::RangeLock;
        /// # static FILE: RangeLock = RangeLock::new();
        /// fn spawn(task: impl Future<Output = ()> + Send) {}
        ///
        /// spawn(async {
        ///     let head = FILE.read(0..4096);
        ///     std::future::ready(()).await;
        ///     drop(head);
        /// });
        /// ```
        ///
        /// # Panics
        /// When the range is reversed.
        read_async, try_read_async_for; read_owned_async, try_read_owned_async_for
    }

    for_tasks! {
        u64, Exclusive;
        /// As [`write`](Self::write), for a task: see [`read_async`](Self::read_async).
        ///
        /// # Panics
        /// When the range is reversed.
        write_async, try_write_async_for; write_owned_async, try_write_owned_async_for
    }
}
