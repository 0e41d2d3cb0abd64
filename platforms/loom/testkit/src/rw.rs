//! The world of reader-writer locks, and their scenarios by subject. The value in the world is a cell whose accesses
//! loom checks.
//!
//! A wait with a deadline sleeps for one turn of the other threads.

mod bias;
mod downgrade;
mod exclusion;
mod giving_up;
mod upgrade;

pub use bias::*;
pub use downgrade::*;
pub use exclusion::*;
pub use giving_up::*;
pub use upgrade::*;

pub use crate::{Crew, World as _};
use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeTimed,
};
use prim::cell::UnsafeCell;
use prim::clock::{Duration, Instant};
use spanlock::rw::RawRwLockRecursive;
use std::sync::Arc;

/// A reader-writer lock that threads share.
pub trait Lock: RawRwLock + Send + Sync + 'static {}
impl<L: RawRwLock + Send + Sync + 'static> Lock for L {}

/// A lock whose readers may read again while a writer waits.
pub trait Recursive: RawRwLockRecursive + Lock {}
impl<L: RawRwLockRecursive + Lock> Recursive for L {}

/// A lock whose writer can become a reader.
pub trait Downgrades: RawRwLockDowngrade + Lock {}
impl<L: RawRwLockDowngrade + Lock> Downgrades for L {}

/// A lock whose requests can give up.
pub trait Timed: RawRwLockTimed<Instant = Instant> + Lock {}
impl<L: RawRwLockTimed<Instant = Instant> + Lock> Timed for L {}

/// A lock whose readers can become writers.
pub trait Upgrades: RawRwLockUpgradeDowngrade + Lock {}
impl<L: RawRwLockUpgradeDowngrade + Lock> Upgrades for L {}

/// A lock whose upgrades can give up.
pub trait UpgradesTimed: RawRwLockUpgradeTimed<Instant = Instant> + Upgrades {}
impl<L: RawRwLockUpgradeTimed<Instant = Instant> + Upgrades> UpgradesTimed for L {}

/// A value under a lock.
pub struct World<L> {
    /// The lock.
    pub lock: L,
    value: UnsafeCell<u64>,
}

// SAFETY: threads reach the value under the lock alone. The models check that the lock suffices for that.
unsafe impl<L: Sync> Sync for World<L> {}
// SAFETY: the value is a number, which any thread may own and drop.
unsafe impl<L: Send> Send for World<L> {}

/// What one thread of a model does.
pub type Act<L> = fn(&Arc<World<L>>);

/// Reads and leaves.
pub fn read<L: Lock>(world: &Arc<World<L>>) {
    world.read().done();
}

/// Writes and leaves.
pub fn write<L: Lock>(world: &Arc<World<L>>) {
    world.write().done();
}

/// Reads if that takes no waiting.
pub fn try_read<L: Lock>(world: &Arc<World<L>>) {
    if let Some(reading) = world.try_read() {
        reading.done();
    }
}

/// Writes if that takes no waiting.
pub fn try_write<L: Lock>(world: &Arc<World<L>>) {
    if let Some(writing) = world.try_write() {
        writing.done();
    }
}

/// Reads, or gives up.
pub fn read_soon<L: Timed>(world: &Arc<World<L>>) {
    if let Some(token) = world.lock.try_lock_shared_until(soon()) {
        world.reading(token).done();
    }
}

/// Writes, or gives up.
pub fn write_soon<L: Timed>(world: &Arc<World<L>>) {
    if let Some(writing) = world.write_soon() {
        writing.done();
    }
}

/// Reads as one that may become the writer, and leaves.
pub fn read_upgradable<L: Upgrades>(world: &Arc<World<L>>) {
    world.upgradable().get();
}

/// Reads, becomes the writer, and finds what it read.
pub fn read_and_upgrade<L: Upgrades>(world: &Arc<World<L>>) {
    let reading = world.upgradable();
    let seen = reading.get();
    let writing = reading.upgrade();
    assert_eq!(writing.get(), seen);
    writing.done();
}

