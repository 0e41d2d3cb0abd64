//! Readers that become the writer, with a bias and without.

use super::{Guarded, Reading, Writing, soon};
use lock_api::{RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeTimed};
use prim::clock::Instant;
use prim::model;
use spanlock_loom::rw::{Bias, Bravo, Counted, FutexRwLock, ReadersFirst, Tuning, WritersFirst};

const EAGER: Tuning = Tuning {
    bias: Bias::Eager,
    bound: 0,
};

type Futex = FutexRwLock<WritersFirst>;

fn biased() -> Bravo<Futex, Tuning> {
    Bravo::with_policy(Futex::new(), EAGER)
}

/// Holds the lock shared, and may become the writer.
struct Upgradable<'a, L: RawRwLockUpgrade> {
    guarded: &'a Guarded<L>,
    token: Option<L::UpgradableGuard>,
}

impl<L: RawRwLockUpgrade> Guarded<L> {
    fn upgradable(&self) -> Upgradable<'_, L> {
        Upgradable {
            guarded: self,
            token: Some(self.lock.lock_upgradable()),
        }
    }
}

impl<'a, L: RawRwLockUpgrade> Upgradable<'a, L> {
    fn look(&self) -> u64 {
        // SAFETY: held shared; loom checks.
        self.guarded.value.with(|value| unsafe { *value })
    }

    fn upgrade(mut self) -> Writing<'a, L> {
        let token = self.token.take().unwrap();
        // SAFETY: this lock's token.
        self.guarded
            .writing(unsafe { self.guarded.lock.upgrade(token) })
    }

    fn upgrade_soon(mut self) -> Result<Writing<'a, L>, Self>
    where
        L: RawRwLockUpgradeTimed<Instant = Instant>,
    {
        let token = self.token.take().unwrap();
        // SAFETY: this lock's token.
        match unsafe { self.guarded.lock.try_upgrade_until(token, soon()) } {
            Ok(token) => Ok(self.guarded.writing(token)),
            Err(token) => {
                self.token = Some(token);
                Err(self)
            }
        }
    }

    fn downgrade(mut self) -> Reading<'a, L>
    where
        L: RawRwLockUpgradeDowngrade,
    {
        let token = self.token.take().unwrap();
        // SAFETY: this lock's token.
        self.guarded
            .reading(unsafe { self.guarded.lock.downgrade_upgradable(token) })
    }
}

impl<L: RawRwLockUpgrade> Drop for Upgradable<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.guarded.lock.unlock_upgradable(token) };
        }
    }
}

/// Looks, upgrades, and finds what it saw.
fn look_and_change<L: RawRwLockUpgrade>(guarded: &Guarded<L>) {
    let reading = guarded.upgradable();
    let seen = reading.look();
    let writing = reading.upgrade();
    // SAFETY: held exclusively; loom checks.
    assert_eq!(writing.guarded.value.with(|value| unsafe { *value }), seen);
    writing.done();
}

trait Upgrades: RawRwLockUpgradeDowngrade + Send + Sync + 'static {}
impl<L: RawRwLockUpgradeDowngrade + Send + Sync + 'static> Upgrades for L {}

fn beside_a_reader<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let reader = guarded.spawn(|guarded| guarded.read().done());
    look_and_change(&guarded);
    reader.join().unwrap();
}

fn beside_a_writer<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    look_and_change(&guarded);
    writer.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

fn one_at_a_time<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let other = guarded.spawn(look_and_change);
    look_and_change(&guarded);
    other.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// One that only looks lets the next in when it leaves.
fn one_after_another<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.upgradable();
    let other = guarded.spawn(|guarded| _ = guarded.upgradable().look());
    mine.look();
    drop(mine);
    other.join().unwrap();
}

/// The same when it stays as a reader.
fn one_beside_the_last<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.upgradable();
    let other = guarded.spawn(|guarded| _ = guarded.upgradable().look());
    let mine = mine.downgrade();
    other.join().unwrap();
    mine.done();
    guarded.write().done();
}

