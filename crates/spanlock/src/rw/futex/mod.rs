//! A reader-writer lock of two words that sleeps in the kernel: the lock under [`RwLock`](super::RwLock).
//!
//! Threads enter and leave by atomic operations on the word `state`. A thread that cannot enter spins briefly, marks
//! the word, and sleeps: a reader on `state` itself, a writer on the word `signals`, which counts the wake-ups of
//! writers.
//!
//! ```text
//!   state     bit 31       30          29         28         27                      0
//!            +--------+----------+----------+------------+----------------------------+
//!            | WRITER | WRITER_  | READER_  | UPGRADABLE |     number of readers      |
//!            |        | WAITS    | WAITS    |            |                            |
//!            +--------+----------+----------+------------+----------------------------+
//!
//!   signals   bit 31                 24 23                                           0
//!            +-------------------------+----------------------------------------------+
//!            | forks of the process    |           wake-ups of writers                |
//!            +-------------------------+----------------------------------------------+
//! ```
//!
//! | state | held by | a reader enters | a writer enters |
//! |---|---|---|---|
//! | 0 | nobody | yes | yes |
//! | n readers | n readers | yes | no |
//! | n readers, `WRITER_WAITS` | n readers | only if readers do not give way | no |
//! | `UPGRADABLE`, n readers | n + 1 readers; one may become the writer | yes, but no second upgradable one | no |
//! | `WRITER` | a writer | no | no |
//! | `WRITER`, n readers | a writer; n readers are backing out | no | no |
//!
//! A reader enters *optimistically*: it adds itself to the count first, and checks the state that it found then. If
//! that state does not admit it, it *backs out*: it leaves as any reader does, and waits.
//!
//! # Falling asleep and waking
//!
//! ```text
//!   writer that cannot enter                    thread that leaves
//!   ------------------------                    ------------------
//!   s := signals                                state := without its hold
//!   state |= WRITER_WAITS     (futex-mark)      WRITER_WAITS in what state was?
//!   lock free after all?                          yes: clear the mark, if it is to go
//!     yes: try to enter again                          signals += 1   (futex-signal)
//!     no:  sleep while signals = s                     wake a writer
//! ```
//!
//! Both sides change `state` by read-modify-writes, which have one order. If the mark is first, the thread that leaves
//! observes it. If the departure is first, the writer observes a free lock and does not sleep.
//!
//! Rules:
//!
//! 1. A writer that is about to sleep sets `WRITER_WAITS`. A writer that has slept sets the mark again when it enters,
//!    because others may still sleep (**futex-conservative**). So either the mark is set while a writer sleeps, or a
//!    thread is awake that will wake it.
//! 2. The last reader that leaves wakes one writer (**futex-last-reader**). If readers give way to waiting writers the
//!    mark stays, and holds readers back until a writer has been inside, or until 4 or 5 clears it. Otherwise, and in
//!    `anonymous.rs`, the reader clears the mark, and the readers that leave until that writer is awake wake nobody.
//!    Readers that sleep stay asleep. The writer that was woken, or one that got in before it, wakes them when it
//!    leaves.
//! 3. A writer that leaves or downgrades clears both marks and wakes all readers and one writer.
//! 4. A writer that gives up may be the one that 2 or 3 woke. It does as in 3 (**futex-pass-on**).
//! 5. An upgradable reader waits, when it upgrades, as a writer, and is the only thread that a departure may let in. So
//!    while there is one, all writers are woken where 2 or 3 wakes one (**futex-wake-upgrader**). When it leaves or
//!    becomes a plain reader, all are woken as in 3, because others may wait to be upgradable
//!    (**futex-next-upgradable**). But if readers give way to waiting writers and one waits, that one is next. It is
//!    woken if no reader is left (**futex-writer-next**), and otherwise by the last as in 2. Those who wait to be
//!    upgradable are woken when it leaves. Otherwise they would come before it again and again.
//! 6. A reader that backs out leaves as in 2 (**futex-back-out**): a writer may have observed it in the count and gone
//!    to sleep. If a writer is inside, that writer wakes the sleepers.
//! 7. A reader in a forked child that finds the mark of a writer of the parent does as in 4 (`forked.rs`).
//!
//! # Memory ordering
//!
//! - **futex-enter-shared**, **futex-enter-exclusive**, **futex-enter-upgradable**: Acquire by a thread that enters.
//!   **futex-leave-shared**, **futex-leave-exclusive**, **futex-leave-upgradable**, **futex-downgrade**: Release by a
//!   thread that leaves or downgrades. They order critical sections.
//! - **futex-mark**: a writer marks the word, and sleeps only if the lock was not free then.
//! - **futex-signal**: a thread that wakes writers changes `signals` first. A writer that is about to sleep by the old
//!   value does not fall asleep.
//! - **futex-downgrade-wake**: rule 3 for a downgrade.

