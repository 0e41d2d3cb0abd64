//! In a debug build a thread that would wait for itself panics, and the message names the lock. The tests run one at a
//! time, so that their tries do not interfere.
#![cfg(debug_assertions)]

#[macro_use]
mod common;

use common::rw::SHORT;
use common::{elsewhere, panic_message, until};
use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use spanlock::rw::{FutexRwLock, ReadersFirst, WritersFirst};
use spanlock_testkit::exact::Exact;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: Exact = Exact;

/// Until it is dropped, no other test runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a scenario alone. Should it hang, aborts. Nothing is held afterwards.
fn run<L: RawRwLock + Sync>(raw: L, scenario: impl FnOnce(&RwLock<L, u32>)) {
    let _alone = alone();
    common::rw::run(raw, scenario);
}

for_each! {
    [
        futex, futex_readers_first, ticket, queue, bravo_adaptive, bravo_eager, bravo_off, bravo_queue,
    ]
    {
        a_writer_asks_for_nothing,
        a_reader_does_not_ask_to_write,
        a_downgraded_writer_reads,
        a_thread_that_has_left_waits_for_others,
        tries_are_refused,
    }
}

mod again {
    use super::*;
    for_each! {
        [futex, bravo_off]
        {
            a_reader_does_not_read_again_beside_a_waiting_writer,
            a_writer_that_may_give_up_is_waited_for,
        }
    }
}

mod upgradable {
    use super::*;
    for_each! {
        [futex, futex_readers_first, bravo_eager, bravo_off]
        { an_upgradable_reader_does_not_ask_again }
    }
}

/// A line of this file, as a panic names it.
fn place(line: u32) -> String {
    format!("{}:{line}:", file!())
}

/// What `f` panics with says how it asks in which line, and how the thread holds the lock since which.
fn says<L: RawRwLock>(
    lock: &RwLock<L, u32>,
    (asks, asked): (&str, u32),
    (holds, held): (&str, u32),
    f: impl FnOnce(),
) {
    let message = panic_message(f);
    // SAFETY: the test only takes its address and does not release it.
    let address = unsafe { lock.raw() };
    let asks = format!("the lock at {address:p} {asks}, at {}", place(asked));
    let holds = format!("holds it {holds} since {}", place(held));
    for what in [asks, holds] {
        assert!(message.contains(&what), "{message:?} does not say {what:?}");
    }
}

const READING: &str = "for reading";
const WRITING: &str = "for writing";
const UPGRADABLE: &str = "for upgradable reading";

fn a_writer_asks_for_nothing<L: RawRwLock>(lock: &RwLock<L, u32>) {
    let held = (WRITING, line!() + 1);
    let writing = lock.write();
    let asked = line!() + 1;
    let write = || drop(lock.write());
    says(lock, (WRITING, asked), held, write);
    let asked = line!() + 1;
    let read = || drop(lock.read());
    says(lock, (READING, asked), held, read);
    drop(writing);
}

fn a_reader_does_not_ask_to_write<L: RawRwLock>(lock: &RwLock<L, u32>) {
    for _ in 0..10 {
        let held = (READING, line!() + 1);
        let reading = lock.read();
        let asked = line!() + 1;
        let write = || drop(lock.write());
        says(lock, (WRITING, asked), held, write);
        drop(reading);
    }
    let held = (READING, line!() + 1);
    let reading = lock.try_read().expect("free");
    let asked = line!() + 1;
    let write = || drop(lock.write());
    says(lock, (WRITING, asked), held, write);
    drop(reading);
}

fn a_downgraded_writer_reads<L: RawRwLockDowngrade>(lock: &RwLock<L, u32>) {
    let held = (READING, line!() + 1);
    let writing = lock.write();
    let reading = RwLockWriteGuard::downgrade(writing);
    let asked = line!() + 1;
    let write = || drop(lock.write());
    says(lock, (WRITING, asked), held, write);
    drop(reading);
    drop(lock.write());
}

fn a_thread_that_has_left_waits_for_others<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    drop(lock.write());
    let reading = lock.read();
    let other = lock.try_read();
    drop(reading);
    drop(other);
    let inside = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let reading = lock.read();
            inside.store(true, Relaxed);
            thread::sleep(SHORT);
            drop(reading);
        });
        until(|| inside.load(Relaxed));
        *lock.write() += 1;
    });
    // By another thread, whose hold is none of ours.
    elsewhere(|| drop(lock.write()));
    assert_eq!(*lock.read(), 1);
}

