//! What is reported to policies, and what they do to a lock.

use super::*;
use lock_api::{RwLockUpgradableReadGuard, RwLockWriteGuard};
use spanlock::rw::{Counted, Counts, Event, Policy};
use std::panic;

#[test]
fn what_happens_is_counted() {
    let bound = u32::MAX; // No bias is kept.
    let counted = |bias| {
        let policy = Counted::new(bias);
        RwLock::from_raw(
            Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), policy),
            0,
        )
    };
    let counts = |lock: &RwLock<Bravo<FutexRwLock, Counted<Bias>>, i32>| {
        // SAFETY: the test only reads its state and does not release it.
        unsafe { lock.raw() }.policy().counts()
    };
    let [off, eager] = [Bias::Off, Bias::Eager { bound }].map(counted);
    let start = Instant::now();
    for lock in [&off, &eager] {
        drop(lock.read());
        drop(lock.write());
        drop(lock.read());
    }
    assert_eq!((counts(&off).fast_reads, counts(&off).slow_reads), (0, 2));
    assert_eq!(counts(&off).revocations, 0);
    let seen = counts(&eager);
    assert_eq!(
        (seen.fast_reads, seen.slow_reads, seen.revocations),
        (1, 1, 1)
    );
    // It is inhibited for 67 ms at most.
    assert!(seen.inhibited > seen.revoking || start.elapsed() > Duration::from_millis(60));
    assert_eq!((seen.scans, seen.membarriers, seen.reopenings), (0, 1, 0));
    // Where there are few processors, the threads of other tests may come and go in the same row of the table.
    common::watched_silently(|| {
        loop {
            let inner = counted(Bias::Eager { bound });
            drop((eager.read(), inner.read()));
            if counts(&inner).collisions == 1 {
                break;
            }
        }
    });

    let adaptive = counted(Bias::Adaptive { bound });
    (0..10_000).for_each(|_| drop(adaptive.read()));
    let seen = counts(&adaptive);
    assert!(seen.fast_reads > seen.slow_reads, "{seen}");
}

type Observed = RwLock<Bravo<FutexRwLock, Counted<Bias>>, i32>;

fn observed() -> Observed {
    let eager = Counted::new(Bias::EAGER);
    RwLock::from_raw(Bravo::with_policy(FutexRwLock::new(), eager), 0)
}

fn counts_of(lock: &Observed) -> Counts {
    // SAFETY: the test only reads its state and does not release it.
    unsafe { lock.raw() }.policy().counts()
}

/// The next lock at a place is biased from birth, though the thread has just read one there that never was: it finds
/// the bias when it looks again.
#[test]
fn a_lock_that_is_gone_leaves_few_skips() {
    let off = Bravo::with_policy(FutexRwLock::new(), Counted::new(Bias::Off));
    let mut place = RwLock::from_raw(off, 0);
    (0..4).for_each(|_| drop(place.read()));
    assert_eq!(counts_of(&place).slow_reads, 4);
    place = observed();
    (0..32).for_each(|_| drop(place.read()));
    assert!(counts_of(&place).fast_reads >= 16);
}

/// A thread that tries to write a lock that is read by the table, again and again, costs its readers nothing.
#[test]
fn tries_to_write_leave_readers_their_bias() {
    let lock = observed();
    let reading = lock.read();
    for _ in 0..100 {
        assert!(elsewhere(|| lock.try_write().is_none()));
        assert!(elsewhere(|| lock.try_read().is_some()));
    }
    let seen = counts_of(&lock);
    assert_eq!((seen.fast_reads, seen.slow_reads), (101, 0));
    assert_eq!((seen.withdrawals, seen.revocations), (0, 0));
    drop(reading);
    assert!(lock.try_write().is_some());
    assert_eq!(counts_of(&lock).revocations, 1);
}

/// Writers who revoke and give up are counted, and leave the bias.
#[test]
fn writers_that_give_up_count() {
    let lock = observed();
    let reading = lock.read();
    for given_up in 1..=8 {
        assert!(elsewhere(|| lock.try_write_for(SHORT / 8).is_none()));
        assert_eq!(counts_of(&lock).withdrawals, given_up);
    }
    drop(lock.read());
    assert_eq!(counts_of(&lock).fast_reads, 2);
    drop(reading);
    drop(lock.write());
    let seen = counts_of(&lock);
    assert_eq!((seen.revocations, seen.withdrawals), (1, 8));
    assert_eq!(seen.scans + seen.membarriers, 9, "{seen}");
}

