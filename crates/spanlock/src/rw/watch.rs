//! Debug builds: what the running thread holds, to tell it that it would wait for itself.
//!
//! Nothing is decided by it but whether to panic. A thread keeps a list of its own, which no other looks at. It is right
//! as long as guards stay on their threads, so with the feature `send_guard` there is none. A leaked guard stays in the list
//! until the thread finds a lock at that address free; so what a thread holds by its list counts only if the lock is held
//! that way by somebody.

use lock_api::RawRwLock;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::ptr;
// Not `prim`'s: to watch costs nothing on a simulated machine.
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// How a lock is held or asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    /// To read, and maybe write later.
    Upgradable,
    Write,
}

impl Mode {
    /// Whether one who asks for it waits for one who holds the other, for as long as that is held.
    fn waits_for(self, held: Self) -> bool {
        match (self, held) {
            (Self::Write, _) | (_, Self::Write) => true,
            (Self::Upgradable, Self::Upgradable) => true,
            (Self::Read | Self::Upgradable, Self::Read | Self::Upgradable) => false,
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

/// Whether anything is kept. Not in models, which release on other threads what tokens stand for.
const ON: bool = cfg!(debug_assertions) && !cfg!(feature = "send_guard") && prim::sized(1, 0) == 1;

/// A thread that holds more at a time is not told of the rest.
const MOST: usize = prim::sized(16, 1);

#[derive(Debug, Clone, Copy)]
struct Hold {
    lock: usize,
    mode: Mode,
    at: &'static Location<'static>,
}

/// What is asked for: the outermost of locks that are made of others.
#[derive(Debug, Clone, Copy)]
struct Request {
    lock: usize,
    mode: Mode,
    at: &'static Location<'static>,
}

#[derive(Debug)]
struct Record {
    holds: Cell<[Option<Hold>; MOST]>,
    request: Cell<Option<Request>>,
}

prim::local! {
    static RECORD: Record = Record { holds: Cell::new([None; MOST]), request: Cell::new(None) };
}

/// Attempts to write that may give up, of locks whose addresses are alike: how many began, and how many ended.
struct Attempts {
    begun: AtomicU32,
    ended: AtomicU32,
}

static ATTEMPTS: [Attempts; 64] = [const {
    Attempts {
        begun: AtomicU32::new(0),
        ended: AtomicU32::new(0),
    }
}; 64];

impl Attempts {
    fn at(lock: usize) -> &'static Self {
        // As a bad hash would have it, neighbours are different.
        &ATTEMPTS[(lock / 8) % ATTEMPTS.len()]
    }

    /// Whether `is_so` while no attempt is under way.
    fn none_while(&self, is_so: impl FnOnce() -> bool) -> bool {
        // Acquire: what has ended has taken its mark off the lock. As `ended` is loaded first and never exceeds `begun`,
        // none is under way if they are equal.
        let ended = self.ended.load(Ordering::Acquire);
        let begun = self.begun.load(Ordering::SeqCst);
        let is_so = ended == begun && is_so();
        // Both sides: whoever marked the lock before it was looked at has begun before that is loaded again.
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
        }
    }

    fn forget(&self, lock: usize) {
        let kept = |hold: Option<Hold>| hold.filter(|hold| hold.lock != lock);
        self.holds.set(self.holds.get().map(kept));
    }
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
                record.forget(lock); // What was leaked was another lock's.
            }
            let before = record.request.get();
            let request = before.unwrap_or(Request { lock, mode, at });
            record.request.set(Some(request));
            Self { lock, before }
        })
    }

    fn granted(&self, mode: Mode) {
        RECORD.with(|record| {
            if mode == Mode::Write {
                record.forget(self.lock); // As in `begin`.
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

/// The first of these for which `waits` says that who asks would wait.
fn would_wait_for(lock: usize, waits: impl Fn(Hold) -> bool) -> Option<(Request, Hold)> {
    RECORD.with(|record| {
        let hold = record.held(lock).find(|&hold| waits(hold))?;
        Some((record.request.get()?, hold))
    })
}

#[cold]
fn waits_for_itself((request, hold): (Request, Hold), why: &str) -> ! {
    let Request { lock, mode, at } = request;
    panic!(
        "deadlock: a thread asks for the lock at {lock:#x} {mode}, at {at}, and holds it {} since {}{why}",
        hold.mode, hold.at
    );
}

/// Has `acquire` wait for a lock.
///
/// # Panics
/// In a debug build, when the thread would wait for itself.
#[cfg_attr(debug_assertions, track_caller)]
#[inline(always)] // It is nothing but `acquire`, usually.
pub(super) fn acquire<L: RawRwLock, G>(lock: &L, mode: Mode, acquire: impl FnOnce() -> G) -> G {
    if !ON {
        return acquire();
    }
    let asking = Asking::begin(lock, mode, Location::caller());
    let waits = |hold: Hold| mode.waits_for(hold.mode) && is_held(lock, hold.mode);
    if let Some(found) = would_wait_for(asking.lock, waits) {
        waits_for_itself(found, "");
    }
    let guard = acquire();
    asking.granted(mode);
    guard
}

/// Whether anybody holds a lock in that mode.
fn is_held<L: RawRwLock>(lock: &L, mode: Mode) -> bool {
    match mode {
        Mode::Read | Mode::Upgradable => lock.is_locked(),
        Mode::Write => lock.is_locked_exclusive(),
    }
}

/// Has `attempt` try to acquire a lock, or wait for a time.
#[cfg_attr(debug_assertions, track_caller)]
#[inline(always)] // As above.
pub(super) fn attempt<L: RawRwLock, G>(
    lock: &L,
    mode: Mode,
    attempt: impl FnOnce() -> Option<G>,
) -> Option<G> {
    if !ON {
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

/// The thread is about to leave a lock.
#[inline(always)]
pub(super) fn leave<L>(lock: &L, mode: Mode) {
    if ON {
        let lock = ptr::from_ref(lock).addr();
        RECORD.with(|record| record.replace(lock, mode, |_| None));
    }
}

/// The thread holds a lock otherwise from now on, and did not wait for that.
#[inline(always)]
pub(super) fn convert<L>(lock: &L, from: Mode, to: Mode) {
    if ON {
        let lock = ptr::from_ref(lock).addr();
        let converted = |hold| Some(Hold { mode: to, ..hold });
        RECORD.with(|record| record.replace(lock, from, converted));
    }
}

/// The thread goes from reading upgradably, of which it has the token, to writing, and waits for that.
///
/// # Panics
/// In a debug build, when the thread reads that lock as well. Before, it has left by `leave`.
#[cfg_attr(debug_assertions, track_caller)]
#[inline(always)]
pub(super) fn upgrade<L: RawRwLock, T, G>(
    lock: &L,
    token: T,
    leave: impl FnOnce(T),
    upgrade: impl FnOnce(T) -> G,
) -> G {
    if !ON {
        return upgrade(token);
    }
    let asking = Asking::begin(lock, Mode::Write, Location::caller());
    if let Some(found) = would_wait_for(asking.lock, |hold| hold.mode == Mode::Read) {
        leave(token);
        waits_for_itself(found, "");
    }
    let guard = upgrade(token);
    convert(lock, Mode::Upgradable, Mode::Write);
    guard
}

/// The same, for a time or not at all.
#[inline(always)]
pub(super) fn try_upgrade<L, G, E>(
    lock: &L,
    upgrade: impl FnOnce() -> Result<G, E>,
) -> Result<G, E> {
    if !ON {
        return upgrade();
    }
    let _counted = Attempt::begin(lock);
    let upgraded = upgrade();
    if upgraded.is_ok() {
        convert(lock, Mode::Upgradable, Mode::Write);
    }
    upgraded
}

/// The thread is about to sleep until a writer has been inside, if one waits for readers.
///
/// # Panics
/// In a debug build, when the thread is one of those readers.
#[inline]
pub(super) fn gives_way<L>(lock: &L, to_a_writer: impl FnOnce() -> bool) {
    if !ON {
        return;
    }
    let lock = ptr::from_ref(lock).addr();
    // A writer that gives up would end the wait.
    if Attempts::at(lock).none_while(to_a_writer)
        && let Some(found) = would_wait_for(lock, |hold| hold.mode != Mode::Write)
    {
        waits_for_itself(found, ", and a writer waits for that");
    }
}
