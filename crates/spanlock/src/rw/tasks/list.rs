//! The tasks that wait for a reader-writer lock, who of them was woken, and until when.
//!
//! The edges are the parent module's.

use crate::wait::{Alarm, Wakers};
use prim::atomic::{AtomicU32, Ordering};
use prim::barrier;
use prim::clock::{Duration, Instant};
use prim::sync::{Arc, Mutex, OnceLock, Weak};
use prim::timer::{self, Due};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::task::Waker;

/// How long a woken task holds the others up.
const TURN: Duration = Duration::from_millis(1);

/// The tasks that wait.
pub(super) struct Tasks {
    /// How many sleep: no less than there are.
    listed: AtomicU32,
    list: OnceLock<Arc<Shared>>,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("listed", &self.listed)
            .finish()
    }
}

struct Shared(Mutex<List>);

#[derive(Default)]
struct List {
    asleep: BTreeMap<u64, Sleeper>,
    /// Those that were woken and have not been polled since.
    woken: BTreeSet<u64>,
    named: u64,
    alarm: Alarm,
}

struct Sleeper {
    reads: bool,
    waker: Waker,
}

/// Why a task waits no longer.
#[derive(Clone, Copy)]
pub(super) enum Ended {
    Dropped,
    /// It has got in.
    Reads,
    Writes,
}

/// What is to be done when the mutex is free.
#[derive(Default)]
struct Later {
    wakers: Wakers,
    alarm: Option<Instant>,
}

impl List {
    /// Wakes the first that sleeps, and with a reader all readers.
    fn wake(&mut self, later: &mut Later) {
        let Some(first) = self.asleep.first_entry() else {
            return;
        };
        if first.get().reads {
            return self.wake_readers(later);
        }
        let (name, sleeper) = first.remove_entry();
        self.woken.insert(name);
        later.wakers.wake(Some(sleeper.waker));
    }

    /// Wakes all readers. No writer keeps its place before them where they read together.
    fn wake_readers(&mut self, later: &mut Later) {
        let readers = self.asleep.extract_if(.., |_, sleeper| sleeper.reads);
        for (name, sleeper) in readers {
            self.woken.insert(name);
            later.wakers.wake(Some(sleeper.waker));
        }
    }

    /// The turn of those that are woken ends, if others sleep.
    fn limit(&mut self, later: &mut Later) {
        if self.asleep.is_empty() || self.woken.is_empty() {
            return;
        }
        let ends = Instant::now() + TURN;
        if self.alarm.set(ends) {
            later.alarm = Some(ends);
        }
    }

    fn ring(&mut self, at: Instant, later: &mut Later) {
        if !self.alarm.rings(at) {
            return;
        }
        let any = !std::mem::take(&mut self.woken).is_empty();
        // [woken-turn-ends] Those who were woken and have been polled have taken the lock, or found it taken: then a
        // release comes.
        if any && prim::intact!("woken-turn-ends") {
            self.wake(later);
        }
        self.limit(later);
    }
}

impl Shared {
    fn finish(self: &Arc<Self>, later: Later) {
        let Later {
            mut wakers,
            mut alarm,
        } = later;
        // First: foreign code may take its time.
        while let Some(when) = alarm {
            if timer::at(when, Arc::downgrade(self) as Weak<dyn Due>) {
                break;
            }
            let mut later = Later::default();
            self.0.lock().ring(when, &mut later);
            wakers.append(later.wakers);
            alarm = later.alarm;
        }
        wakers.call();
    }
}

impl Due for Shared {
    fn due(self: Arc<Self>, at: Instant) {
        let mut later = Later::default();
        self.0.lock().ring(at, &mut later);
        self.finish(later);
    }
}

impl Tasks {
    prim::const_fn! {
        pub(super) const fn new() -> Self {
            Self {
                listed: AtomicU32::new(0),
                list: OnceLock::new(),
            }
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut List, &mut Later) -> R) -> R {
        let shared = self
            .list
            .get_or_init(|| Arc::new(Shared(Mutex::new(List::default()))));
        let mut later = Later::default();
        let mut list = shared.0.lock();
        let result = change(&mut list, &mut later);
        list.limit(&mut later);
        let asleep = u32::try_from(list.asleep.len()).unwrap_or(u32::MAX);
        // Relaxed: the fences order it. Under the mutex, and never too low: the timer only wakes.
        self.listed.store(asleep, Ordering::Relaxed);
        drop(list);
        shared.finish(later);
        result
    }

    /// Lists a task that has to wait, at its place.
    pub(super) fn list(&self, name: &mut Option<u64>, reads: bool, waker: &Waker) {
        let waker = waker.clone();
        self.change(|list, later| {
            let name = *name.get_or_insert_with(|| {
                list.named += 1;
                list.named
            });
            list.woken.remove(&name);
            let old = list.asleep.insert(name, Sleeper { reads, waker });
            later.wakers.discard(old.map(|old| old.waker));
        });
        barrier::prepare();
        // [task-listed] Pairs with [task-released].
        if prim::intact!("task-listed") {
            barrier::heavy();
        }
    }

    /// A task waits no longer.
    pub(super) fn unlist(&self, name: u64, why: Ended) {
        self.change(|list, later| {
            let old = list.asleep.remove(&name);
            later.wakers.discard(old.map(|old| old.waker));
            let was_woken = list.woken.remove(&name);
            // [woken-passes-on]
            match why {
                _ if !prim::intact!("woken-passes-on") => {}
                Ended::Dropped if was_woken => list.wake(later),
                Ended::Reads => list.wake_readers(later),
                Ended::Dropped | Ended::Writes => {}
            }
        });
    }

    #[inline]
    pub(super) fn tried<G>(&self, acquired: Option<G>) -> Option<G> {
        if acquired.is_none() {
            self.failed();
        }
        acquired
    }

    /// A try has failed, which may have made another fail.
    #[cold]
    fn failed(&self) {
        // [failed-looks]
        if prim::intact!("failed-looks") {
            self.released();
        }
    }

    /// Something was released.
    #[inline]
    pub(super) fn released(&self) {
        // [task-released] Pairs with [task-listed].
        if prim::intact!("task-released") {
            barrier::light();
        }
        if self.listed.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// The lock is read: wakes the readers of the list.
    pub(super) fn wake_readers(&self) {
        self.change(List::wake_readers);
    }

    /// Wakes the first of the list, unless others were woken and have not been polled.
    #[cold] // A task sleeps.
    pub(super) fn wake(&self) {
        self.change(|list, later| {
            if list.woken.is_empty() {
                list.wake(later);
            }
        });
    }
}
