//! The looks: which queues are watched, when somebody looks, and what comes of it.
//!
//! ```text
//!   a request sleeps in a lock that detects:  the queue is watched, and the timer is asked to call
//!   the timer calls:    look at all watched queues and accounts, each under its own mutex
//!     a ring?                 look again soon
//!     the same waits again?   refuse one of them, or tell it, unless it is told already
//!     no request in a queue?  it is not watched any more
//!   a lock is dropped:  its queue is not watched any more
//! ```
//!
//! A look reads one queue after the other, so what it has read need not have been so at one time. Say it finds a ring
//! among requests that the look before has found, too, in the same order, each behind the same holders. Each of them
//! has waited from the one look to the other, as numbers of requests and of queues are not used again. Then all of them
//! waited at the moment between the looks, and nobody who waits releases anything [second-look].
//!
//! A look calls foreign code, which writes keys. It must not wait. If it sleeps in a lock that detects all the same,
//! looks go on: whoever sleeps needs another mutex than the one that the look holds.
//!
//! What is remembered from look to look is about waits, and not about requests: a request that waits for another holder
//! may be part of another ring. It is forgotten when one of these waits is another or over at two looks. A refusal is
//! not remembered: its request is woken, so that its ring is gone at the next look; a request that was awake just then
//! is refused later.

use super::account::{Account, Accounts};
use super::graph::{self, Key, Ring, ToldRing, Wait};
use super::report::{self, Deadlock, NotPolled, Report};
use super::{Answer, Detection};
use crate::observe::{self, LongHold};
use prim::atomic::{AtomicBool, AtomicU64, Ordering};
use prim::clock::{Duration, Instant};
use prim::contain;
use prim::sync::{Arc, Mutex, MutexGuard, Weak};
use prim::thread;
use prim::timer::{self, Due};
use std::collections::BTreeMap;
use std::fmt;
use std::mem;

/// A queue whose requests are looked at.
pub(crate) trait Watched: Send + Sync {
    /// Its [number](new_number).
    fn number(&self) -> u64;

    /// How it is to be looked at.
    fn detection(&self) -> Detection;

    /// Adds its requests to what is seen. `false`: it has none. Then it has [forgotten](forget) itself, before another
    /// request could have it watched again.
    fn look(self: Arc<Self>, seen: &mut Seen) -> bool;

    /// Refuses a request of its own, which is one of a deadlock, if it still waits like that.
    fn refuse(self: Arc<Self>, request: u64, wait: &Wait, deadlock: &Deadlock);

    /// Writes its requests for people.
    fn describe(&self, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// What a look finds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) waits: Vec<Wait>,
    pub(crate) idle: Vec<Idle>,
}

/// A task that was woken, and was not polled since then.
#[derive(Debug)]
pub(crate) struct Idle {
    pub(crate) key: Key,
    pub(crate) since: Instant,
    pub(crate) what: NotPolled,
}

/// The part of a period between a look that finds a ring, and the next.
const SOON: u32 = 8;

/// The most tasks that one look tells of.
const MOST_IDLE: usize = 8;

/// Which queues and accounts there are to look at, and when. Its mutex is held for a moment at a time, and no other is
/// taken meanwhile.
struct State {
    /// The generation of forked processes that it belongs to.
    forks: u32,
    /// By their numbers.
    watched: BTreeMap<u64, Weak<dyn Watched>>,
    accounts: Accounts,
    /// Called by the timer.
    tick: Option<Arc<Tick>>,
    next: Option<Instant>,
}

/// What looks remember. Its mutex is held by the one that looks.
struct Remembered {
    /// As in [`State`].
    forks: u32,
    /// What the last look found.
    before: BTreeMap<Key, Wait>,
    /// Which rings were told, and last; and which waits for what the owner itself holds.
    told: Vec<ToldRing>,
    /// Which tasks were told that are not polled, and were not since then.
    idle: BTreeMap<Key, Instant>,
    /// Since when waits are seen, behind the same holders; `None`: the observer was told.
    long: BTreeMap<Key, Option<Instant>>,
}

impl State {
    const fn new(forks: u32) -> Self {
        Self {
            forks,
            watched: BTreeMap::new(),
            accounts: Accounts::new(),
            tick: None,
            next: None,
        }
    }
}

impl Remembered {
    const fn new(forks: u32) -> Self {
        Self {
            forks,
            before: BTreeMap::new(),
            told: Vec::new(),
            idle: BTreeMap::new(),
            long: BTreeMap::new(),
        }
    }
}

/// Those of a process and of its children.
const GENERATIONS: usize = 4;

prim::global! {
    /// A fork may come while a thread of the parent has the mutex, and that thread is not in the child. So a child has
    /// another one.
    static STATES: [Mutex<State>; 4] = prim::array!(Mutex::new(State::new(0)); 4);
}

prim::global! {
    static MEMORIES: [Mutex<Remembered>; 4] = prim::array!(Mutex::new(Remembered::new(0)); 4);
}

prim::global! {
    static REFUSED: AtomicBool = AtomicBool::new(false);
}

prim::global! {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
}

/// A number for a queue or a request, which no other has. An address may be another's when its lock is dropped.
pub(crate) fn new_number() -> u64 {
    // Relaxed: each number is handed out once, and nothing else matters.
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

fn state() -> MutexGuard<'static, State> {
    let forks = thread::forks();
    let mut state = STATES[forks as usize % GENERATIONS].lock();
    if state.forks != forks {
        *state = State::new(forks);
    }
    state
}

fn remembered() -> MutexGuard<'static, Remembered> {
    let forks = thread::forks();
    let mut remembered = MEMORIES[forks as usize % GENERATIONS].lock();
    if remembered.forks != forks {
        *remembered = Remembered::new(forks);
    }
    remembered
}

