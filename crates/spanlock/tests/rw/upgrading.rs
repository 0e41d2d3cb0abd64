//! Readers that may become the writer.

use super::*;
use lock_api::{RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed, RwLockUpgradableReadGuard};

for_every_lock_that_upgrades! {
    {
        an_upgradable_reader_is_beside_readers_only,
        an_upgrade_waits_for_readers,
        an_upgrade_gives_up_and_is_a_reader_still,
        an_upgradable_reader_waits_for_another,
        nothing_changes_before_an_upgrade,
    }
}

mod starving {
    use super::*;
    for_each! {
        [futex, bravo_adaptive, bravo_eager, bravo_off]
        {
            writers_beside_upgradable_readers_without_end,
            an_upgrade_beside_readers_without_end,
        }
    }
    for_each! { [futex_readers_first] { upgradable_readers_beside_writers_without_end } }
}

mod never_starved {
    use super::*;
    for_each! {
        [futex, bravo_adaptive, bravo_eager, bravo_off]
        { upgradable_readers_beside_writers_without_end, readers_beside_an_upgradable_one }
    }
}

/// Does `work`, while several threads do `others` again and again. Should it starve, the test hangs.
fn beside_others_without_end(others: impl Fn() + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    others();
                }
            });
        }
        work();
        done.store(true, Relaxed);
    });
}

/// One upgradable reader follows another. A writer is not passed by all of them.
fn writers_beside_upgradable_readers_without_end<L: Upgrades>(lock: &RwLock<L, u32>) {
    let read = || {
        let reading = lock.upgradable_read();
        thread::yield_now();
        drop(reading);
    };
    beside_others_without_end(read, || (0..100).for_each(|_| *lock.write() += 1));
    assert_eq!(*lock.read(), 100);
}

/// Readers hold the lock in turns, so that it is never free of them by itself.
fn an_upgrade_beside_readers_without_end<L: Upgrades>(lock: &RwLock<L, u32>) {
    let read = || {
        let reading = lock.read();
        thread::yield_now();
        drop(reading);
    };
    beside_others_without_end(read, || {
        for _ in 0..100 {
            let reading = lock.upgradable_read();
            let seen = *reading;
            let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
            assert_eq!(*writing, seen);
            *writing += 1;
        }
    });
    assert_eq!(*lock.read(), 100);
}

fn upgradable_readers_beside_writers_without_end<L: Upgrades>(lock: &RwLock<L, u32>) {
    let write = || {
        let writing = lock.write();
        thread::yield_now();
        drop(writing);
    };
    beside_others_without_end(write, || {
        (0..100).for_each(|_| drop(lock.upgradable_read()))
    });
}

/// One that may upgrade, and does not, keeps nobody out who reads.
fn readers_beside_an_upgradable_one<L: Upgrades>(lock: &RwLock<L, u32>) {
    let reading = lock.upgradable_read();
    elsewhere(|| (0..100).for_each(|_| drop(lock.read())));
    drop(reading);
}

trait Upgrades:
    RawRwLockUpgradeDowngrade + RawRwLockUpgradeTimed<Instant = Instant, Duration = Duration> + Sync
{
}
impl<L> Upgrades for L where
    L: RawRwLockUpgradeDowngrade
        + RawRwLockUpgradeTimed<Instant = Instant, Duration = Duration>
        + Sync
{
}

fn an_upgradable_reader_is_beside_readers_only<L: Upgrades>(lock: &RwLock<L, u32>) {
    for _ in 0..10 {
        let before = lock.read();
        let reading = lock.upgradable_read();
        elsewhere(|| {
            assert!(lock.try_read().is_some());
            assert!(lock.try_upgradable_read().is_none());
            assert!(lock.try_upgradable_read_for(SHORT).is_none());
            assert!(lock.try_write().is_none());
        });
        drop(before);
        assert!(elsewhere(|| lock.try_write().is_none()));
        let writing = RwLockUpgradableReadGuard::upgrade(reading);
        assert!(elsewhere(|| lock.try_read().is_none()));
        let reading = lock_api::RwLockWriteGuard::downgrade_to_upgradable(writing);
        elsewhere(|| {
            assert!(lock.try_read().is_some());
            assert!(lock.try_upgradable_read().is_none());
        });
        let reading = RwLockUpgradableReadGuard::downgrade(reading);
        assert!(elsewhere(|| lock.try_upgradable_read().is_some()));
        assert!(elsewhere(|| lock.try_write().is_none()));
        drop(reading);
    }
}

fn an_upgrade_waits_for_readers<L: Upgrades>(lock: &RwLock<L, u32>) {
    let upgrade = |granted: &dyn Fn()| {
        let upgradable = lock.upgradable_read();
        let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
        granted();
        *writing += 1;
    };
    let write = |granted: &dyn Fn()| {
        *lock.write() += 1;
        granted();
    };
    wait_for_a_holder(|| lock.read(), "beside a reader", [&upgrade, &write]);
    assert_eq!(*lock.read(), 40);
}

fn an_upgrade_gives_up_and_is_a_reader_still<L: Upgrades>(lock: &RwLock<L, u32>) {
    for _ in 0..5 {
        let reading = lock.read();
        elsewhere(|| {
            let upgradable = lock.upgradable_read();
            let upgradable =
                RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("a reader is inside");
            let deadline = Instant::now() + SHORT;
            let upgradable = RwLockUpgradableReadGuard::try_upgrade_until(upgradable, deadline)
                .expect_err("a reader is inside");
            let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, SHORT)
                .expect_err("a reader is inside");
            assert!(elsewhere(|| lock.try_read().is_some()));
            assert!(elsewhere(|| lock.try_write().is_none()));
            drop(upgradable);
        });
        drop(reading);
        let upgradable = lock.try_upgradable_read().expect("free");
        let writing = RwLockUpgradableReadGuard::try_upgrade(upgradable);
        drop(writing.expect("free"));
    }
}

fn an_upgradable_reader_waits_for_another<L: Upgrades>(lock: &RwLock<L, u32>) {
    let read = |granted: &dyn Fn()| {
        let reading = lock.upgradable_read();
        granted();
        drop(reading);
    };
    wait_for_a_holder(|| lock.upgradable_read(), "two at a time", [&read]);
}

fn nothing_changes_before_an_upgrade<L: Upgrades>(lock: &RwLock<L, u32>) {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let reading = lock.upgradable_read();
                    let seen = *reading;
                    let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
                    assert_eq!(*writing, seen);
                    *writing += 1;
                }
            });
        }
        scope.spawn(|| (0..500).for_each(|_| *lock.write() += 1));
        scope.spawn(|| {
            for _ in 0..2000 {
                let reading = lock.read();
                let before = std::hint::black_box(*reading);
                assert_eq!(*reading, before);
            }
        });
    });
    assert_eq!(*lock.read(), 2000);
}
