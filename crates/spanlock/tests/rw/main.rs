//! What a reader-writer lock promises, case by case, for each lock and with a bias on each.

#[path = "../common/mod.rs"]
mod common;

use common::{HANG, abort, elsewhere, panic_message};
use lock_api::{RawRwLock, RawRwLockDowngrade, RawRwLockTimed, RwLock};
use spanlock::rw::{
    Bias, Bravo, CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, PhaseFairQueue,
    PhaseFairTicket, ReadersFirst, Tuning, WritersFirst,
};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a scenario. Should it hang, aborts. Nothing is held afterwards.
fn run<L: RawRwLock + Sync>(raw: L, scenario: impl FnOnce(&RwLock<L, u32>)) {
    let lock = RwLock::from_raw(raw, 0);
    let name = thread::current().name().map(str::to_owned);
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
                abort(&format!("{name:?} hangs"));
            }
        });
        scenario(&lock);
        drop(running);
    });
    assert!(!lock.is_locked());
    assert!(lock.try_write().is_some(), "something is held");
}

fn bravo<L: RawRwLock>(bias: Bias) -> Bravo<L, Tuning> {
    let bound = Tuning::STANDARD.bound;
    Bravo::with_policy(L::INIT, Tuning { bias, bound })
}

/// Makes scenarios tests for each lock: `name: lock`.
macro_rules! for_each {
    ([$($name:ident: $make:expr),+ $(,)?] $scenarios:tt) => {
        $(for_each!(@$name, $make, $scenarios);)+
    };
    (@$name:ident, $make:expr, { $($scenario:ident),+ $(,)? }) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    run($make, super::$scenario);
                }
            )+
        }
    };
}

mod parts;
mod places;
mod policies;
#[cfg(feature = "send_guard")]
mod sending;
mod timed;
mod upgrading;

mod all {
    use super::*;
    for_each! {
        [
            futex: FutexRwLock::<WritersFirst>::new(),
            futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
            ticket: PhaseFairTicket::new(),
            queue: PhaseFairQueue::new(),
            cohort: CohortRwLock::<2>::new(),
            per_cpu: PerCpu::<FutexRwLock, 4>::new(),
            mutex: MutexRwLock::from_mutex(FutexMutex::new()),
            bravo_adaptive: bravo::<FutexRwLock>(Bias::Adaptive),
            bravo_eager: bravo::<FutexRwLock>(Bias::Eager),
            bravo_off: bravo::<FutexRwLock>(Bias::Off),
            bravo_ticket: bravo::<PhaseFairTicket>(Bias::Eager),
            bravo_queue: bravo::<PhaseFairQueue>(Bias::Eager),
            bravo_cohort: bravo::<CohortRwLock<2>>(Bias::Eager),
            bravo_per_cpu: bravo::<PerCpu<FutexRwLock, 4>>(Bias::Eager),
            bravo_mutex: bravo::<MutexRwLock<FutexMutex>>(Bias::Eager),
        ]
        {
            a_free_lock_is_granted_to_a_try,
            a_reader_keeps_a_writer_out,
            a_writer_keeps_all_out,
            a_writer_waits_for_a_reader,
            a_reader_waits_for_a_writer,
            writers_take_turns,
            a_panic_releases,
        }
    }
}

mod sharing {
    use super::*;
    for_each! {
        [
            futex: FutexRwLock::<WritersFirst>::new(),
            futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
            ticket: PhaseFairTicket::new(),
            queue: PhaseFairQueue::new(),
            cohort: CohortRwLock::<2>::new(),
            per_cpu: PerCpu::<FutexRwLock, 4>::new(),
            bravo_eager: bravo::<FutexRwLock>(Bias::Eager),
            bravo_ticket: bravo::<PhaseFairTicket>(Bias::Eager),
            bravo_queue: bravo::<PhaseFairQueue>(Bias::Eager),
            bravo_mutex: bravo::<MutexRwLock<FutexMutex>>(Bias::Eager),
        ]
        { readers_are_inside_together }
    }
}

mod downgrading {
    use super::*;
    for_each! {
        [
            futex: FutexRwLock::<WritersFirst>::new(),
            futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
            ticket: PhaseFairTicket::new(),
            queue: PhaseFairQueue::new(),
            cohort: CohortRwLock::<2>::new(),
            per_cpu: PerCpu::<FutexRwLock, 4>::new(),
            bravo_eager: bravo::<FutexRwLock>(Bias::Eager),
            bravo_off: bravo::<FutexRwLock>(Bias::Off),
            bravo_ticket: bravo::<PhaseFairTicket>(Bias::Eager),
            bravo_queue: bravo::<PhaseFairQueue>(Bias::Eager),
            bravo_cohort: bravo::<CohortRwLock<2>>(Bias::Eager),
            bravo_per_cpu: bravo::<PerCpu<PhaseFairTicket, 4>>(Bias::Eager),
        ]
        { a_writer_becomes_a_reader }
    }
}

mod recursion {
    use super::*;
    for_each! {
        [
            futex_readers_first: FutexRwLock::<ReadersFirst>::new(),
            bravo_adaptive: bravo::<FutexRwLock<ReadersFirst>>(Bias::Adaptive),
            bravo_off: bravo::<FutexRwLock<ReadersFirst>>(Bias::Off),
            bravo_eager: bravo::<FutexRwLock<ReadersFirst>>(Bias::Eager),
        ]
        { a_reader_reads_again_while_a_writer_waits }
    }
}

fn a_free_lock_is_granted_to_a_try<L: RawRwLock>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        drop(lock.try_read().expect("free"));
        drop(lock.try_write().expect("free"));
        drop(lock.try_write().expect("free"));
    }
}