/// Reads, and becomes the writer or gives up.
pub fn read_and_upgrade_soon<L: UpgradesTimed>(world: &Arc<World<L>>) {
    match world.upgradable().upgrade_soon() {
        Ok(writing) => writing.done(),
        Err(reading) => _ = reading.get(),
    }
}

/// A deadline that a thread can reach.
fn soon() -> Instant {
    Instant::now() + Duration::from_micros(2)
}

impl<L: RawRwLock> World<L> {
    /// The value is zero.
    pub fn new(lock: L) -> Arc<Self> {
        let value = UnsafeCell::new(0);
        Arc::new(Self { lock, value })
    }

    /// The hold that a token stands for.
    pub fn reading(&self, token: L::SharedGuard) -> Reading<'_, L> {
        let token = Some(token);
        Reading { world: self, token }
    }

    fn writing(&self, token: L::ExclusiveGuard) -> Writing<'_, L> {
        let token = Some(token);
        Writing { world: self, token }
    }

    /// Locks shared.
    pub fn read(&self) -> Reading<'_, L> {
        self.reading(self.lock.lock_shared())
    }

    /// Locks exclusively.
    pub fn write(&self) -> Writing<'_, L> {
        self.writing(self.lock.lock_exclusive())
    }

    /// Locks shared if that takes no waiting.
    pub fn try_read(&self) -> Option<Reading<'_, L>> {
        self.lock.try_lock_shared().map(|token| self.reading(token))
    }

    /// Locks exclusively if that takes no waiting.
    pub fn try_write(&self) -> Option<Writing<'_, L>> {
        let token = self.lock.try_lock_exclusive();
        token.map(|token| self.writing(token))
    }

    /// Checks that nothing is held.
    ///
    /// # Panics
    /// When somebody reads or writes.
    pub fn is_free(&self) {
        self.try_write().expect("nobody is there").done();
    }

    /// Checks how many writers have been inside.
    ///
    /// # Panics
    /// When there were more or fewer.
    pub fn was_written(&self, times: u64) {
        assert_eq!(self.read().get(), times);
    }

    /// What the cell holds, read through a hold.
    fn get(&self) -> u64 {
        // SAFETY: the caller has a hold; loom checks that no writer is inside beside it.
        self.value.with(|value| unsafe { *value })
    }
}

impl<L: Timed> World<L> {
    /// Locks exclusively, or gives up.
    pub fn write_soon(&self) -> Option<Writing<'_, L>> {
        let token = self.lock.try_lock_exclusive_until(soon());
        token.map(|token| self.writing(token))
    }
}

impl<L: RawRwLockUpgrade> World<L> {
    /// Locks shared, and may become the writer.
    pub fn upgradable(&self) -> Upgradable<'_, L> {
        let token = Some(self.lock.lock_upgradable());
        Upgradable { world: self, token }
    }
}

impl<L: Lock> crate::World for World<L> {
    type Act = Act<L>;
}

impl<L: Lock> World<L> {
    /// Reads while the acts begin.
    pub fn behind_a_reader<const N: usize>(self: &Arc<Self>, acts: [Act<L>; N]) {
        let mine = self.read();
        let crew = self.start(acts);
        mine.done();
        crew.join();
    }

    /// Reads, and reads again in the same thread after the acts begin.
    pub fn read_twice_beside<const N: usize>(self: &Arc<Self>, acts: [Act<L>; N]) {
        let mine = self.read();
        let crew = self.start(acts);
        read(self);
        mine.done();
        crew.join();
    }

    /// The same by the method for that.
    pub fn read_again_beside<const N: usize>(self: &Arc<Self>, acts: [Act<L>; N])
    where
        L: RawRwLockRecursive,
    {
        let mine = self.read();
        let crew = self.start(acts);
        self.reading(self.lock.lock_shared_recursive()).done();
        mine.done();
        crew.join();
    }

    /// Reads until another thread has read that comes after the acts begin.
    pub fn read_together_beside<const N: usize>(self: &Arc<Self>, acts: [Act<L>; N]) {
        let mine = self.read();
        let crew = self.start(acts);
        self.run([read]);
        mine.done();
        crew.join();
    }

