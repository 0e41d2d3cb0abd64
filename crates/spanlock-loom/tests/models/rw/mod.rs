//! Reader-writer locks: the bias and the table of visible readers, and the locks under it.

/// What every lock is to stand, with two threads and with three; bounds on preemptions for each.
macro_rules! models {
    ($make:expr; two: $two:expr, three: $three:expr) => {
        #[test]
        fn a_reader_and_a_writer() {
            prim::model($two, || $crate::rw::reader_and_writer($make));
        }

        #[test]
        fn a_writer_and_a_writer() {
            prim::model($two, || $crate::rw::two_writers($make));
        }

        #[test]
        fn readers_are_inside_together() {
            prim::model($two, || $crate::rw::readers_share($make));
        }

        #[test]
        fn a_try_does_not_wait() {
            prim::model($two, || $crate::rw::tries($make));
        }

        #[test]
        fn readers_and_a_writer() {
            prim::model($three, || $crate::rw::two_readers_and_a_writer($make));
        }

        #[test]
        fn writers_and_a_reader() {
            prim::model($three, || $crate::rw::two_writers_and_a_reader($make));
        }
    };
}

mod bias;
mod cohort;
mod futex;
mod over;
mod phase;
mod tokenless;
mod upgrade;

use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed};
use prim::cell::UnsafeCell;
use prim::clock::{Duration, Instant};
use prim::thread::{self, JoinHandle};
use std::sync::Arc;

/// A value under a lock.
pub struct Guarded<L> {
    pub lock: L,
    value: UnsafeCell<u64>,
}

// SAFETY: the value is touched under the lock; that this suffices is what the models check.
unsafe impl<L: Sync> Sync for Guarded<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for Guarded<L> {}

/// Holds the lock shared.
pub struct Reading<'a, L: RawRwLock> {
    guarded: &'a Guarded<L>,
    token: Option<L::SharedGuard>,
}

/// Holds the lock exclusively.
pub struct Writing<'a, L: RawRwLock> {
    guarded: &'a Guarded<L>,
    token: Option<L::ExclusiveGuard>,
}

impl<L: RawRwLock> Guarded<L> {
    pub fn new(lock: L) -> Arc<Self> {
        Arc::new(Self {
            lock,
            value: UnsafeCell::new(0),
        })
    }

    pub fn reading(&self, token: L::SharedGuard) -> Reading<'_, L> {
        Reading {
            guarded: self,
            token: Some(token),
        }
    }

    fn writing(&self, token: L::ExclusiveGuard) -> Writing<'_, L> {
        Writing {
            guarded: self,
            token: Some(token),
        }
    }

    pub fn read(&self) -> Reading<'_, L> {
        self.reading(self.lock.lock_shared())
    }

    pub fn write(&self) -> Writing<'_, L> {
        self.writing(self.lock.lock_exclusive())
    }

    pub fn try_read(&self) -> Option<Reading<'_, L>> {
        Some(self.reading(self.lock.try_lock_shared()?))
    }

    pub fn try_write(&self) -> Option<Writing<'_, L>> {
        Some(self.writing(self.lock.try_lock_exclusive()?))
    }
}

impl<L: RawRwLockTimed<Instant = Instant>> Guarded<L> {
    pub fn read_soon(&self) -> Option<Reading<'_, L>> {
        Some(self.reading(self.lock.try_lock_shared_until(soon())?))
    }

    pub fn write_soon(&self) -> Option<Writing<'_, L>> {
        Some(self.writing(self.lock.try_lock_exclusive_until(soon())?))
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_micros(2)
}

impl<L: RawRwLock + Send + Sync + 'static> Guarded<L> {
    /// Runs `f` in a thread of its own.
    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let guarded = Arc::clone(self);
        thread::spawn(move || f(&guarded))
    }
}

impl<L: RawRwLock> Reading<'_, L> {
    /// For another thread to release.
    pub fn into_token(mut self) -> L::SharedGuard {
        self.token.take().unwrap()
    }

    pub fn look(&self) -> u64 {
        // SAFETY: held shared; loom checks.
        self.guarded.value.with(|value| unsafe { *value })
    }

    /// Looks and leaves.
    pub fn done(self) {
        self.look();
    }
}

