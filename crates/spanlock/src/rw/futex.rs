//! A compact reader-writer lock that sleeps in the kernel: what [`RwLock`](super::RwLock) is made of.
//!
//! One word holds the lock's [`State`]: the number of readers, whether one holds it that may become the writer,
//! whether a writer holds it, and whether readers or writers wait. Readers sleep on that word, writers on a second one,
//! which counts wake-ups.
//!
//! # Who is woken
//!
//! 1. A writer about to sleep marks `WRITER_WAITS`, and one that slept and got the lock marks it again, for it knows
//!    not whether others sleep. So a sleeping writer has its mark, or somebody is awake who will see to it.
//! 2. The last reader to leave wakes one writer (**futex-last**). Where readers give way to waiting writers the mark
//!    stays, and holds them back until a writer has been inside (or 4 or 5 takes it off); else, and in `last.rs`, the
//!    reader takes it off, and those that come until the writer is awake wake nobody. Readers who wait beside it stay
//!    asleep: that writer, or the one that got in before it, wakes them when it leaves.
//! 3. A writer that leaves, or becomes a reader, takes both marks off and wakes all readers and one writer.
//! 4. A writer that gives up may have been the one woken by 2 or 3: it does as in 3.
//! 5. An upgradable reader waits, for its upgrade, as a writer, and is the only one that others' leaving may let in.
//!    So while there is one, all writers are woken where else one is (**futex-wake-upgrader**). When it leaves, or
//!    becomes a reader, all are woken as in 3: others may wait to be upgradable.
//! 6. A reader that comes in vain, having added itself to the count and seen that it may not, leaves as in 2
//!    (**futex-in-vain**): a writer may have found it there and gone to sleep. If a writer is inside all is that one's.
//! 7. A reader in a forked child that finds the mark of a writer which is not there does as in 4 (`forked.rs`).
//!
//! # Memory ordering
//!
//! - **futex-enter** / **futex-leave**: Acquire by whoever gets in, Release by whoever leaves: critical sections.
//! - **futex-mark** (both sides are read-modify-writes of one word): a writer that goes to sleep marks the word and
//!   does not sleep if the lock is free; who leaves sees the mark, and changes the second word (**futex-signal**)
//!   before it wakes.
//! - **futex-early**: `last.rs`.
//! - **futex-pass-on**: rule 4. **futex-conservative**: rule 1's second half. **futex-downgrade**: rule 3 for a
//!   downgrade.

use super::raw::{Stays, raw_rwlock};
use super::watch;
use crate::range::raw::Wait;
use prim::atomic::{AtomicU32, Ordering};
use prim::futex::{self, Woken};
use prim::spin::{self, Spin};
use std::fmt;
use std::marker::PhantomData;

mod forked;
mod last;
mod preference;
#[cfg(test)]
mod tests;
mod upgrade;
pub use preference::{GiveWay, Preference, ReadersFirst, WritersFirst};

/// Held by a writer.
const WRITER: u32 = 1 << 31;
/// A writer sleeps or is about to.
const WRITER_WAITS: u32 = 1 << 30;
/// A reader sleeps or is about to.
const READER_WAITS: u32 = 1 << 29;
/// Held by a reader that may become the writer.
const UPGRADABLE: u32 = 1 << 28;
/// What is left for counting readers.
const READERS: u32 = UPGRADABLE - 1;
/// As many as come in: a bit of the count, so that one look at the word tells a reader all. The rest of the count is for
/// one that was upgradable and for those who come in vain.
const MOST_READERS: u32 = READERS / 2 + 1;

/// What the word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(u32);

impl State {
    const FREE: Self = Self(0);
    const UPGRADABLE: Self = Self(UPGRADABLE);

    fn readers(self) -> u32 {
        self.0 & READERS
    }

    fn is_written(self) -> bool {
        self.0 & WRITER != 0
    }

    /// Whether there is one reader and no writer: else it has come in vain, and those who wait are the writer's.
    fn is_last_reader(self) -> bool {
        self.0 & (WRITER | READERS) == 1
    }

    /// The state but for the marks of who waits.
    fn holders(self) -> Self {
        Self(self.0 & (WRITER | UPGRADABLE | READERS))
    }

    fn is_upgradable(self) -> bool {
        self.0 & UPGRADABLE != 0
    }

    fn has_waiters(self) -> bool {
        self.0 & (WRITER_WAITS | READER_WAITS) != 0
    }