fn a_reader_keeps_a_writer_out<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        let reading = lock.read();
        assert!(lock.is_locked());
        assert!(elsewhere(|| lock.try_write().is_none()));
        drop(reading);
        assert!(elsewhere(|| lock.try_write().is_some()));
    }
}

fn a_writer_keeps_all_out<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..100 {
        let writing = lock.write();
        assert!(lock.is_locked_exclusive());
        elsewhere(|| {
            assert!(lock.try_write().is_none());
            assert!(lock.try_read().is_none());
        });
        drop(writing);
    }
}

fn a_writer_waits_for_a_reader<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for round in 0..20 {
        let inside = AtomicBool::new(true);
        thread::scope(|scope| {
            let reading = lock.read();
            scope.spawn(|| {
                *lock.write() += 1;
                assert!(!inside.load(Relaxed), "beside a reader");
            });
            linger(round);
            inside.store(false, Relaxed);
            drop(reading);
        });
    }
    assert_eq!(*lock.read(), 20);
}

fn a_reader_waits_for_a_writer<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for round in 0..20 {
        thread::scope(|scope| {
            let mut writing = lock.write();
            let reader = scope.spawn(|| *lock.read());
            linger(round);
            *writing += 1;
            let written = *writing;
            drop(writing);
            assert_eq!(reader.join().unwrap(), written);
        });
    }
}

/// Long enough to be slept through in every other round.
fn linger(round: u32) {
    if round.is_multiple_of(2) {
        thread::sleep(Duration::from_millis(2));
    }
}

fn writers_take_turns<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| *lock.write() += 1));
        }
    });
    assert_eq!(*lock.read(), 4000);
}

fn a_panic_releases<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    let message = panic_message(|| {
        let _writing = lock.write();
        panic!("inside");
    });
    assert_eq!(message, "inside");
    panic_message(|| {
        let _reading = lock.read();
        panic!("inside");
    });
    assert!(lock.try_write().is_some());
}

fn readers_are_inside_together<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    let all_inside = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let reading = lock.read();
                all_inside.wait();
                drop(reading);
            });
        }
    });
}

const SHORT: Duration = Duration::from_millis(2);

fn a_writer_becomes_a_reader<L: RawRwLockDowngrade + Sync>(lock: &RwLock<L, u32>) {
    for _ in 0..10 {
        let mut writing = lock.write();
        *writing += 1;
        let reading = lock_api::RwLockWriteGuard::downgrade(writing);
        assert!(elsewhere(|| lock.try_write().is_none()));
        assert_eq!(elsewhere(|| *lock.read()), *reading);
    }
}

fn a_reader_reads_again_while_a_writer_waits<L: RawRwLock + Sync>(lock: &RwLock<L, u32>) {
    for round in 0..200 {
        thread::scope(|scope| {
            let reading = lock.read();
            let writer = scope.spawn(|| *lock.write() += 1);
            if round % 10 == 0 {
                thread::sleep(SHORT);
            }
            let again = lock.read();
            assert_eq!(*again, *reading);
            drop((again, reading));
            writer.join().unwrap();
        });
    }
}

/// A thread that reads by the table reads again though the underlying lock prefers writers.
#[test]
fn a_fast_reader_reads_again_in_any_case() {
    let lock = bravo::<FutexRwLock>(Bias::Eager);
    let lock = RwLock::from_raw(lock, 0);
    thread::scope(|scope| {
        let reading = lock.read();
        let writer = scope.spawn(|| *lock.write() += 1);
        thread::sleep(SHORT);
        assert_eq!(*lock.read(), 0);
        drop(reading);
        writer.join().unwrap();
    });
}

/// A leaked guard outlives its thread, leaves its lock locked, and nothing else.
#[test]
fn a_leaked_reader_stays_and_harms_no_other_lock() {
    let leaked = Arc::new(RwLock::from_raw(bravo::<FutexRwLock>(Bias::Eager), 0));
    let other = RwLock::from_raw(bravo::<FutexRwLock>(Bias::Eager), 0);
    let theirs = Arc::clone(&leaked);
    thread::spawn(move || mem::forget(theirs.read()))
        .join()
        .unwrap();
    assert!(leaked.try_write().is_none());
    assert!(leaked.try_read().is_some());
    for _ in 0..10 {
        elsewhere(|| drop((other.read(), leaked.read())));
        *other.write() += 1;
    }
}

/// A lock at the place of one that was dropped with a leaked reader is free.
#[test]
fn a_dropped_lock_takes_its_leaked_readers_along() {
    let mut lock = Box::new(RwLock::from_raw(bravo::<FutexRwLock>(Bias::Eager), 0));
    mem::forget(lock.read());
    assert!(lock.try_write().is_none());
    *lock = RwLock::from_raw(bravo::<FutexRwLock>(Bias::Eager), 0);
    assert!(lock.try_write().is_some());
}

#[test]
#[cfg(target_pointer_width = "64")]
fn locks_are_as_small_as_their_docs_say() {
    assert_eq!(size_of::<FutexRwLock>(), 8);
    assert_eq!(size_of::<FutexMutex>(), 4);
    assert_eq!(size_of::<PhaseFairTicket>(), 16);
    assert_eq!(size_of::<PhaseFairQueue>(), 40);
    assert_eq!(size_of::<CohortRwLock<2>>(), 3 * 128);
    assert_eq!(size_of::<PerCpu<FutexRwLock, 4>>(), 4 * 128);
    assert_eq!(size_of::<spanlock::rw::RwLock<()>>(), 16);
    // The guard of a fast read is no larger than one with two words.
    assert!(size_of::<spanlock::rw::RwLockReadGuard<'_, ()>>() <= 16);
}
