//! Random work by many threads under one reader-writer lock, and an oracle that detects forbidden holders.
//!
//! The holders of a lock visit its slot. Threads use three locks at a time, so that slots of the readers' table go from
//! one lock to the other. Each configuration gets 100,000 operations by eight threads. `SPANLOCK_STRESS_OPS`,
//! `SPANLOCK_STRESS_THREADS` and `SPANLOCK_STRESS_SEED` choose other numbers.

mod common;

use common::{HANG, setting};
use fastrand::Rng;
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use spanlock_testkit::exact::Exact;
use spanlock_testkit::exclusion::{Holder, Slot, Visit};
use spanlock_testkit::watchdog;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Exact = Exact;

const LOCKS: usize = 3;

struct Guarded<L> {
    lock: L,
    slot: Slot,
}

impl<L: RawRwLock> Guarded<L> {
    fn new(lock: L) -> Self {
        let slot = Slot::default();
        Self { lock, slot }
    }

    /// Is inside while `meanwhile` runs. Called by holders only.
    fn stay(&self, holder: Holder, meanwhile: impl FnOnce()) {
        // SAFETY: the caller holds the lock, and releases it after this.
        let visit = unsafe { Visit::begin(slice::from_ref(&self.slot), holder) };
        meanwhile();
        visit.end();
    }

    /// Is inside as a reader while `meanwhile` runs, and leaves.
    fn stay_shared(&self, token: L::SharedGuard, meanwhile: impl FnOnce()) {
        self.stay(Holder::Reader, meanwhile);
        // SAFETY: this lock's token.
        unsafe { self.lock.unlock_shared(token) };
    }
}

/// All locks here can do this much.
trait Kind: RawRwLockTimed<Instant = Instant> + RawRwLockDowngrade + Sync {}
impl<L: RawRwLockTimed<Instant = Instant> + RawRwLockDowngrade + Sync> Kind for L {}

struct Worker<'a, L> {
    locks: &'a [Guarded<L>; LOCKS],
    random: Rng,
    written: [u64; LOCKS],
}

impl<L: Kind> Worker<'_, L> {
    fn work(&mut self) {
        let at = self.random.u64(..LOCKS as u64) as usize;
        let guarded = &self.locks[at];
        let deadline = Instant::now() + Duration::from_micros(self.random.u64(..60));
        let linger = self.random.u64(..200);
        let linger = move || match linger {
            0 => thread::yield_now(),
            1 => thread::sleep(Duration::from_micros(50)),
            pauses => (0..pauses).for_each(|_| std::hint::spin_loop()),
        };
        match self.random.u64(..32) {
            0..=15 => guarded.stay_shared(guarded.lock.lock_shared(), linger),
            16..=19 => {
                // Another lock inside: in order, so that nobody waits in a ring.
                let inner = self.locks[at + 1..].first();
                guarded.stay_shared(guarded.lock.lock_shared(), || {
                    if let Some(inner) = inner {
                        inner.stay_shared(inner.lock.lock_shared(), linger);
                    }
                });
            }
            20..=21 => {
                if let Some(token) = guarded.lock.try_lock_shared() {
                    guarded.stay_shared(token, linger);
                }
            }
            22..=23 => {
                if let Some(token) = guarded.lock.try_lock_shared_until(deadline) {
                    guarded.stay_shared(token, linger);
                }
            }
            24..=25 => self.write(at, guarded.lock.try_lock_exclusive(), linger),
            26..=28 => self.write(at, guarded.lock.try_lock_exclusive_until(deadline), linger),
            _ => self.write(at, Some(guarded.lock.lock_exclusive()), linger),
        }
    }

    fn write(&mut self, at: usize, token: Option<L::ExclusiveGuard>, linger: impl Fn()) {
        let Some(token) = token else { return };
        let guarded = &self.locks[at];
        guarded.stay(Holder::Writer(0), &linger);
        self.written[at] += 1;
        if self.random.u64(..4) > 0 {
            // SAFETY: this lock's token.
            return unsafe { guarded.lock.unlock_exclusive(token) };
        }
        // SAFETY: this lock's token.
        let token = unsafe { guarded.lock.downgrade(token) };
        guarded.stay_shared(token, linger);
    }
}

fn stress<L: Kind>(make: impl Fn() -> L) {
    let threads = setting("SPANLOCK_STRESS_THREADS", 8);
    let each = setting("SPANLOCK_STRESS_OPS", 100_000) / threads;
    let seed = setting("SPANLOCK_STRESS_SEED", 1);
    let mut locks = std::array::from_fn(|_| Guarded::new(make()));
    let done = &AtomicU64::new(0);
    let work = |number| {
        let mut worker = Worker {
            locks: &locks,
            random: Rng::with_seed(seed * threads + number),
            written: [0; LOCKS],
        };
        for _ in 0..each {
            worker.work();
            done.fetch_add(1, Relaxed);
        }
        worker.written
    };
    let report = |done: &u64| format!("after {done} operations");
    let progress = || done.load(Relaxed);
    let written: Vec<_> = watchdog::watched(HANG, progress, report, || {
        thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..threads)
                .map(|number| scope.spawn(move || work(number)))
                .collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join();
            let written = workers.into_iter().map(join);
            written
                .map(|written| written.expect("the oracle found nothing"))
                .collect()
        })
    });
    for (at, guarded) in locks.iter_mut().enumerate() {
        let free = guarded.lock.try_lock_exclusive();
        assert!(free.is_some(), "it stayed held");
        let written: u64 = written.iter().map(|by_worker| by_worker[at]).sum();
        assert_eq!(guarded.slot.writes(), written, "a write was lost");
    }
}

macro_rules! stress {
    ($($lock:ident),+ $(,)?) => {
        $(
            #[test]
            fn $lock() {
                stress(common::rw::$lock);
            }
        )+
    };
}

stress! {
    futex, futex_readers_first, ticket, queue, cohort, per_cpu, mutex, bravo_adaptive, bravo_eager, bravo_off,
    bravo_eager_readers_first, bravo_ticket, bravo_queue, bravo_cohort, bravo_mutex,
}
