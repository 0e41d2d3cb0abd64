//! Readers that may become the writer.

use super::*;
use lock_api::{RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed, RwLockUpgradableReadGuard};

for_each! {
    [
        futex: FutexRwLock::<WritersFirst>::new(),
        futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
        bravo_adaptive: bravo::<FutexRwLock>(Bias::Adaptive),
        bravo_eager: bravo::<FutexRwLock>(Bias::Eager),
        bravo_off: bravo::<FutexRwLock>(Bias::Off),
    ]
    {
        an_upgradable_reader_is_beside_readers_only,
        an_upgrade_waits_for_readers,
        an_upgrade_gives_up_and_is_a_reader_still,
        an_upgradable_reader_waits_for_another,
        nothing_changes_before_an_upgrade,
    }
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
    for round in 0..20 {
        let inside = AtomicBool::new(true);
        thread::scope(|scope| {
            let reading = lock.read();
            scope.spawn(|| {
                let upgradable = lock.upgradable_read();
                let mut writing = RwLockUpgradableReadGuard::upgrade(upgradable);
                assert!(!inside.load(Relaxed), "beside a reader");
                *writing += 1;
            });
            scope.spawn(|| {
                *lock.write() += 1;
                assert!(!inside.load(Relaxed), "beside a reader");
            });
            linger(round);
            inside.store(false, Relaxed);
            drop(reading);
        });
    }
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
    for round in 0..20 {
        let inside = AtomicBool::new(true);
        thread::scope(|scope| {
            let reading = lock.upgradable_read();
            scope.spawn(|| {
                let reading = lock.upgradable_read();
                assert!(!inside.load(Relaxed), "two at a time");
                drop(reading);
            });
            linger(round);
            inside.store(false, Relaxed);
            drop(reading);
        });
    }
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