fn tries_are_refused<L: RawRwLockTimed<Duration = Duration>>(lock: &RwLock<L, u32>) {
    let writing = lock.write();
    assert!(lock.try_read().is_none());
    assert!(lock.try_write().is_none());
    assert!(lock.try_read_for(SHORT).is_none());
    assert!(lock.try_write_for(SHORT).is_none());
    drop(writing);
}

fn a_reader_does_not_read_again_beside_a_waiting_writer<L: RawRwLock + Sync>(
    lock: &RwLock<L, u32>,
) {
    thread::scope(|scope| {
        let held = (READING, line!() + 1);
        let reading = lock.read();
        let writer = scope.spawn(|| *lock.write() += 1);
        until(|| elsewhere(|| lock.try_read().is_none()));
        let asked = line!() + 1;
        let read = || drop(lock.read());
        says(lock, (READING, asked), held, read);
        drop(reading);
        writer.join().expect("a write");
    });
}

fn a_writer_that_may_give_up_is_waited_for<L>(lock: &RwLock<L, u32>)
where
    L: RawRwLockTimed<Duration = Duration> + Sync,
{
    thread::scope(|scope| {
        let reading = lock.read();
        let writer = scope.spawn(|| {
            assert!(lock.try_write_for(Duration::from_millis(50)).is_none());
        });
        until(|| writer.is_finished() || elsewhere(|| lock.try_read().is_none()));
        drop(lock.read());
        drop(reading);
        writer.join().expect("no write");
    });
}

/// The thread has left, for the guard is gone, when it panics for its upgrade.
fn an_upgradable_reader_does_not_ask_again<L: RawRwLockUpgrade>(lock: &RwLock<L, u32>) {
    let held = (UPGRADABLE, line!() + 1);
    let upgradable = lock.upgradable_read();
    let asked = line!() + 1;
    let again = || drop(lock.upgradable_read());
    says(lock, (UPGRADABLE, asked), held, again);
    let held = (READING, line!() + 1);
    let reading = lock.read();
    let asked = line!() + 1;
    let upgrade = || drop(RwLockUpgradableReadGuard::upgrade(upgradable));
    says(lock, (WRITING, asked), held, upgrade);
    drop(reading);
}

/// A reader that asks to read upgradably waits for the one who does already, and not for the writer behind: with this
/// preference that is no deadlock.
#[test]
fn a_writer_that_is_overtaken_is_not_waited_for() {
    let _alone = alone();
    let lock = RwLock::<FutexRwLock<ReadersFirst>, u32>::new(0);
    thread::scope(|scope| {
        let upgradable = lock.upgradable_read();
        let reader = scope.spawn(|| {
            let _mine = lock.read();
            scope.spawn(|| *lock.write() += 1);
            // Long enough for the writer to fall asleep.
            thread::sleep(Duration::from_millis(20));
            drop(lock.upgradable_read());
        });
        thread::sleep(Duration::from_millis(60));
        drop(upgradable);
        reader.join().expect("no deadlock is told");
    });
}

/// What was leaked of a lock is not held of the next one in the same place.
#[test]
fn a_leaked_guard_of_an_earlier_lock_in_the_place() {
    let _alone = alone();
    let mut lock = RwLock::<FutexRwLock<WritersFirst>, u32>::new(0);
    std::mem::forget(lock.read());
    lock = RwLock::new(1);
    let upgradable = lock.upgradable_read();
    *RwLockUpgradableReadGuard::upgrade(upgradable) += 1;
    assert_eq!(*lock.read(), 2);
}

/// Writers that give up all the time, beside a thread that reads again and again what it reads.
#[test]
fn writers_that_give_up_are_not_waited_for() {
    let _alone = alone();
    let lock = RwLock::<FutexRwLock<WritersFirst>, u32>::new(0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                drop(lock.try_write_for(Duration::from_nanos(1)));
            }
        });
        for _ in 0..2_000 {
            let _mine = lock.read();
            for _ in 0..200 {
                drop(lock.read());
            }
        }
        is_done.store(true, Relaxed);
    });
}