    fn has_waiting_reader(self) -> bool {
        self.0 & READER_WAITS != 0
    }

    fn has_waiting_writer(self) -> bool {
        self.0 & WRITER_WAITS != 0
    }

    /// A count that is full refuses: it never runs into the bits above it.
    fn admits(self, reader: Reader, give_way: GiveWay) -> bool {
        let writers = match give_way {
            GiveWay::ToWaitingWriters => WRITER | WRITER_WAITS,
            GiveWay::ToHoldersOnly => WRITER,
        };
        let in_the_way = match reader {
            Reader::Plain => writers,
            Reader::Upgradable => writers | UPGRADABLE,
        };
        self.0 & in_the_way == 0 && self.readers() < MOST_READERS
    }
}

/// Who holds the lock beside readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Plain,
    /// There is one at a time.
    Upgradable,
}

impl Reader {
    /// What its holding adds to the state.
    const fn held(self) -> u32 {
        match self {
            Self::Plain => 1,
            Self::Upgradable => UPGRADABLE,
        }
    }
}

/// A reader-writer lock of two words.
///
/// - **Size**: 8 bytes.
/// - **Cost**: one atomic operation to acquire and one to release, and two more for a reader that finds a writer in its
///   way; a system call to sleep and one to wake.
/// - **Fairness**: [`WritersFirst`] holds readers back while a writer waits, and lets those who wait in when one
///   leaves, in competition with other writers; there is no order among writers. Upgradable readers that come
///   one after another may starve them. [`ReadersFirst`] starves writers while readers keep coming.
/// - **Recursion**: a thread that reads may read again under [`ReadersFirst`]; under [`WritersFirst`] it may wait for
///   a writer that waits for it.
/// - **Upgrade**: one reader at a time may be upgradable, beside others; to upgrade it waits for those as a writer.
/// - **Limits**: a reader waits, as for a writer, when 2^27 hold the lock. A reader that finds a writer in its way is
///   counted for a moment: just then a try to write or to upgrade, or one by time, may fail although nobody holds the
///   lock, and the lock seem to be held.
/// - Not when many processors read often: they compete for the word. Put [`Bravo`](super::Bravo) around it.
/// - Guards stay on their threads, unless the feature `send_guard` is on.
///
/// Source: our own, after the futex locks in use everywhere since Drepper's *Futexes are Tricky* (2004).
#[repr(C)] // So that the preference, which is no data, can be another for a while.
pub struct FutexRwLock<P: Preference = WritersFirst> {
    state: AtomicU32,
    /// Counts the wake-ups of writers; the upper bits are `forked.rs`'s.
    signals: AtomicU32,
    _preference: PhantomData<P>,
}