impl<L: RawRwLock> Writing<'_, L> {
    pub fn change(&self) {
        // SAFETY: held exclusively; loom checks.
        self.guarded.value.with_mut(|value| unsafe { *value += 1 });
    }

    /// Changes and leaves.
    pub fn done(self) {
        self.change();
    }
}

impl<'a, L: RawRwLockDowngrade> Writing<'a, L> {
    pub fn downgrade(mut self) -> Reading<'a, L> {
        let token = self.token.take().unwrap();
        // SAFETY: this lock's token.
        self.guarded
            .reading(unsafe { self.guarded.lock.downgrade(token) })
    }
}

impl<L: RawRwLock> Drop for Reading<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.guarded.lock.unlock_shared(token) };
        }
    }
}

impl<L: RawRwLock> Drop for Writing<'_, L> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: this lock's token.
            unsafe { self.guarded.lock.unlock_exclusive(token) };
        }
    }
}

/// A reader and a writer.
pub fn reader_and_writer<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    guarded.read().done();
    writer.join().unwrap();
}

/// Two writers, of which the second sees what the first did.
pub fn two_writers<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    guarded.write().done();
    writer.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// Two readers and a writer.
pub fn two_readers_and_a_writer<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    let reader = guarded.spawn(|guarded| guarded.read().done());
    guarded.read().done();
    writer.join().unwrap();
    reader.join().unwrap();
}

/// Two writers and a reader.
pub fn two_writers_and_a_reader<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let writer = guarded.spawn(|guarded| guarded.write().done());
    let reader = guarded.spawn(|guarded| guarded.read().done());
    guarded.write().done();
    writer.join().unwrap();
    reader.join().unwrap();
    assert_eq!(guarded.read().look(), 2);
}

/// A reader beside a reader: joined while the lock is held, so that exclusion would be a deadlock.
pub fn readers_share<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.read();
    let reader = guarded.spawn(|guarded| guarded.read().done());
    reader.join().unwrap();
    mine.done();
}

/// A new reader that was a writer lets in readers who waited.
pub fn downgrade_lets_readers_in<L>(lock: L)
where
    L: RawRwLockDowngrade + Send + Sync + 'static,
{
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    let reader = guarded.spawn(|guarded| guarded.read().done());
    mine.change();
    let mine = mine.downgrade();
    reader.join().unwrap();
    mine.done();
}

/// A new reader that was a writer keeps writers out.
pub fn downgrade_keeps_writers_out<L>(lock: L)
where
    L: RawRwLockDowngrade + Send + Sync + 'static,
{
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    let writer = guarded.spawn(|guarded| guarded.write().done());
    mine.change();
    mine.downgrade().done();
    writer.join().unwrap();
}

/// A writer that may give up, beside a holder and one that does not.
pub fn a_hasty_writer<L>(lock: L)
where
    L: RawRwLockTimed<Instant = Instant> + Send + Sync + 'static,
{
    let guarded = Guarded::new(lock);
    let mine = guarded.read();
    let hasty = guarded.spawn(|guarded| {
        if let Some(writing) = guarded.write_soon() {
            writing.done();
        }
    });
    let patient = guarded.spawn(|guarded| guarded.write().done());
    mine.done();
    hasty.join().unwrap();
    patient.join().unwrap();
    guarded.read().done();
    guarded.try_write().expect("nobody is there").done();
}

/// A reader that may give up, beside a writer and a reader that does not.
pub fn a_hasty_reader<L>(lock: L)
where
    L: RawRwLockTimed<Instant = Instant> + Send + Sync + 'static,
{
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    let hasty = guarded.spawn(|guarded| {
        if let Some(reading) = guarded.read_soon() {
            reading.done();
        }
    });
    let patient = guarded.spawn(|guarded| guarded.read().done());
    mine.done();
    hasty.join().unwrap();
    patient.join().unwrap();
    guarded.try_write().expect("nobody is there").done();
}

/// A try does not wait, and a try that is granted excludes.
pub fn tries<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let other = guarded.spawn(|guarded| {
        if let Some(writing) = guarded.try_write() {
            writing.done();
        }
    });
    if let Some(reading) = guarded.try_read() {
        reading.done();
    }
    other.join().unwrap();
    guarded.try_write().expect("nobody is there").done();
}