/// A bias that is kept is there again when the last writer has left, however it came and left.
#[test]
fn the_last_writer_opens_the_path_again() {
    let kept = Bias::Eager { bound: 0 };
    let lock = Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), Counted::new(kept));
    let lock = RwLock::from_raw(lock, 0);
    for written in 1..=5 {
        match written {
            1 => {
                let mut guard = lock.write();
                thread::sleep(SHORT / 8);
                *guard += 1;
            }
            2 => *lock.try_write().expect("free") += 1,
            3 => *lock.try_write_for(HANG).expect("free") += 1,
            4 => {
                let mut guard = lock.write();
                *guard += 1;
                let guard = RwLockWriteGuard::downgrade(guard);
                assert_eq!(*lock.read(), written, "beside the reader");
                drop(guard);
            }
            _ => {
                let guard = lock.upgradable_read();
                *RwLockUpgradableReadGuard::upgrade(guard) += 1;
            }
        }
        let before = counts_of(&lock);
        assert_eq!(
            before.reopenings,
            u64::from(written.cast_unsigned()),
            "{before}"
        );
        assert_eq!(*lock.try_read().expect("free"), written);
        assert_eq!(counts_of(&lock).fast_reads, before.fast_reads + 1);
    }
    let seen = counts_of(&lock);
    assert_eq!((seen.revocations, seen.scans + seen.membarriers), (5, 5));
    assert!(seen.closed >= SHORT / 8, "{seen}");
}

/// A reader that has waited for the path in vain gets in by the underlying lock, and takes the path the next time.
#[test]
fn a_wait_in_vain_leaves_no_hint() {
    let kept = Counted::new(Bias::Eager { bound: 0 });
    let lock = Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), kept);
    let lock = RwLock::from_raw(lock, 0);
    let writing = lock.write();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let waited = *lock.read();
            (waited, *lock.read())
        });
        thread::sleep(SHORT);
        drop(writing);
        assert_eq!(reader.join().expect("it reads"), (0, 0));
    });
    let seen = counts_of(&lock);
    assert_eq!(
        (seen.fast_reads + seen.slow_reads, seen.fast_reads.min(1)),
        (2, 1)
    );
}

/// A bias that is set for long makes its readers' stores plain: then a revocation fences for all threads.
#[test]
fn a_bias_that_lives_long_becomes_free() {
    let lock = observed(); // Its bias is free from birth.
    let scans = |reads| {
        let before = counts_of(&lock);
        (0..reads).for_each(|_| drop(lock.read()));
        drop(lock.write());
        let seen = counts_of(&lock);
        assert_eq!(seen.revocations, before.revocations + 1);
        let new = [
            seen.scans - before.scans,
            seen.membarriers - before.membarriers,
        ];
        assert!(matches!(new, [1, 0] | [0, 1]), "{seen}");
        new == [1, 0]
    };
    assert!(!scans(1));
    // Looks at the clock come by chance, and the account's clock wraps.
    let becomes_free = || while scans(30_000) {};
    common::watched_silently(becomes_free);
    // A young one does not. That says nothing where the thread was stopped meanwhile.
    let shorter = Duration::from_micros(100);
    let young = (0..1000).filter_map(|_| {
        let start = Instant::now();
        scans(1); // The path may be open already: it closes here, and opens again.
        let scans = scans(300);
        (start.elapsed() < shorter).then_some(scans)
    });
    assert!(young.take(20).all(|scans| scans));
    common::watched_silently(becomes_free);
}

/// A policy that panics would leave the lock held: the process ends.
#[cfg(target_os = "linux")]
#[test]
fn a_policy_that_panics_aborts() {
    struct Panics;
    impl Policy for Panics {
        const INIT: Self = Self;
        fn bias(&self) -> Bias {
            Bias::STANDARD
        }
        fn on(&self, _: Event) {
            panic::resume_unwind(Box::new(()));
        }
    }
    let lock = RwLock::<Bravo<FutexRwLock, Panics>, u32>::new(0);
    let status = common::status_of_child(|| {
        _ = panic::catch_unwind(panic::AssertUnwindSafe(|| drop(lock.read())));
        true
    });
    assert!(libc::WIFSIGNALED(status), "{status}");
    assert_eq!(libc::WTERMSIG(status), libc::SIGABRT);
}

/// A thread that has read by the slow path finds the next bias.
#[test]
fn skipping_the_fast_path_ends() {
    let bound = u32::MAX; // No bias is kept, and the next one comes late.
    let adaptive = Counted::new(Bias::Adaptive { bound });
    let lock = Bravo::with_policy(FutexRwLock::new(), adaptive);
    let lock: Observed = RwLock::from_raw(lock, 0);
    let fast_reads = |many| {
        let before = counts_of(&lock).fast_reads;
        // When a bias may be tried depends on the clock.
        while counts_of(&lock).fast_reads < before + many {
            drop(lock.read());
        }
    };
    common::watched_silently(|| fast_reads(1));
    drop(lock.write());
    let seen = counts_of(&lock);
    assert_eq!((seen.revocations, seen.reopenings), (1, 0));
    drop(lock.read()); // By the slow path: the next few skip the fast path.
    common::watched_silently(|| fast_reads(1000));
}