use super::raw::{ThreadBound, raw_rwlock};
use super::watch;
use crate::wait::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex::{self, Woken};
use prim::spin::{self, Spin};
use std::fmt;
use std::marker::PhantomData;

mod anonymous;
mod forked;
mod preference;
mod state;
#[cfg(test)]
mod tests;
mod upgrade;
pub use preference::{GiveWay, Preference, ReadersFirst, WritersFirst};
use state::{MOST_READERS, READER_WAITS, Reader, State, UPGRADABLE, WRITER, WRITER_WAITS};

/// A reader-writer lock of two words.
///
/// - **Size**: 8 bytes.
/// - **Cost**: one atomic operation to acquire and one to release, two more for a reader that finds a writer in its
///   way, and a system call to sleep and one to wake.
/// - **Fairness**: [`WritersFirst`] holds readers back while a writer waits. When a writer leaves, the readers that
///   wait compete with other writers, and when an upgradable reader leaves, a writer that waits goes first. There is no
///   order among writers. [`ReadersFirst`] starves writers while readers keep coming.
/// - **Downgrade**: no writer gets in between. It wakes all readers that wait, and a writer. Under [`ReadersFirst`] the
///   readers get in. Under [`WritersFirst`] it is a toss: if that writer is the first to mark the lock, they wait for
///   it, and it waits for the reader that was the writer. So who has downgraded must not wait for a reader that came
///   before, nor for one that comes.
/// - **Recursion**: under [`ReadersFirst`] a thread that reads may read again. Under [`WritersFirst`] it may wait for a
///   writer that waits for it, unless it asks by [`ReadRecursive`](super::ReadRecursive).
/// - **Upgrade**: one reader at a time may be upgradable, beside plain readers. To upgrade, it waits for those as a
///   writer.
/// - **Limits**: when 2^27 readers hold the lock, the next one waits. A reader that finds a writer in its way is
///   counted for a moment. Just then the lock seems held, and a try to write or to upgrade, or a timed one, may fail
///   although nobody holds the lock.
/// - **Not for** many processors that read often, which compete for the word: put [`Bravo`](super::Bravo) around it.
/// - **Threads**: guards stay on their threads, but for those of [`SendGuards`](crate::rw::SendGuards).
///
/// Source: our own, after the futex locks in use everywhere since Drepper's *Futexes are Tricky* (2004).
#[repr(C)] // The layout does not depend on the preference, which is no data: see `preferring`.
pub struct FutexRwLock<P: Preference = WritersFirst> {
    state: AtomicU32,
    /// Counts the wake-ups of writers. `forked.rs` uses the upper bits.
    signals: AtomicU32,
    _preference: PhantomData<P>,
}

/// Whether a writer has slept on this acquisition: then others may still sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slept {
    No,
    Yes,
}

