//! Debug builds: an account of what the running thread holds, to panic when it would wait for itself.
//!
//! The account decides nothing but whether to panic. Each thread keeps a list of its own, which no other thread reads:
//!
//! ```text
//!   acquire(lock, mode)
//!     the list has a hold of this lock that conflicts with `mode`, and the lock is held that way?
//!       yes: panic, with both lines
//!       no:  wait for the lock; then add a hold to the list
//!   release: remove the hold
//! ```
//!
//! The list is right as long as guards stay on their threads, so what [`SendGuards`](super::SendGuards) acquires is
//! not in it. A leaked guard stays in the list until the thread finds a lock at that address free. So a hold in the
//! list counts only if the lock says that it is held in that mode.
//!
//! A reader may also wait for itself by way of a writer: under a lock that prefers writers, a thread that reads asks to
//! read again while a writer waits for it. A writer that may give up would end that wait. So the attempts to write that
//! may give up are counted, for all locks in one small table, and the reader panics only if none is under way.

use crate::deadlock::{self, Account, Published, Wish};
use crate::range::mode::Mode as RangeMode;
use crate::range::thread;
use lock_api::RawRwLock;
use prim::atomic::{AtomicU32, Ordering, fence};
use prim::clock::Instant;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::ptr;

/// How a lock is held or asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    /// To read, and maybe write later.
    Upgradable,
    Write,
}

impl Mode {
    /// Whether a request in this mode waits for a holder in the other.
    fn waits_for(self, held: Self) -> bool {
        match (self, held) {
            (Self::Write, _) | (_, Self::Write) => true,
            (Self::Upgradable, Self::Upgradable) => true,
            (Self::Read | Self::Upgradable, Self::Read | Self::Upgradable) => false,
        }
    }
}

/// What a reader-writer lock is in terms of ranges: one position for readers, and one for the upgradable reader.
const READERS: u64 = 0;
const UPGRADABLE: u64 = 1;

impl Mode {
    /// Which of these positions a holder holds, and how.
    fn held(self) -> (u64, u64, RangeMode) {
        match self {
            Self::Read => (READERS, READERS, RangeMode::Shared),
            Self::Upgradable => (READERS, UPGRADABLE, RangeMode::Shared),
            Self::Write => (READERS, UPGRADABLE, RangeMode::Exclusive),
        }
    }

    /// What a request asks for: it waits for the same holders as by [`waits_for`](Self::waits_for).
    fn asked(self) -> (u64, u64, RangeMode) {
        match self {
            Self::Read | Self::Write => self.held(),
            Self::Upgradable => (UPGRADABLE, UPGRADABLE, RangeMode::Exclusive),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "for reading",
            Self::Upgradable => "for upgradable reading",
            Self::Write => "for writing",
        })
    }
}

/// Whether there is an account at all.
const ON: bool = prim::SELF_DEADLOCK_CHECKS;

/// The most holds in a thread's list. Further ones are not accounted for.
const MOST: usize = prim::sized(16, 1);

#[derive(Debug, Clone, Copy)]
struct Hold {
    lock: usize,
    mode: Mode,
    at: &'static Location<'static>,
}

/// What the thread asks for. If a lock is made of others, this is the outer lock.
#[derive(Debug, Clone, Copy)]
struct Request {
    lock: usize,
    mode: Mode,
    at: &'static Location<'static>,
    /// Its number among those who look for deadlocks, once it has slept. It may be woken and sleep again.
    number: Option<u64>,
}

#[derive(Debug)]
struct Record {
    holds: Cell<[Option<Hold>; MOST]>,
    request: Cell<Option<Request>>,
    /// Whether what it does now is not to be in the list.
    is_unwatched: Cell<bool>,
}

prim::local! {
    static RECORD: Record = Record {
        holds: Cell::new([None; MOST]),
        request: Cell::new(None),
        is_unwatched: Cell::new(false),
    };
}

/// Whether the running thread is watched.
fn is_on() -> bool {
    ON && !RECORD.with(|record| record.is_unwatched.get())
}

/// Runs `f`, which acquires or releases what need not be released by this thread.
#[inline(always)] // In release builds it is `f` and nothing else.
pub(super) fn unwatched<R>(f: impl FnOnce() -> R) -> R {
    /// It was unwatched before, or not; until dropped it is.
    struct Unwatched(bool);

    impl Drop for Unwatched {
        fn drop(&mut self) {
            RECORD.with(|record| record.is_unwatched.set(self.0));
        }
    }

    let _unwatched = ON.then(|| RECORD.with(|record| Unwatched(record.is_unwatched.replace(true))));
    f()
}

/// Attempts to write that may give up, of all locks with the same hash: how many began, and how many ended.
struct Attempts {
    begun: AtomicU32,
    ended: AtomicU32,
}

prim::global! {
    static ATTEMPTS: [Attempts; 64] = prim::array!(Attempts {
        begun: AtomicU32::new(0),
        ended: AtomicU32::new(0),
    }; 64);
}

