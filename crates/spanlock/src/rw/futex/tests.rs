//! What happens when the count of readers is full.

use super::FutexRwLock;
use super::state::{MOST_READERS, READERS, UPGRADABLE};
use lock_api::{RawRwLock, RawRwLockUpgrade, RawRwLockUpgradeDowngrade};
use prim::atomic::Ordering;
use std::thread;

/// A lock that is nearly full, as if of leaked guards.
fn nearly_full() -> FutexRwLock {
    let lock = FutexRwLock::new();
    lock.state.store(MOST_READERS - 1, Ordering::Relaxed);
    lock
}

fn word(lock: &FutexRwLock) -> u32 {
    lock.state.load(Ordering::Relaxed)
}

#[test]
fn a_full_count_refuses_and_stays_as_it_is() {
    let lock = nearly_full();
    assert!(!lock.is_full());
    let last = lock.lock_shared();
    assert!(lock.is_full());
    assert!(lock.try_lock_shared().is_none());
    assert!(lock.try_lock_upgradable().is_none());
    assert_eq!(word(&lock), MOST_READERS);
    // SAFETY: acquired above.
    unsafe { lock.unlock_shared(last) };
    assert!(lock.try_lock_shared().is_some());
}

#[test]
fn a_reader_that_leaves_a_full_lock_lets_a_waiting_one_in() {
    let lock = &nearly_full();
    let last = lock.lock_shared();
    thread::scope(|scope| {
        let late = scope.spawn(|| {
            let _stays_held = lock.lock_shared();
        });
        // It has backed out, or is about to.
        while !lock.state().has_waiting_reader() {
            thread::yield_now();
        }
        // SAFETY: acquired above.
        unsafe { lock.unlock_shared(last) };
        late.join().unwrap();
    });
    assert_eq!(word(lock) & READERS, MOST_READERS);
}

#[test]
fn an_upgradable_reader_becomes_one_more_than_come_in() {
    let lock = nearly_full();
    let upgradable = lock.lock_upgradable();
    let _last = lock.lock_shared();
    // SAFETY: acquired above.
    let _plain = unsafe { lock.downgrade_upgradable(upgradable) };
    assert_eq!(word(&lock), MOST_READERS + 1);
    assert!(lock.is_full() && word(&lock) & UPGRADABLE == 0);
}
