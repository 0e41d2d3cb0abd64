//! Reader-writer locks: debug builds know who holds them.
#![cfg(debug_assertions)]

use super::{Meeting, REPORT, lasting};
use lock_api::RawRwLock;
use spanlock::range::RangeLock;
use spanlock::range::keys::{Builder, point};
use spanlock::range::slots::RawSlots;
use spanlock::rw::{PhaseFairQueue, PhaseFairTicket, ReadersFirst, RwLock};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

type Lock<L> = lock_api::RwLock<L, u32>;

fn lock<L: RawRwLock>() -> &'static Lock<L> {
    lasting(lock_api::RwLock::new(0))
}

#[test]
fn a_reader_and_a_writer() {
    let meeting = Meeting::of(2);
    let (one, other) = (lasting(RwLock::new(1)), lasting(RwLock::new(2)));
    meeting.party(move |meet| {
        let (_held, line) = (one.read(), line!());
        meet(line, line!() + 1);
        drop(other.write());
    });
    meeting.party(move |meet| {
        let (_held, line) = (other.read(), line!());
        meet(line, line!() + 1);
        drop(one.write());
    });
    meeting.ring(file!());
}

/// Others wake the two again and again: each goes on with the wait that it had.
#[test]
fn beside_writes_that_give_up() {
    let meeting = Meeting::of(2);
    let (one, other) = (lasting(RwLock::new(1)), lasting(RwLock::new(2)));
    meeting.party(move |meet| {
        let (_held, line) = (one.write(), line!());
        meet(line, line!() + 1);
        drop(other.write());
    });
    meeting.party(move |meet| {
        let (_held, line) = (other.write(), line!());
        meet(line, line!() + 1);
        drop(one.write());
    });
    let is_told = AtomicBool::new(false);
    thread::scope(|scope| {
        for lock in [one, other] {
            let is_told = &is_told;
            scope.spawn(move || {
                while !is_told.load(Relaxed) {
                    drop(lock.try_write_for(Duration::from_millis(1)));
                }
            });
        }
        meeting.ring(file!());
        is_told.store(true, Relaxed);
    });
}

/// Keys must not be written so: then looks wait, too, and those who read the lock wait for no look.
#[test]
fn keys_that_are_written_under_a_lock() {
    static NAMES: RwLock<()> = RwLock::new(());
    fn as_text(key: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _names = NAMES.read();
        f.write_str(&String::from_utf8_lossy(key))
    }

    let meeting = Meeting::of(2);
    let builder = Builder::<[u8]>::new().deadlocks(REPORT);
    let table = lasting(builder.shown_by(as_text).build());
    let held = table.write(point(b"c"));
    let waiting = thread::spawn(|| drop(table.read(point(b"c"))));
    while table.snapshot().waiters.is_empty() {
        thread::yield_now();
    }
    let renamed = NAMES.write();
    // For some looks.
    thread::sleep(Duration::from_millis(100));
    drop((renamed, held));
    waiting.join().expect("it gets its range");

    meeting.party(move |meet| {
        let (_held, line) = (table.write(point(b"a")), line!());
        meet(line, line!() + 1);
        drop(table.write(point(b"b")));
    });
    meeting.party(move |meet| {
        let (_held, line) = (table.write(point(b"b")), line!());
        meet(line, line!() + 1);
        drop(table.write(point(b"a")));
    });
    meeting.ring(file!());
}

#[test]
fn an_upgrade_between_ranges() {
    let meeting = Meeting::of(2);
    let ranges = lasting(RangeLock::from_raw(
        RawSlots::builder().deadlocks(REPORT).build(),
    ));
    let value = lock::<spanlock::rw::FutexRwLock<ReadersFirst>>();
    meeting.party(move |meet| {
        let (held, line) = (value.upgradable_read(), line!());
        let _beside = ranges.read(0..1);
        meet(line, line!() + 1);
        drop(ranges.write(50..60));
        drop(held);
    });
    meeting.party(move |meet| {
        let (_held, line) = (ranges.write(55..56), line!());
        meet(line, line!() + 1);
        drop(value.upgradable_read());
    });
    meeting.ring(file!());
}

macro_rules! between {
    ($($name:ident: $lock:ty;)+) => {$(
        #[test]
        fn $name() {
            let meeting = Meeting::of(3);
            let ranges = lasting(RangeLock::from_raw(RawSlots::builder().deadlocks(REPORT).build()));
            let (one, other) = (lock::<$lock>(), lock::<$lock>());
            meeting.party(move |meet| {
                let (_held, line) = (one.write(), line!());
                meet(line, line!() + 1);
                drop(other.read());
            });
            meeting.party(move |meet| {
                let (_held, line) = (other.write(), line!());
                meet(line, line!() + 1);
                drop(ranges.write(50..60));
            });
            meeting.party(move |meet| {
                let (_held, line) = (ranges.write(55..56), line!());
                meet(line, line!() + 1);
                drop(one.write());
            });
            // A macro's lines are all the same.
            let ring = super::await_report(|report| match report {
                super::Report::Deadlock(ring) => {
                    let is_its = |step: &super::deadlock::Step| {
                        step.lock == std::ptr::from_ref(other).addr()
                    };
                    ring.steps.iter().any(is_its).then(|| ring.clone())
                }
                _ => None,
            });
            assert_eq!(ring.steps.len(), 3, "{ring}");
            drop(meeting);
        }
    )+};
}

between! {
    phase_fair_ticket_locks: PhaseFairTicket;
    phase_fair_queue_locks: PhaseFairQueue;
}