impl<P: Preference> FutexRwLock<P> {
    prim::const_fn! {
        /// A lock that nobody holds.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                signals: AtomicU32::new(0),
                _preference: PhantomData,
            }
        }
    }

    /// This lock, seen as one with another preference.
    #[inline]
    #[must_use]
    pub fn preferring<Q: Preference>(&self) -> &FutexRwLock<Q> {
        // SAFETY: both types are `repr(C)` with the same fields; the preference is a `PhantomData` of no size.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    /// Whether as many readers are inside as can be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.state().readers() >= MOST_READERS
    }

    /// Whether the count of readers is not zero.
    pub(super) fn is_read(&self) -> bool {
        self.state().readers() > 0
    }

    fn state(&self) -> State {
        State(self.state.load(Ordering::Relaxed))
    }

    fn is_locked(&self) -> bool {
        self.state().holders() != State::FREE
    }

    fn is_locked_exclusive(&self) -> bool {
        self.state().is_written()
    }

    #[inline]
    pub(super) fn read(&self, wait: Wait) -> Option<ThreadBound> {
        match wait {
            Wait::Forever => match self.try_count_reader() {
                Ok(()) => Some(ThreadBound::new()),
                Err(_) => self.read_after_backing_out(),
            },
            Wait::Never | Wait::Until(_) => {
                self.read_or_back_out(wait, || self.leave_shared(ThreadBound::new()))
            }
        }
    }

    #[inline(never)] // Inlined, it would make the fast path save registers.
    fn read_after_backing_out(&self) -> Option<ThreadBound> {
        let leave = || self.leave_shared(ThreadBound::new());
        Self::back_out(&leave);
        self.read_or_back_out(Wait::Forever, leave)
    }

    /// Enters as a reader; `leave` takes the reader out of the count again when it has to back out.
    pub(super) fn read_or_back_out(&self, wait: Wait, leave: impl Fn()) -> Option<ThreadBound> {
        self.read_by(wait, |seen| {
            if seen.admits(Reader::Plain, P::GIVE_WAY) {
                self.enter_shared(&leave)
            } else {
                Err(seen)
            }
        })
    }

    #[inline]
    pub(super) fn write(&self, wait: Wait) -> Option<ThreadBound> {
        // No load before the compare-exchange: where the lock is free, that spares a transfer of the cache line.
        match self.enter_exclusive(State::FREE, State::FREE, Slept::No) {
            Ok(()) => Some(ThreadBound::new()),
            Err(_) if wait == Wait::Never => None,
            Err(seen) => self.write_contended(State::FREE, seen, wait),
        }
    }

    /// Enters as a reader, or backs out by `leave` and returns the state that does not admit it.
    #[inline(always)]
    pub(super) fn enter_shared(&self, leave: impl Fn()) -> Result<(), State> {
        self.try_count_reader()
            .inspect_err(|_| Self::back_out(&leave))
    }

    /// Adds a reader to the count. If the state before does not admit it, returns that state, and the caller has to
    /// back out.
    ///
    /// It is an addition, which other readers cannot make fail, and there is no load before it, which would cost
    /// another transfer of the line. A caller that tries in a loop loads the state first, because a reader that is
    /// going to back out keeps writers out.
    #[inline(always)]
    fn try_count_reader(&self) -> Result<(), State> {
        // [futex-enter-shared] Acquire: pairs with [futex-leave-exclusive].
        let enter = prim::order!("futex-enter-shared", Ordering::Acquire);
        let before = State(self.state.fetch_add(Reader::Plain.held(), enter));
        if before.admits(Reader::Plain, P::GIVE_WAY) {
            Ok(())
        } else {
            Err(before)
        }
    }

    #[inline]
    fn back_out(leave: &impl Fn()) {
        // [futex-back-out]
        if prim::intact!("futex-back-out") {
            leave();
        }
    }

    /// Enters as a writer, or returns the state that shows another holder. `held` is what this thread holds already.
    #[inline]
    fn enter_exclusive(&self, held: State, seen: State, slept: Slept) -> Result<(), State> {
        // [futex-conservative]
        let mark = match slept {
            Slept::Yes if prim::intact!("futex-conservative") => WRITER_WAITS,
            _ => 0,
        };
        // [futex-enter-exclusive] Acquire: pairs with [futex-leave-shared] and [futex-leave-exclusive].
        let acquire = prim::order!("futex-enter-exclusive", Ordering::Acquire);
        self.change(seen, acquire, |seen| {
            let alone = seen.holders() == held;
            alone.then_some(State((seen.0 - held.0) | WRITER | mark))
        })
    }

    /// Changes the state, by one compare-exchange, to what `next` makes of it; or returns the state of which `next`
    /// makes nothing.
    #[inline(always)] // The order and `next` are constant at each call.
    fn change(
        &self,
        mut seen: State,
        order: Ordering,
        next: impl Fn(State) -> Option<State>,
    ) -> Result<(), State> {
        while let Some(next) = next(seen) {
            let changed = self
                .state
                .compare_exchange(seen.0, next.0, order, Ordering::Relaxed);
            match changed {
                Ok(_) => return Ok(()),
                Err(found) => seen = State(found),
            }
        }
        Err(seen)
    }

    /// Waits as a reader. `enter` is given a state and enters, or returns the state that does not admit the reader.
    #[inline(never)] // It waits, or it is a try, which loads the state first.
    fn read_by(
        &self,
        wait: Wait,
        enter: impl Fn(State) -> Result<(), State>,
    ) -> Option<ThreadBound> {
        // Without back-off: holders are expected to do other work between their acquisitions.
        let mut spin = Spin::new(spin::ON_HOLDER);
        loop {
            let Err(seen) = enter(self.state()) else {
                return Some(ThreadBound::new());
            };
            if self.is_marked_before_fork(seen) {
                self.wake_all();
                continue;
            }
            if wait == Wait::Never {
                return None;
            }
            // While others sleep it does not spin: they come first.
            if !seen.has_waiters() && spin.round() {
                continue;
            }
            if P::GIVE_WAY == GiveWay::ToWaitingWriters && wait == Wait::Forever {
                watch::gives_way(self, || self.state().has_waiting_writer());
            }
            let marked = seen.0 | READER_WAITS;
            // Not again, where another reader has: a hundred that mark the word keep off those who are to leave.
            let is_marked = seen.has_waiting_reader() || self.mark(seen, marked);
            // A reader that gives up leaves its mark. Some writer then makes a wake-up that wakes nobody.
            let deadline = wait.deadline();
            let sleep = || futex::wait(&self.state, marked, deadline);
            if is_marked && watch::asleep(deadline, sleep) == Woken::TimedOut {
                return enter(self.state()).ok().map(|()| ThreadBound::new());
            }
        }
    }

    /// Changes the state, if it is still what was seen.
    fn mark(&self, seen: State, marked: u32) -> bool {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.state
            .compare_exchange(seen.0, marked, success, failure)
            .is_ok()
    }

    #[cold] // Another thread is inside.
    fn write_contended(&self, held: State, mut seen: State, wait: Wait) -> Option<ThreadBound> {
        let mut spin = Spin::new(spin::ON_HOLDER);
        let mut slept = Slept::No;
        loop {
            if seen.has_waiters() || !spin.round() {
                let signals = self.signals_to_sleep_by();
                // [futex-mark] Release: the load of `signals` comes before the mark, and so before a change of
                // `signals` by a thread that observes the mark.
                let marked = State(self.state.fetch_or(WRITER_WAITS, Ordering::Release));
                slept = Slept::Yes;
                let sleeps = marked.holders() != held || !prim::intact!("futex-mark");
                let deadline = wait.deadline();
                let sleep = || futex::wait(&self.signals, signals, deadline);
                if sleeps && watch::asleep(deadline, sleep) == Woken::TimedOut {
                    if self.enter_exclusive(held, self.state(), slept).is_ok() {
                        return Some(ThreadBound::new());
                    }
                    // [futex-pass-on]
                    if prim::intact!("futex-pass-on") {
                        self.wake_all();
                    }
                    return None;
                }
            }
            match self.enter_exclusive(held, self.state(), slept) {
                Ok(()) => return Some(ThreadBound::new()),
                Err(now) => seen = now,
            }
        }
    }

    #[inline]
    fn leave_shared(&self, _: ThreadBound) {
        // [futex-leave-shared] Release: pairs with [futex-enter-exclusive].
        let before = State(
            self.state
                .fetch_sub(1, prim::order!("futex-leave-shared", Ordering::Release)),
        );
        debug_assert!(before.readers() > 0, "a read lock was released twice");
        self.left_by_one(before);
    }

    #[inline]
    fn left_by_one(&self, before: State) {
        // [futex-last-reader]
        if before.is_last_reader()
            && before.has_waiting_writer()
            && prim::intact!("futex-last-reader")
        {
            self.wake_writer(before);
        } else if before.readers() >= MOST_READERS {
            self.wake_all(); // The count was full, so readers may wait for this departure.
        }
    }

    #[inline]
    fn leave_exclusive(&self, _: ThreadBound) {
        // [futex-leave-exclusive] Release: pairs with [futex-enter-shared] and [futex-enter-exclusive]. A subtraction.
        // To clear a bit and return the old value is a loop of compare-exchanges on x86, which readers that come make
        // fail.
        let leave = prim::order!("futex-leave-exclusive", Ordering::Release);
        let before = State(self.state.fetch_sub(WRITER, leave));
        debug_assert!(before.is_written(), "a write lock was released twice");
        if before.has_waiters() {
            self.wake_all();
        }
    }

    /// Turns the writer into a reader in one step, so that no other writer gets in between.
    fn downgrade_to(&self, reader: Reader) {
        // [futex-downgrade] Release: pairs with [futex-enter-shared]. The writer bit goes and a reader comes.
        let share = prim::order!("futex-downgrade", Ordering::Release);
        let before = State(self.state.fetch_sub(WRITER - reader.held(), share));
        debug_assert!(before.is_written(), "no writer becomes a reader");
        // [futex-downgrade-wake]
        if before.has_waiters() && prim::intact!("futex-downgrade-wake") {
            self.wake_all();
        }
    }

    #[cold] // Writers sleep.
    fn wake_writer(&self, before: State) {
        let woken = match P::GIVE_WAY {
            // The mark stays. Otherwise new readers would be inside before the writer is awake.
            GiveWay::ToWaitingWriters => self.signal(State(before.0 & (WRITER_WAITS | UPGRADABLE))),
            GiveWay::ToHoldersOnly => self.clear_wait_marks(WRITER_WAITS),
        };
        self.wake(woken);
    }

    #[cold] // Somebody sleeps.
    fn wake_all(&self) {
        let woken = self.clear_wait_marks(WRITER_WAITS | READER_WAITS);
        self.wake(woken);
    }

    /// Clears marks, so that no thread falls asleep by them any more. Returns which sleepers to wake.
    fn clear_wait_marks(&self, marks: u32) -> State {
        // Acquire: pairs with [futex-mark].
        let before = self.state.fetch_and(!marks, Ordering::Acquire);
        self.signal(State(before & (marks | UPGRADABLE)))
    }

    /// Changes `signals`, if a writer is to be woken, so that writers that are about to sleep check again.
    fn signal(&self, woken: State) -> State {
        // [futex-signal] Release: pairs with the Acquire in `signals_to_sleep_by`.
        if woken.has_waiting_writer() && prim::intact!("futex-signal") {
            self.signals.fetch_add(1, Ordering::Release);
        }
        woken
    }

    /// Wakes sleepers. Uses the lock's address and touches nothing of the lock.
    fn wake(&self, woken: State) {
        if woken.has_waiting_reader() {
            futex::wake_all(&self.state);
        }
        // [futex-wake-upgrader]
        if woken.has_waiting_writer() {
            if woken.is_upgradable() && prim::intact!("futex-wake-upgrader") {
                futex::wake_all(&self.signals);
            } else {
                futex::wake_one(&self.signals);
            }
        }
    }
}

impl<P: Preference> Default for FutexRwLock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Preference> fmt::Debug for FutexRwLock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("FutexRwLock")
            .field("readers", &state.readers())
            .field("upgradable", &state.is_upgradable())
            .field("written", &state.is_written())
            .finish()
    }
}

// SAFETY (of the traits): the word admits a writer only where there is no holder, and a reader only where there is no
// writer. A thread that enters Acquires what the threads that left have Released. A forgotten guard stays counted.
raw_rwlock!(timed [P: Preference] FutexRwLock<P>, ThreadBound, ThreadBound);

// SAFETY: `downgrade_to` is one atomic step from writer to reader, so no writer gets in between; it Releases.
unsafe impl<P: Preference> lock_api::RawRwLockDowngrade for FutexRwLock<P> {
    unsafe fn downgrade(&self, guard: ThreadBound) -> ThreadBound {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.downgrade_to(Reader::Plain);
        guard
    }
}