impl Attempts {
    fn at(lock: usize) -> &'static Self {
        // Neighbouring locks have different counters.
        &ATTEMPTS[(lock / 8) % ATTEMPTS.len()]
    }

    /// Whether `is_so` at a moment when no attempt is under way.
    fn none_while(&self, is_so: impl FnOnce() -> bool) -> bool {
        // Acquire: an attempt that has ended has cleared its mark in the lock. `ended` is loaded first and never
        // exceeds `begun`, so if they are equal no attempt was under way.
        let ended = self.ended.load(Ordering::Acquire);
        let begun = self.begun.load(Ordering::SeqCst);
        let is_so = ended == begun && is_so();
        // A fence on both sides: an attempt that marked the lock before `is_so` loaded it has begun before `begun` is
        // loaded again.
        fence(Ordering::SeqCst);
        is_so && self.begun.load(Ordering::SeqCst) == begun
    }
}

/// An attempt of the running thread to write, until dropped.
struct Attempt(&'static Attempts);

impl Attempt {
    fn begin<L>(lock: &L) -> Self {
        let attempts = Attempts::at(ptr::from_ref(lock).addr());
        attempts.begun.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(attempts)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

impl Record {
    fn held(&self, lock: usize) -> impl Iterator<Item = Hold> {
        let of_lock = move |hold: &Hold| hold.lock == lock;
        self.holds.get().into_iter().flatten().filter(of_lock)
    }

    /// Replaces the last hold of a lock in that mode, if it is listed.
    fn replace(&self, lock: usize, mode: Mode, by: impl FnOnce(Hold) -> Option<Hold>) {
        let mut holds = self.holds.get();
        let listed = |hold: &&mut Option<Hold>| {
            hold.is_some_and(|hold| hold.lock == lock && hold.mode == mode)
        };
        if let Some(place) = holds.iter_mut().rev().find(listed) {
            *place = place.take().and_then(by);
            self.holds.set(holds);
        }
    }

    fn add(&self, hold: Hold) {
        let mut holds = self.holds.get();
        if let Some(place) = holds.iter_mut().find(|place| place.is_none()) {
            *place = Some(hold);
            self.holds.set(holds);
            deadlock::tells_whole(add_holds);
        }
    }

    fn forget(&self, lock: usize) {
        let kept = |hold: Option<Hold>| hold.filter(|hold| hold.lock != lock);
        self.holds.set(self.holds.get().map(kept));
    }
}

impl Hold {
    fn wish(&self) -> Wish {
        Wish::whole(self.lock, self.mode.held(), self.at)
    }
}

impl Request {
    fn wish(&self) -> Wish {
        Wish::whole(self.lock, self.mode.asked(), self.at)
    }
}

/// Runs `sleep`, in which the thread sleeps until it is woken or until the deadline. It waits for the lock that it asks
/// for. If that has no end, the thread tells those who look for deadlocks.
#[inline(always)] // In release builds it is `sleep` and nothing else.
pub(crate) fn asleep<R>(deadline: Option<Instant>, sleep: impl FnOnce() -> R) -> R {
    let _published = match deadline {
        None if is_on() => publish(),
        _ => None,
    };
    sleep()
}

#[cold]
fn publish() -> Option<Published> {
    let detection = deadlock::by_environment()?;
    let (number, request) = RECORD.with(|record| {
        let mut request = record.request.get()?;
        let number = *request.number.get_or_insert_with(deadlock::new_number);
        record.request.set(Some(request));
        Some((number, request))
    })?;
    let account = thread::with_record(|record| Account {
        number,
        thread: record.thread(),
        waits: Some(request.wish()),
        holds: record.accounts(),
    });
    let published = deadlock::publish(account);
    deadlock::watch_accounts(detection);
    Some(published)
}

/// Adds what the running thread holds, as those who look for deadlocks compare it.
fn add_holds(wishes: &mut Vec<Wish>) {
    let holds = RECORD.with(|record| record.holds.get());
    wishes.extend(holds.iter().flatten().map(Hold::wish));
}

/// A request of the running thread, until dropped.
#[derive(Debug)]
struct Asking {
    lock: usize,
    before: Option<Request>,
}

impl Asking {
    fn begin<L: RawRwLock>(lock: &L, mode: Mode, at: &'static Location<'static>) -> Self {
        let is_free = !lock.is_locked();
        let lock = ptr::from_ref(lock).addr();
        RECORD.with(|record| {
            if is_free {
                record.forget(lock); // A hold in the list was leaked, and was another lock's.
            }
            let before = record.request.get();
            let request = before.unwrap_or(Request {
                lock,
                mode,
                at,
                number: None,
            });
            record.request.set(Some(request));
            Self { lock, before }
        })
    }

    fn granted(&self, mode: Mode) {
        RECORD.with(|record| {
            if mode == Mode::Write {
                record.forget(self.lock); // Nobody else holds it now: a hold in the list was leaked.
            }
            if let Some(Request { at, .. }) = record.request.get() {
                let lock = self.lock;
                record.add(Hold { lock, mode, at });
            }
        });
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        RECORD.with(|record| record.request.set(self.before));
    }
}

/// The thread's request, and the first of its holds of a lock for which `waits` is true.
fn would_wait_for(lock: usize, waits: impl Fn(Hold) -> bool) -> Option<(Request, Hold)> {
    RECORD.with(|record| {
        let hold = record.held(lock).find(|&hold| waits(hold))?;
        Some((record.request.get()?, hold))
    })
}

#[cold]
fn report_self_deadlock((request, hold): (Request, Hold), why: &str) -> ! {
    let Request { lock, mode, at, .. } = request;
    let _uncancelled = prim::thread::Uncancelled::new(); // The panic is written to a file.
    panic!(
        "deadlock: a thread asks for the lock at {lock:#x} {mode}, at {at}, and holds it {} since {}{why}",
        hold.mode, hold.at
    );
}

/// Runs `acquire`, which waits for a lock.
///
/// # Panics
/// In a debug build, when the thread would wait for itself.
#[track_caller]
#[inline(always)] // In release builds it is `acquire` and nothing else.
pub(super) fn acquire<L: RawRwLock, G>(lock: &L, mode: Mode, acquire: impl FnOnce() -> G) -> G {
    if !is_on() {
        return acquire();
    }
    let asking = Asking::begin(lock, mode, Location::caller());
    let waits = |hold: Hold| mode.waits_for(hold.mode) && is_held(lock, hold.mode);
    if let Some(found) = would_wait_for(asking.lock, waits) {
        report_self_deadlock(found, "");
    }
    let guard = acquire();
    asking.granted(mode);
    guard
}

/// Whether a lock is held in that mode, by any thread.
fn is_held<L: RawRwLock>(lock: &L, mode: Mode) -> bool {
    match mode {
        Mode::Read | Mode::Upgradable => lock.is_locked(),
        Mode::Write => lock.is_locked_exclusive(),
    }
}

/// Runs `attempt`, which tries to acquire a lock or waits for a time.
#[track_caller]
#[inline(always)] // In release builds it is `attempt` and nothing else.
pub(super) fn attempt<L: RawRwLock, G>(
    lock: &L,
    mode: Mode,
    attempt: impl FnOnce() -> Option<G>,
) -> Option<G> {
    if !is_on() {
        return attempt();
    }
    let asking = Asking::begin(lock, mode, Location::caller());
    let _counted = (mode != Mode::Read).then(|| Attempt::begin(lock));
    let guard = attempt();
    if guard.is_some() {
        asking.granted(mode);
    }
    guard
}

/// The thread is about to release a lock.
#[inline(always)]
pub(super) fn leave<L>(lock: &L, mode: Mode) {
    if is_on() {
        let lock = ptr::from_ref(lock).addr();
        RECORD.with(|record| record.replace(lock, mode, |_| None));
    }
}

/// The thread holds a lock in another mode from now on, and did not wait for that.
#[inline(always)]
pub(super) fn convert<L>(lock: &L, from: Mode, to: Mode) {
    if is_on() {
        let lock = ptr::from_ref(lock).addr();
        let converted = |hold| Some(Hold { mode: to, ..hold });
        RECORD.with(|record| record.replace(lock, from, converted));
    }
}

/// Runs `upgrade`, which waits until an upgradable reader, the owner of the token, is the writer.
///
/// # Panics
/// In a debug build, when the thread also reads that lock otherwise. It has released the token by `leave` before.
#[track_caller]
#[inline(always)]
pub(super) fn upgrade<L: RawRwLock, T, G>(
    lock: &L,
    token: T,
    leave: impl FnOnce(T),
    upgrade: impl FnOnce(T) -> G,
) -> G {
    if !is_on() {
        return upgrade(token);
    }
    let asking = Asking::begin(lock, Mode::Write, Location::caller());
    if let Some(found) = would_wait_for(asking.lock, |hold| hold.mode == Mode::Read) {
        leave(token);
        report_self_deadlock(found, "");
    }
    let guard = upgrade(token);
    convert(lock, Mode::Upgradable, Mode::Write);
    guard
}

/// Runs `upgrade`, which tries, or waits for a time.
#[inline(always)]
pub(super) fn try_upgrade<L, G, E>(
    lock: &L,
    upgrade: impl FnOnce() -> Result<G, E>,
) -> Result<G, E> {
    if !is_on() {
        return upgrade();
    }
    let _counted = Attempt::begin(lock);
    let upgraded = upgrade();
    if upgraded.is_ok() {
        convert(lock, Mode::Upgradable, Mode::Write);
    }
    upgraded
}

/// Called by a reader that is about to sleep until a writer has been inside. `to_a_writer` says whether one waits.
///
/// # Panics
/// In a debug build, when that writer waits for the calling thread, and no writer can give up.
#[inline]
pub(super) fn gives_way<L>(lock: &L, to_a_writer: impl FnOnce() -> bool) {
    if !is_on() {
        return;
    }
    let lock = ptr::from_ref(lock).addr();
    if Attempts::at(lock).none_while(to_a_writer)
        && let Some(found) = would_wait_for(lock, |hold| hold.mode != Mode::Write)
    {
        report_self_deadlock(found, ", and a writer waits for that");
    }
}
