//! Random work by many threads under one reader-writer lock, and an oracle that notices who is inside and should not
//! be.
//!
//! Whoever holds the lock says so by Relaxed operations, which add no ordering that the lock might lack, and touches
//! a plain cell, for sanitizers and for lost updates. Three locks at a time, so that slots of the table go from one
//! to the other. 400,000 operations per configuration unless `SPANLOCK_STRESS_OPS` says otherwise, by eight threads
//! unless `SPANLOCK_STRESS_THREADS` does; `SPANLOCK_STRESS_SEED` chooses other ones.

mod common;

use common::{HANG, Random, abort, setting};
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use spanlock::rw::{
    Bias, Bravo, CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, PhaseFairQueue,
    PhaseFairTicket, ReadersFirst, Tuning, WritersFirst,
};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const LOCKS: usize = 3;

struct Guarded<L> {
    lock: L,
    /// Readers inside, or -1 for a writer.
    owner: AtomicI32,
    content: UnsafeCell<u64>,
}

// SAFETY: the content is touched by those who hold the lock; if the lock is wrong, that is what the test is for.
unsafe impl<L: Sync> Sync for Guarded<L> {}

impl<L: RawRwLock> Guarded<L> {
    fn new(lock: L) -> Self {
        Self {
            lock,
            owner: AtomicI32::new(0),
            content: UnsafeCell::new(0),
        }
    }

    /// Called by holders only.
    fn content(&self) -> u64 {
        // SAFETY: held.
        unsafe { *self.content.get() }
    }

    /// Is inside as a reader while `meanwhile` runs, and leaves.
    fn stay_shared(&self, token: L::SharedGuard, meanwhile: impl FnOnce()) {
        assert!(self.owner.fetch_add(1, Relaxed) >= 0, "beside a writer");
        let found = self.content();
        meanwhile();
        assert_eq!(self.content(), found, "changed under a reader");
        assert!(self.owner.fetch_sub(1, Relaxed) > 0, "a writer came in");
        // SAFETY: this lock's token.
        unsafe { self.lock.unlock_shared(token) };
    }

    /// Is inside as a writer while `meanwhile` runs; does not leave.
    fn stay_exclusive(&self, meanwhile: impl FnOnce()) {
        assert_eq!(self.owner.swap(-1, Relaxed), 0, "a writer beside others");
        // SAFETY: held exclusively.
        unsafe { *self.content.get() += 1 };
        meanwhile();
        assert_eq!(self.owner.swap(0, Relaxed), -1, "somebody came in");
    }
}

/// All locks here can do this much.
trait Kind: RawRwLockTimed<Instant = Instant> + RawRwLockDowngrade + Sync {}
impl<L: RawRwLockTimed<Instant = Instant> + RawRwLockDowngrade + Sync> Kind for L {}

struct Worker<'a, L> {
    locks: &'a [Guarded<L>; LOCKS],
    random: Random,
    written: [u64; LOCKS],
}

impl<L: Kind> Worker<'_, L> {
    fn work(&mut self) {
        let at = self.random.below(LOCKS as u64) as usize;
        let guarded = &self.locks[at];
        let deadline = Instant::now() + Duration::from_micros(self.random.below(60));
        let linger = self.random.below(200);
        let linger = move || match linger {
            0 => thread::yield_now(),
            1 => thread::sleep(Duration::from_micros(50)),
            pauses => (0..pauses).for_each(|_| std::hint::spin_loop()),
        };
        match self.random.below(32) {
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
        guarded.stay_exclusive(&linger);
        self.written[at] += 1;
        if self.random.below(4) > 0 {
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
    let each = setting("SPANLOCK_STRESS_OPS", 400_000) / threads;
    let seed = setting("SPANLOCK_STRESS_SEED", 1);
    let locks = &std::array::from_fn(|_| Guarded::new(make()));
    let progress = &AtomicU64::new(0);
    let name = thread::current().name().map(str::to_owned);
    let written = thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut before = 0;
            while ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
                let now = progress.load(Relaxed);
                if now == before {
                    abort(&format!("{name:?} hangs after {now} operations"));
                }
                before = now;
            }
        });
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let mut worker = Worker {
                        locks,
                        random: Random::new(seed * threads + number),
                        written: [0; LOCKS],
                    };
                    for _ in 0..each {
                        worker.work();
                        progress.fetch_add(1, Relaxed);
                    }
                    worker.written
                })
            })
            .collect();
        let mut written = [0; LOCKS];
        for worker in workers {
            let by_worker = worker.join().expect("the oracle found nothing");
            for (all, some) in written.iter_mut().zip(by_worker) {
                *all += some;
            }
        }
        drop(running);
        written
    });
    for (guarded, written) in locks.iter().zip(written) {
        assert!(
            guarded.lock.try_lock_exclusive().is_some(),
            "it stayed held"
        );
        assert_eq!(guarded.content(), written, "a write was lost");
    }
}

fn biased<L: RawRwLock>(bias: Bias) -> Bravo<L, Tuning> {
    Bravo::with_policy(L::INIT, Tuning { bias, bound: 9 })
}

#[test]
fn futex_writers_first() {
    stress(FutexRwLock::<WritersFirst>::new);
}

#[test]
fn futex_readers_first() {
    stress(FutexRwLock::<ReadersFirst>::new);
}

#[test]
fn ticket() {
    stress(PhaseFairTicket::new);
}

#[test]
fn queue() {
    stress(PhaseFairQueue::new);
}

#[test]
fn cohort() {
    stress(CohortRwLock::<2>::new);
}

#[test]
fn per_cpu() {
    stress(PerCpu::<FutexRwLock, 4>::new);
}

#[test]
fn mutex() {
    stress(|| MutexRwLock::from_mutex(FutexMutex::new()));
}

#[test]
fn bravo_adaptive() {
    stress(|| biased::<FutexRwLock>(Bias::Adaptive));
}

#[test]
fn bravo_eager() {
    stress(|| biased::<FutexRwLock>(Bias::Eager));
}

#[test]
fn bravo_off() {
    stress(|| biased::<FutexRwLock>(Bias::Off));
}

#[test]
fn bravo_readers_first() {
    stress(|| biased::<FutexRwLock<ReadersFirst>>(Bias::Eager));
}

#[test]
fn bravo_ticket() {
    stress(|| biased::<PhaseFairTicket>(Bias::Eager));
}

#[test]
fn bravo_queue() {
    stress(|| biased::<PhaseFairQueue>(Bias::Eager));
}

#[test]
fn bravo_cohort() {
    stress(|| biased::<CohortRwLock<2>>(Bias::Eager));
}

#[test]
fn bravo_mutex() {
    stress(|| biased::<MutexRwLock<FutexMutex>>(Bias::Eager));
}