/// What one that only looks saw is before what a writer does next.
fn before_a_writer<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    guarded.upgradable().look();
    writer.join().unwrap();
}

fn readers_share<L: Upgrades>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.upgradable();
    let reader = guarded.spawn(|guarded| guarded.read().done());
    reader.join().unwrap();
    mine.look();
}

/// An upgrade and a writer wait for a reader, who lets in the right one.
fn beside_a_reader_and_a_writer<L: Upgrades<SharedGuard: 'static>>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.read();
    let reading = guarded.upgradable();
    let writer = guarded.spawn(|guarded| guarded.write().done());
    let token = mine.into_token();
    // SAFETY: this lock's token.
    let reader = guarded.spawn(|guarded| unsafe { guarded.lock.unlock_shared(token) });
    reading.upgrade().done();
    reader.join().unwrap();
    writer.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// A reader that held back for an upgrade goes on when that gives up.
fn gives_up<L: Upgrades + RawRwLockUpgradeTimed<Instant = Instant>>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.read();
    let hasty = guarded.spawn(|guarded| {
        let reading = guarded.upgradable();
        match reading.upgrade_soon() {
            Ok(writing) => writing.done(),
            Err(reading) => _ = reading.look(),
        }
    });
    let reader = guarded.spawn(|guarded| guarded.read().done());
    reader.join().unwrap();
    mine.done();
    hasty.join().unwrap();
    guarded.try_write().expect("nobody is there").done();
}

/// The same for each of the locks.
macro_rules! upgrades {
    ($($name:ident: $make:expr;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn beside_one() {
                model(Some(3), || super::beside_a_reader($make));
                model(Some(3), || super::beside_a_writer($make));
                model(Some(3), || super::before_a_writer($make));
                model(Some(3), || super::readers_share($make));
            }

            #[test]
            fn one_at_a_time() {
                model(Some(3), || super::one_at_a_time($make));
            }

            #[test]
            fn one_after_another() {
                model(Some(3), || super::one_after_another($make));
                model(Some(3), || super::one_beside_the_last($make));
            }

            #[test]
            fn beside_a_reader_and_a_writer() {
                model(Some(2), || super::beside_a_reader_and_a_writer($make));
            }

            #[test]
            fn gives_up() {
                model(Some(2), || super::gives_up($make));
            }
        })+
    };
}

upgrades! {
    futex: Futex::new();
    bravo: biased();
}

/// A thread that reads by the table reads again while an upgrade waits for it, and no writer beside that waits for the
/// underlying lock.
#[test]
fn reading_twice_while_an_upgrade_drains() {
    model(Some(2), || {
        let guarded = Guarded::new(biased());
        let mine = guarded.read();
        let upgrader = guarded.spawn(look_and_change);
        guarded.read().done();
        mine.done();
        upgrader.join().unwrap();
    });
}

/// The same beside a writer that waits for the underlying lock, where that lets readers in all the same.
#[test]
fn reading_twice_while_an_upgrade_drains_and_a_writer_waits() {
    model(Some(2), || {
        let lock = Bravo::with_policy(FutexRwLock::<ReadersFirst>::new(), EAGER);
        let guarded = Guarded::new(lock);
        let mine = guarded.read();
        let upgrader = guarded.spawn(look_and_change);
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        mine.done();
        upgrader.join().unwrap();
        writer.join().unwrap();
    });
}

/// An upgrade that gives up leaves the bias as it was, and its reader where it is.
#[test]
fn giving_up_leaves_the_bias() {
    model(Some(2), || {
        let guarded = Guarded::new(Bravo::with_policy(Futex::new(), Counted::new(EAGER)));
        let mine = guarded.read();
        let upgrader = guarded.spawn(|guarded| {
            let kept = guarded.upgradable().upgrade_soon().err();
            kept.expect("a reader is inside").look()
        });
        assert_eq!(upgrader.join().unwrap(), 0);
        guarded.read().done();
        mine.done();
        let counts = guarded.lock.policy().counts();
        assert_eq!((counts.fast_reads, counts.withdrawals), (2, 1));
    });
}
