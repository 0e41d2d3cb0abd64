//! Reader-writer locks: debug builds know who holds them.
#![cfg(debug_assertions)]

use super::{Meeting, REPORT, lasting};
use lock_api::RawRwLock;
use spanlock::range::RangeLock;
use spanlock::range::slots::RawSlots;
use spanlock::rw::{PhaseFairQueue, PhaseFairTicket, ReadersFirst, RwLock};

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
