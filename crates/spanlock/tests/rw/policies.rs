//! What is reported to policies, and what they do to a lock.

use super::*;
use spanlock::rw::{Counted, Counts, Event, Policy};
use std::panic;

#[test]
fn what_happens_is_counted() {
    let counted = |bias| {
        let bound = Tuning::STANDARD.bound;
        let policy = Counted::new(Tuning { bias, bound });
        RwLock::from_raw(
            Bravo::with_policy(FutexRwLock::<WritersFirst>::new(), policy),
            0,
        )
    };
    let counts = |lock: &RwLock<Bravo<FutexRwLock, Counted<Tuning>>, i32>| {
        // SAFETY: the test only reads its state and does not release it.
        unsafe { lock.raw() }.policy().counts()
    };
    let [off, eager, inner] = [Bias::Off, Bias::Eager, Bias::Eager].map(counted);
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
    assert!(seen.inhibited > seen.revoking);
    drop((eager.read(), inner.read()));
    assert_eq!(counts(&inner).collisions, 1);

    let adaptive = counted(Bias::Adaptive);
    (0..10_000).for_each(|_| drop(adaptive.read()));
    let seen = counts(&adaptive);
    assert!(seen.fast_reads > seen.slow_reads, "{seen}");
}

type Observed = RwLock<Bravo<FutexRwLock, Counted<Tuning>>, i32>;

fn observed() -> Observed {
    let eager = Tuning {
        bias: Bias::Eager,
        ..Tuning::STANDARD
    };
    RwLock::from_raw(
        Bravo::with_policy(FutexRwLock::new(), Counted::new(eager)),
        0,
    )
}

fn counts_of(lock: &Observed) -> Counts {
    // SAFETY: the test only reads its state and does not release it.
    unsafe { lock.raw() }.policy().counts()
}

/// The next lock at a place is biased from birth, though the thread has just read one there that never was.
#[test]
fn a_lock_that_is_gone_leaves_no_skips() {
    let off = Tuning {
        bias: Bias::Off,
        ..Tuning::STANDARD
    };
    let off = Bravo::with_policy(FutexRwLock::new(), Counted::new(off));
    let mut place = RwLock::from_raw(off, 0);
    (0..4).for_each(|_| drop(place.read()));
    assert_eq!(counts_of(&place).slow_reads, 4);
    place = observed();
    drop(place.read());
    assert_eq!(counts_of(&place).fast_reads, 1);
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

/// Writers who revoke and give up are counted, leave the bias, and make the next inhibition longer.
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
    let bound = Tuning::STANDARD.bound << 7; // Doubled as often as can be.
    let expected = (seen.revoking * bound).min(Duration::from_secs(1));
    assert!(seen.inhibited >= expected, "{seen}");
}

/// A policy that panics would leave the lock held: the process ends.
#[cfg(target_os = "linux")]
#[test]
fn a_policy_that_panics_aborts() {
    struct Panics;
    impl Policy for Panics {
        const INIT: Self = Self;
        fn tuning(&self) -> Tuning {
            Tuning::STANDARD
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
    let policy = Counted::new(Tuning::STANDARD);
    let lock: Observed = RwLock::from_raw(Bravo::with_policy(FutexRwLock::new(), policy), 0);
    let read = |times| (0..times).for_each(|_| drop(lock.read()));
    read(10_000);
    drop(lock.write());
    let seen = counts_of(&lock);
    assert_eq!(seen.revocations, 1);
    read(100); // No bias yet: after some of these the next few skip the fast path.
    thread::sleep(seen.inhibited);
    read(100_000);
    let now = counts_of(&lock);
    assert!(now.fast_reads > seen.fast_reads + 50_000, "{now}");
}
