//! Tasks that wait for reader-writer locks, beside threads.

use super::common::{setting, until, watched_silently};
use super::pool::{Count, Pool, block_on, poll};
use lock_api::{RawRwLock, RawRwLockDowngrade, RwLock, RwLockWriteGuard};
use spanlock::rw::{AwaitRwLock, Bravo, ForTasks, ForeignRelease, FutexRwLock, PhaseFairTicket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::thread;

/// Many tasks on few threads, some of which are dropped while they wait, beside threads that wait.
#[expect(
    clippy::await_holding_lock,
    reason = "these guards may be held by tasks"
)]
fn storm<L: ForeignRelease + Default + Send + Sync + 'static>()
where
    L::SharedGuard: Sync,
    L::ExclusiveGuard: Sync,
{
    let turns = setting("SPANLOCK_TASK_TURNS", 300);
    let lock: Arc<RwLock<ForTasks<L>, u64>> = Arc::new(RwLock::from_raw(ForTasks::default(), 0));
    let written = Arc::new(AtomicUsize::new(0));
    let pool = Pool::default();
    for seed in 0..16 {
        let (lock, written) = (Arc::clone(&lock), Arc::clone(&written));
        pool.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..turns {
                if random.u32(..8) == 0 {
                    // Woken or not, it is dropped.
                    let mut dropped = lock.write_async();
                    drop(poll(&mut dropped, &Waker::from(Arc::new(Count::default()))));
                    continue;
                }
                if random.bool() {
                    let read = lock.read_async().await;
                    let before = *read;
                    std::future::ready(()).await;
                    assert_eq!(*read, before);
                } else {
                    *lock.write_async().await += 1;
                    written.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    watched_silently(|| {
        thread::scope(|scope| {
            for seed in 0..2 {
                let (lock, written) = (&lock, &written);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..turns {
                        match random.u32(..3) {
                            0 => {
                                *lock.write() += 1;
                                written.fetch_add(1, Ordering::Relaxed);
                            }
                            1 => drop(lock.read()),
                            _ => drop(lock.try_read()),
                        }
                    }
                });
            }
            scope.spawn(|| pool.run(2));
        });
    });
    assert_eq!(*lock.read(), written.load(Ordering::Relaxed) as u64);
    assert!(lock.try_write().is_some());
}

#[test]
fn tasks_of_a_futex_lock_and_threads_exclude_each_other() {
    storm::<FutexRwLock>();
}

#[test]
fn tasks_of_a_biased_lock_and_threads_exclude_each_other() {
    storm::<Bravo<FutexRwLock>>();
}

#[test]
fn tasks_of_a_phase_fair_lock_and_threads_exclude_each_other() {
    storm::<PhaseFairTicket>();
}

#[test]
fn a_task_that_is_not_polled_makes_way_for_the_next() {
    let lock: RwLock<ForTasks<FutexRwLock>, ()> = RwLock::from_raw(ForTasks::default(), ());
    let waker = Waker::from(Arc::new(Count::default()));
    watched_silently(|| {
        let held = lock.write();
        let mut dead = lock.write_async();
        assert!(poll(&mut dead, &waker).is_pending());
        let count = Arc::new(Count::default());
        let mut next = lock.read_async();
        assert!(poll(&mut next, &Waker::from(Arc::clone(&count))).is_pending());
        drop(held);
        until(|| count.woken() > 0);
        drop(block_on(next));
        drop(block_on(dead));
    });
}

/// Tasks wait in this order while somebody writes: some to read, and one to write.
fn behind_a_writer<L: ForeignRelease + RawRwLockDowngrade + Default>() {
    let lock: RwLock<ForTasks<L>, ()> = RwLock::from_raw(ForTasks::default(), ());
    for (is_downgraded, has_reader_before) in
        [(true, false), (true, true), (false, false), (false, true)]
    {
        let counts: [Arc<Count>; 3] = Default::default();
        let [first, second, third] = counts.clone().map(Waker::from);
        let held = lock.write();
        let mut before = lock.read_async();
        assert!(!has_reader_before || poll(&mut before, &first).is_pending());
        let mut writes = lock.write_async();
        assert!(poll(&mut writes, &second).is_pending());
        let mut reads = lock.read_async();
        assert!(poll(&mut reads, &third).is_pending());
        // From now on the lock is only read, and whoever reads waits for the last one.
        let held = match is_downgraded {
            true => RwLockWriteGuard::downgrade(held),
            false => {
                drop(held);
                lock.try_read().expect("nobody was polled")
            }
        };
        let before = match has_reader_before {
            true => {
                assert!(counts[0].woken() > 0);
                Some(poll(&mut before, &first))
            }
            false => {
                assert!(counts[1].woken() > 0);
                None
            }
        };
        // Its place may be given back to it as soon as it waits again, by an alarm.
        let woken = counts[1].woken();
        assert!(poll(&mut writes, &second).is_pending());
        assert!(counts[2].woken() > 0, "nobody writes");
        let Poll::Ready(reads) = poll(&mut reads, &third) else {
            panic!("nobody writes");
        };
        drop((held, before, reads));
        assert!(counts[1].woken() > woken, "it has kept its place");
        assert!(poll(&mut writes, &second).is_ready());
    }
}

#[test]
fn a_task_that_waits_to_write_holds_no_reading_task_back() {
    behind_a_writer::<FutexRwLock>();
    behind_a_writer::<Bravo<FutexRwLock>>();
    behind_a_writer::<PhaseFairTicket>();
}

#[test]
fn guards_and_futures_are_sent() {
    fn is_send(_: &impl Send) {}
    let lock: RwLock<ForTasks<Bravo<FutexRwLock>>, u32> = RwLock::from_raw(ForTasks::default(), 5);
    is_send(&lock.read_async());
    is_send(&lock.write_async());
    let guard = block_on(lock.write_async());
    thread::scope(|scope| {
        scope.spawn(move || drop(guard));
    });
    assert_eq!(*block_on(lock.read_async()), 5);
}

/// A lock whose tries fail, as they do while those of others are in the way.
#[derive(Default)]
struct InTheWay(FutexRwLock);

static FAILS: AtomicBool = AtomicBool::new(false);
static SEEMS_TAKEN: AtomicBool = AtomicBool::new(false);

// SAFETY: the lock inside excludes.
unsafe impl RawRwLock for InTheWay {
    const INIT: Self = Self(FutexRwLock::INIT);

    type SharedGuard = <FutexRwLock as RawRwLock>::SharedGuard;
    type ExclusiveGuard = <FutexRwLock as RawRwLock>::ExclusiveGuard;

    fn lock_shared(&self) -> Self::SharedGuard {
        self.0.lock_shared()
    }

    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        (!FAILS.load(Ordering::Relaxed)).then(|| self.0.try_lock_shared())?
    }

    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_shared(guard) };
    }

    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        self.0.lock_exclusive()
    }

    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        (!FAILS.load(Ordering::Relaxed)).then(|| self.0.try_lock_exclusive())?
    }

    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_exclusive(guard) };
    }

    fn is_locked(&self) -> bool {
        SEEMS_TAKEN.load(Ordering::Relaxed) || self.0.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: that of the lock inside is one.
unsafe impl ForeignRelease for InTheWay {}

/// The tries of two tasks were in each other's way. The last one finds that nobody holds the lock, and is to try again.
/// It is dropped instead, or never polled.
#[test]
fn a_task_that_is_to_try_again_and_does_not_makes_way_for_the_next() {
    let lock: RwLock<ForTasks<InTheWay>, ()> = RwLock::from_raw(ForTasks::default(), ());
    let waker = Waker::from(Arc::new(Count::default()));
    let fail = |fails, seems_taken| {
        FAILS.store(fails, Ordering::Relaxed);
        SEEMS_TAKEN.store(seems_taken, Ordering::Relaxed);
    };
    watched_silently(|| {
        for (is_first, is_dropped) in [(true, true), (true, false), (false, true), (false, false)] {
            let count = Arc::new(Count::default());
            let mut last = lock.write_async();
            let mut other = lock.write_async();
            fail(true, true);
            if is_first {
                assert!(poll(&mut last, &waker).is_pending());
            }
            assert!(poll(&mut other, &Waker::from(Arc::clone(&count))).is_pending());
            fail(true, false);
            assert!(poll(&mut last, &waker).is_pending());
            fail(false, false);
            let kept = (!is_dropped).then_some(last);
            until(|| count.woken() > 0);
            drop(block_on(other));
            drop(kept);
        }
    });
}