/// What a writer that could not get in knows.
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

    /// The same lock, by another preference.
    #[inline]
    #[must_use]
    pub fn preferring<Q: Preference>(&self) -> &FutexRwLock<Q> {
        // SAFETY: the type is `repr(C)`, and the preference is not in it.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    /// Whether as many read as come in.
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
    fn read(&self, wait: Wait) -> Option<Stays> {
        match wait {
            Wait::Forever => match self.come_shared() {
                Ok(()) => Some(Stays::new()),
                Err(_) => self.read_having_come_in_vain(),
            },
            Wait::Never | Wait::Until(_) => {
                self.read_or_leave(wait, || self.leave_shared(Stays::new()))
            }
        }
    }

    #[inline(never)] // The fast path would save registers for it.
    fn read_having_come_in_vain(&self) -> Option<Stays> {
        let leave = || self.leave_shared(Stays::new());
        Self::leave_in_vain(&leave);
        self.read_or_leave(Wait::Forever, leave)
    }

    /// As a reader that leaves by `leave` where it has come in vain.
    pub(super) fn read_or_leave(&self, wait: Wait, leave: impl Fn()) -> Option<Stays> {
        self.read_by(wait, |seen| {
            if seen.admits(Reader::Plain, P::GIVE_WAY) {
                self.enter_shared(&leave)
            } else {
                Err(seen)
            }
        })
    }

    #[inline]
    pub(super) fn write(&self, wait: Wait) -> Option<Stays> {
        // Not looked at beforehand: a guess that is right costs one transfer of the cache line instead of two.
        match self.enter_exclusive(State::FREE, State::FREE, Slept::No) {
            Ok(()) => Some(Stays::new()),
            Err(_) if wait == Wait::Never => None,
            Err(seen) => self.write_contended(State::FREE, seen, wait),
        }
    }

    /// Enters as a reader, unless somebody is in the way: then it has come in vain, and leaves by `leave`; and the state
    /// that says so.
    #[inline(always)]
    pub(super) fn enter_shared(&self, leave: impl Fn()) -> Result<(), State> {
        self.come_shared()
            .inspect_err(|_| Self::leave_in_vain(&leave))
    }

    /// Enters as a reader, unless somebody is in the way: then the state that says so, and it has come in vain.
    ///
    /// By an addition, which readers who come together cannot make fail, and without a look, which would cost a
    /// transfer more. Who tries again and again should look first: who comes in vain keeps writers out.
    #[inline(always)]
    fn come_shared(&self) -> Result<(), State> {
        // [futex-enter] Acquire: pairs with [futex-leave].
        let enter = prim::order!("futex-enter-shared", Ordering::Acquire);
        let before = State(self.state.fetch_add(Reader::Plain.held(), enter));
        if before.admits(Reader::Plain, P::GIVE_WAY) {
            Ok(())
        } else {
            Err(before)
        }
    }

    #[inline]
    fn leave_in_vain(leave: &impl Fn()) {
        // [futex-in-vain]
        if prim::intact!("futex-in-vain") {
            leave();
        }
    }

    /// Enters as a writer, unless somebody is inside but for what the thread holds: then the state that says so.
    #[inline]
    fn enter_exclusive(&self, held: State, mut seen: State, slept: Slept) -> Result<(), State> {
        // [futex-conservative]
        let mark = match slept {
            Slept::Yes if prim::intact!("futex-conservative") => WRITER_WAITS,
            _ => 0,
        };
        while seen.holders() == held {
            // [futex-enter] Acquire: pairs with [futex-leave].
            let entered = self.state.compare_exchange(
                seen.0,
                (seen.0 - held.0) | WRITER | mark,
                prim::order!("futex-enter-exclusive", Ordering::Acquire),
                Ordering::Relaxed,
            );
            match entered {
                Ok(_) => return Ok(()),
                Err(found) => seen = State(found),
            }
        }
        Err(seen)
    }

    /// `enter` lets a reader in, unless the state that it is told, or one that it finds, is in its way: then that.
    #[inline(never)] // Somebody is in the way, or it is a try, which looks first.
    fn read_by(&self, wait: Wait, enter: impl Fn(State) -> Result<(), State>) -> Option<Stays> {
        // Not one that backs off: holders are expected to do other work between their acquisitions.
        let mut spin = Spin::new(spin::ON_HOLDER);
        loop {
            let Err(seen) = enter(self.state()) else {
                return Some(Stays::new());
            };
            if self.is_marked_by_the_dead(seen) {
                self.wake_all();
                continue;
            }
            if wait == Wait::Never {
                return None;
            }
            // Who sees others asleep does not spin: they come first.
            if !seen.has_waiters() && spin.round() {
                continue;
            }
            if P::GIVE_WAY == GiveWay::ToWaitingWriters && wait == Wait::Forever {
                watch::gives_way(self, || self.state().has_waiting_writer());
            }
            let marked = seen.0 | READER_WAITS;
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            let mark = self
                .state
                .compare_exchange(seen.0, marked, success, failure);
            // A reader that gives up leaves its mark: some writer wakes nobody.
            if mark.is_ok() && futex::wait(&self.state, marked, wait.deadline()) == Woken::TimedOut
            {
                return enter(self.state()).ok().map(|()| Stays::new());
            }
        }
    }

    #[cold] // Somebody is inside.
    fn write_contended(&self, held: State, mut seen: State, wait: Wait) -> Option<Stays> {
        let mut spin = Spin::new(spin::ON_HOLDER);
        let mut slept = Slept::No;
        loop {
            if seen.has_waiters() || !spin.round() {
                let signals = self.signals_to_sleep_by();
                // [futex-mark] Release: the look at the count is before it, and so before a change in answer to it.
                let marked = State(self.state.fetch_or(WRITER_WAITS, Ordering::Release));
                slept = Slept::Yes;
                let sleeps = marked.holders() != held || !prim::intact!("futex-mark");
                if sleeps && futex::wait(&self.signals, signals, wait.deadline()) == Woken::TimedOut
                {
                    if self.enter_exclusive(held, self.state(), slept).is_ok() {
                        return Some(Stays::new());
                    }
                    // [futex-pass-on]
                    if prim::intact!("futex-pass-on") {
                        self.wake_all();
                    }
                    return None;
                }
            }
            match self.enter_exclusive(held, self.state(), slept) {
                Ok(()) => return Some(Stays::new()),
                Err(now) => seen = now,
            }
        }
    }

    #[inline]
    fn leave_shared(&self, _: Stays) {
        // [futex-leave] Release: pairs with [futex-enter].
        let before = State(
            self.state
                .fetch_sub(1, prim::order!("futex-leave-shared", Ordering::Release)),
        );
        debug_assert!(before.readers() > 0, "a read lock was released twice");
        self.left_by_one(before);
    }

    #[inline]
    fn left_by_one(&self, before: State) {
        // [futex-last]
        if before.is_last_reader() && before.has_waiting_writer() && prim::intact!("futex-last") {
            self.wake_writer(before);
        } else if before.readers() >= MOST_READERS {
            self.wake_all(); // The count was full.
        }
    }

    #[inline]
    fn leave_exclusive(&self, _: Stays) {
        // [futex-leave] Release: pairs with [futex-enter].
        // A subtraction: to clear a bit and learn what was there is a loop of compare-exchanges on x86, which readers who
        // come make fail.
        let leave = prim::order!("futex-leave-exclusive", Ordering::Release);
        let before = State(self.state.fetch_sub(WRITER, leave));
        debug_assert!(before.is_written(), "a write lock was released twice");
        if before.has_waiters() {
            self.wake_all();
        }
    }

    /// From writer to reader in one step: no other writer gets in between.
    fn share(&self, reader: Reader) {
        // [futex-leave] Release: pairs with [futex-enter]. The writer bit goes and a reader comes.
        let share = prim::order!("futex-share", Ordering::Release);
        let before = State(self.state.fetch_sub(WRITER - reader.held(), share));
        debug_assert!(before.is_written(), "no writer becomes a reader");
        if before.has_waiters() && prim::intact!("futex-downgrade") {
            self.wake_all();
        }
    }

    #[cold] // Writers sleep.
    fn wake_writer(&self, before: State) {
        let roused = match P::GIVE_WAY {
            // The mark stays: else readers would be back before the writer is awake.
            GiveWay::ToWaitingWriters => self.signal(State(before.0 & (WRITER_WAITS | UPGRADABLE))),
            GiveWay::ToHoldersOnly => self.rouse(WRITER_WAITS),
        };
        self.wake(roused);
    }

    #[cold] // Somebody sleeps.
    fn wake_all(&self) {
        let roused = self.rouse(WRITER_WAITS | READER_WAITS);
        self.wake(roused);
    }

    /// Takes marks off: nobody falls asleep by them any more. Whom to wake.
    fn rouse(&self, marks: u32) -> State {
        // Acquire: pairs with [futex-mark].
        let before = self.state.fetch_and(!marks, Ordering::Acquire);
        self.signal(State(before & (marks | UPGRADABLE)))
    }

    /// Has writers who are about to sleep look again, if one is to be woken.
    fn signal(&self, roused: State) -> State {
        // [futex-signal] Release: pairs with the look at the count.
        if roused.has_waiting_writer() && prim::intact!("futex-signal") {
            self.signals.fetch_add(1, Ordering::Release);
        }
        roused
    }

    /// Needs the lock's address and nothing that is there.
    fn wake(&self, roused: State) {
        if roused.has_waiting_reader() {
            futex::wake_all(&self.state);
        }
        // [futex-wake-upgrader]
        if roused.has_waiting_writer() {
            if roused.is_upgradable() && prim::intact!("futex-wake-upgrader") {
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

// The word admits a writer only where there is nobody and a reader only where there is no writer, and who enters
// acquires what those who left released. Forgotten guards leave counts in a word that nobody else owns.
raw_rwlock!(timed [P: Preference] FutexRwLock<P>, Stays, Stays);

// SAFETY: `share` is one step, and releases.
unsafe impl<P: Preference> lock_api::RawRwLockDowngrade for FutexRwLock<P> {
    unsafe fn downgrade(&self, guard: Stays) -> Stays {
        watch::convert(self, watch::Mode::Write, watch::Mode::Read);
        self.share(Reader::Plain);
        guard
    }
}