/// Changes the accounts.
pub(super) fn with_accounts(change: impl FnOnce(&mut Accounts)) {
    change(&mut state().accounts);
}

/// Watches a queue, in which a request sleeps.
#[cold] // The first after none did.
pub(crate) fn watch(queue: &Arc<impl Watched + 'static>, detection: Detection) {
    let watched: Weak<dyn Watched> = Arc::downgrade(queue) as Weak<dyn Watched>;
    state().watched.insert(queue.number(), watched);
    call_by(Instant::now() + detection.every);
}

/// Forgets a queue that is dropped while it is watched: otherwise its memory would stay until the next look.
#[cold]
pub(crate) fn forget(queue: u64) {
    let forgotten = state().watched.remove(&queue);
    drop(forgotten);
}

/// Has the timer call, for the sake of locks without a queue.
#[cfg(feature = "rw")]
pub(crate) fn watch_accounts(detection: Detection) {
    call_by(Instant::now() + detection.every);
}

/// Whether requests that sleep in watched queues have to ask for a call, too: the timer has refused one.
pub(crate) fn is_refused() -> bool {
    // Relaxed: the next request that sleeps there sees it.
    REFUSED.load(Ordering::Relaxed)
}

/// Has the timer call by that time. The timer may be the program's.
fn call_by(when: Instant) {
    let mut state = state();
    let later = state.next;
    if later.is_some_and(|next| next <= when) {
        return;
    }
    state.next = Some(when);
    let tick = state.tick.get_or_insert_with(|| Arc::new(Tick));
    let whom: Weak<dyn Due> = Arc::downgrade(tick) as Weak<dyn Due>;
    drop(state);
    if timer::at(when, whom) {
        return REFUSED.store(false, Ordering::Relaxed);
    }
    let mut state = self::state();
    if state.next != Some(when) {
        return;
    }
    state.next = None;
    drop(state);
    match later {
        // Who asked for that call before may have been refused, too.
        Some(later) => call_by(later),
        None => REFUSED.store(true, Ordering::Relaxed),
    }
}

/// What the timer calls.
struct Tick;

impl Due for Tick {
    fn due(self: Arc<Self>, at: Instant) {
        // Dropped after the mutexes are free, whatever happens: who is the last to know a queue forgets it.
        let queues: Vec<_>;
        let mut remembered = remembered();
        let mut state = state();
        if state.next.is_none_or(|next| next > at) {
            // An earlier call has done its work.
            return;
        }
        state.next = None;
        state.watched.retain(|_, queue| queue.strong_count() > 0);
        queues = state.watched.values().filter_map(Weak::upgrade).collect();
        drop(state);
        // The call may be late: the next look is to come some time after this one.
        let found = look(&mut remembered, &queues, Instant::now().max(at));
        drop(remembered);
        // What follows may be foreign code.
        found.next.into_iter().for_each(call_by);
        found.tell(&queues);
    }
}

/// What is to be done when the mutex is free.
#[derive(Default)]
struct Found {
    /// When to look again, if there is anything to look at.
    next: Option<Instant>,
    reports: Vec<Report>,
    refusals: Vec<(Wait, Deadlock)>,
    holds: Vec<LongHold>,
}

impl Found {
    fn tell(self, queues: &[Arc<dyn Watched>]) {
        for (wait, deadlock) in &self.refusals {
            if let Some((queue, request)) = queue_of(queues, wait.key) {
                Arc::clone(queue).refuse(request, wait, deadlock);
            }
        }
        for hold in &self.holds {
            observe::tell(|observer| observer.held_for_long(hold));
        }
        for report in &self.reports {
            contain(|| report::tell(report));
        }
    }
}

/// The queue of a request, and its number there.
fn queue_of(queues: &[Arc<dyn Watched>], key: Key) -> Option<(&Arc<dyn Watched>, u64)> {
    match key {
        Key::Request(queue, request) => {
            let is_it = |other: &&Arc<dyn Watched>| other.number() == queue;
            queues.iter().find(is_it).map(|queue| (queue, request))
        }
        #[cfg(feature = "rw")]
        Key::Account(_) => None,
    }
}