    /// Writes while the acts begin.
    pub fn behind_a_writer<const N: usize>(self: &Arc<Self>, acts: [Act<L>; N]) {
        let mine = self.write();
        let crew = self.start(acts);
        mine.done();
        crew.join();
    }
}

/// Holds the lock shared.
pub struct Reading<'a, L: RawRwLock> {
    world: &'a World<L>,
    token: Option<L::SharedGuard>,
}

/// Holds the lock exclusively.
pub struct Writing<'a, L: RawRwLock> {
    world: &'a World<L>,
    token: Option<L::ExclusiveGuard>,
}

/// Holds the lock shared, and may become the writer.
pub struct Upgradable<'a, L: RawRwLockUpgrade> {
    world: &'a World<L>,
    token: Option<L::UpgradableGuard>,
}

impl<L: RawRwLock> Reading<'_, L> {
    /// For another thread to release.
    pub fn into_token(mut self) -> L::SharedGuard {
        self.token.take().unwrap()
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.world.get()
    }

    /// Reads and leaves.
    pub fn done(self) {
        self.get();
    }
}

impl<L: RawRwLock> Writing<'_, L> {
    fn get(&self) -> u64 {
        self.world.get()
    }

    /// Counts one writer more.
    pub fn change(&self) {
        // SAFETY: the lock is held exclusively; loom checks.
        self.world.value.with_mut(|value| unsafe { *value += 1 });
    }

    /// Changes and leaves.
    pub fn done(self) {
        self.change();
    }
}

impl<'a, L: RawRwLockDowngrade> Writing<'a, L> {
    /// Shares the lock from now on.
    pub fn downgrade(mut self) -> Reading<'a, L> {
        let token = self.token.take().unwrap();
        // SAFETY: the token is this lock's, and no other hold has it.
        let token = unsafe { self.world.lock.downgrade(token) };
        self.world.reading(token)
    }
}

impl<'a, L: RawRwLockUpgrade> Upgradable<'a, L> {
    /// The value.
    pub fn get(&self) -> u64 {
        self.world.get()
    }

    /// Becomes the writer.
    pub fn upgrade(mut self) -> Writing<'a, L> {
        let token = self.token.take().unwrap();
        // SAFETY: the token is this lock's, and no other hold has it.
        let token = unsafe { self.world.lock.upgrade(token) };
        self.world.writing(token)
    }

    /// Becomes the writer, or gives up and goes on reading.
    ///
    /// # Errors
    /// The reader, if it gave up.
    pub fn upgrade_soon(mut self) -> Result<Writing<'a, L>, Self>
    where
        L: RawRwLockUpgradeTimed<Instant = Instant>,
    {
        let token = self.token.take().unwrap();
        // SAFETY: the token is this lock's, and no other hold has it.
        match unsafe { self.world.lock.try_upgrade_until(token, soon()) } {
            Ok(token) => Ok(self.world.writing(token)),
            Err(token) => {
                self.token = Some(token);
                Err(self)
            }
        }
    }

    /// Goes on as a reader that cannot become the writer.
    pub fn downgrade(mut self) -> Reading<'a, L>
    where
        L: RawRwLockUpgradeDowngrade,
    {
        let token = self.token.take().unwrap();
        // SAFETY: the token is this lock's, and no other hold has it.
        let token = unsafe { self.world.lock.downgrade_upgradable(token) };
        self.world.reading(token)
    }
}

/// A hold that is dropped releases the lock, unless its token was taken.
macro_rules! release {
    ($($hold:ident of $lock:ident by $unlock:ident;)+) => {
        $(impl<L: $lock> Drop for $hold<'_, L> {
            fn drop(&mut self) {
                if let Some(token) = self.token.take() {
                    // SAFETY: the token is this lock's, and no other hold has it.
                    unsafe { self.world.lock.$unlock(token) };
                }
            }
        })+
    };
}

release! {
    Reading of RawRwLock by unlock_shared;
    Writing of RawRwLock by unlock_exclusive;
    Upgradable of RawRwLockUpgrade by unlock_upgradable;
}