fn look(remembered: &mut Remembered, queues: &[Arc<dyn Watched>], now: Instant) -> Found {
    let mut seen = Seen::default();
    let mut every: Option<Duration> = None;
    for queue in queues {
        if Arc::clone(queue).look(&mut seen) {
            let period = queue.detection().every;
            every = Some(every.map_or(period, |every| every.min(period)));
        }
    }
    let accounts = state().accounts.all().to_vec();
    if !accounts.is_empty() {
        every = every.or(super::by_environment().map(|detection| detection.every));
        graph::join(&mut seen.waits, &accounts);
    }
    let mut found = Found::default();
    let Some(every) = every else {
        (remembered.before, remembered.idle, remembered.long) = Default::default();
        remembered.told.clear();
        return found;
    };
    tell_idle(&mut remembered.idle, seen.idle, every, &mut found);
    let now_waiting: BTreeMap<Key, Wait> = seen
        .waits
        .into_iter()
        .map(|wait| (wait.key, wait))
        .collect();
    if observe::is_set() {
        note_long(remembered, &now_waiting, every, now, &mut found);
    }
    // Others may have woken one of them just now, and it goes back to sleep.
    let lasts = |ring: &ToldRing| ring.lasts(&now_waiting) || ring.lasts(&remembered.before);
    remembered.told.retain(lasts);
    let is_new = |told: &[ToldRing], ring: &Ring<'_>| !told.iter().any(|told| told.is(ring));
    // [second-look]
    let again = |wait: &&Wait| {
        remembered.before.get(&wait.key) == Some(wait) || !prim::intact!("second-look")
    };
    for ring in graph::rings(now_waiting.values().filter(again)) {
        let refuses = |wait: &&Wait| {
            let queue = queue_of(queues, wait.key);
            queue.is_some_and(|(queue, _)| queue.detection().answer == Answer::Refuse)
        };
        match ring.of_owners().into_iter().find(refuses) {
            Some(victim) => found.refusals.push((victim.clone(), ring.told())),
            None if is_new(&remembered.told, &ring) => {
                found.reports.push(Report::Deadlock(ring.told()));
                remembered.told.push(ToldRing::new(&ring));
            }
            None => {}
        }
    }
    for own in graph::for_own(now_waiting.values().filter(again)) {
        if is_new(&remembered.told, &own) {
            let steps = own.told().steps;
            found
                .reports
                .extend(steps.into_iter().map(Report::OwnRange));
            remembered.told.push(ToldRing::new(&own));
        }
    }
    let mut suspects = graph::rings(now_waiting.values());
    suspects.extend(graph::for_own(now_waiting.values()));
    let is_suspect = suspects.iter().any(|ring| is_new(&remembered.told, ring));
    drop(suspects);
    let next = if is_suspect { every / SOON } else { every };
    remembered.before = now_waiting;
    found.next = Some(now + next);
    found
}

/// Notes since when waits last, and which holders were in the way of one for a period.
fn note_long(
    remembered: &mut Remembered,
    waiting: &BTreeMap<Key, Wait>,
    every: Duration,
    now: Instant,
    found: &mut Found,
) {
    let mut noted = BTreeMap::new();
    for (&key, wait) in waiting {
        let is_same = remembered.before.get(&key) == Some(wait);
        let known = remembered.long.get(&key).filter(|_| is_same);
        let mut since = known.copied().unwrap_or(Some(now));
        if let Some(first) = since
            && now.saturating_duration_since(first) >= every
        {
            let at_least = now.saturating_duration_since(first);
            for &(owner, held) in &wait.behind {
                let lock = wait.lock;
                let is_told =
                    |hold: &LongHold| (hold.owner, hold.lock, hold.held) == (owner, lock, held);
                if !found.holds.iter().any(is_told) {
                    found.holds.push(LongHold {
                        owner,
                        lock,
                        held,
                        at_least,
                    });
                }
            }
            since = None;
        }
        noted.insert(key, since);
    }
    remembered.long = noted;
}

/// Tells of tasks that have not been polled for a period.
fn tell_idle(
    told: &mut BTreeMap<Key, Instant>,
    idle: Vec<Idle>,
    every: Duration,
    found: &mut Found,
) {
    let (known, mut remaining) = (mem::take(told), BTreeMap::new());
    for Idle { key, since, what } in idle {
        if known.get(&key) == Some(&since) {
            remaining.insert(key, since);
        } else if what.at_least >= every {
            // Where an executor stands still, as many as a report is read of.
            if found.reports.len() < MOST_IDLE {
                found.reports.push(Report::NotPolled(what));
            }
            remaining.insert(key, since);
        }
    }
    *told = remaining;
}

/// Writes the requests of all watched queues, and all accounts.
pub(super) fn describe(text: &mut dyn fmt::Write) -> fmt::Result {
    let state = state();
    let watched = state.watched.values();
    let queues: Vec<_> = watched.filter_map(Weak::upgrade).collect();
    let accounts: Vec<Account> = state.accounts.all().to_vec();
    drop(state);
    for queue in queues {
        queue.describe(text)?;
    }
    for account in accounts {
        report::describe(&account, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
