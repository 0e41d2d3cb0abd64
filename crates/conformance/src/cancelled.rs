//! Requests that are given up while others wait behind them.

use crate::suite::Scenario;
use crate::support::{Shared, await_sleepers, elsewhere, until};
use spanlock::range::RangeLock;
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(5);

/// A queued request gives up, with two readers behind it. So many of these sleep until what is held is released.
fn gives_up_before_readers<L: Shared>(
    lock: &RangeLock<L>,
    held: impl Sized,
    request: impl Fn() -> bool + Sync,
    asleep: usize,
) {
    thread::scope(|scope| {
        let first = scope.spawn(&request);
        let later = [12..14, 0..30].map(|range| scope.spawn(|| drop(lock.read(range))));
        assert!(!first.join().unwrap());
        await_sleepers(lock.raw(), asleep);
        if asleep == 0 {
            later.into_iter().for_each(|reader| reader.join().unwrap());
        }
        drop(held);
    });
}

/// A queued reader gives up; the readers that came after it get in when the writer leaves.
fn a_reader_that_gives_up_strands_no_later_reader<L: Shared>(lock: &RangeLock<L>) {
    let read = || lock.try_read_for(0..15, SHORT).is_some();
    gives_up_before_readers(lock, lock.write(10..20), read, 2);
}

/// A queued writer gives up; readers that gave way to it, or did not, get in at once.
fn a_writer_that_gives_up_strands_no_reader<L: Shared>(lock: &RangeLock<L>) {
    let write = || lock.try_write_for(0..15, SHORT).is_some();
    gives_up_before_readers(lock, lock.read(10..20), write, 0);
}

/// Of several that sleep behind one holder, those that give up are at all places of the queue.
fn the_patient_get_in_after_the_impatient_left<L: Shared>(lock: &RangeLock<L>) {
    let held = lock.write(..);
    thread::scope(|scope| {
        let (mut patient, mut impatient) = (Vec::new(), Vec::new());
        for at in 0..6 {
            impatient.push(scope.spawn(move || lock.try_write_for(at..10, SHORT).is_some()));
            patient.push(scope.spawn(move || drop(lock.write(at..10))));
        }
        for request in impatient {
            assert!(!request.join().unwrap());
        }
        await_sleepers(lock.raw(), patient.len());
        drop(held);
    });
}

/// Timeouts that come just as the range is released: granted or not, nothing is lost.
fn giving_up_races_with_being_granted<L: Shared>(lock: &RangeLock<L>) {
    thread::scope(|scope| {
        for thread in 0..3_u32 {
            scope.spawn(move || {
                for round in 0..300 {
                    let timeout = Duration::from_micros(10 * u64::from(round % 20 + thread));
                    if let Some(held) = lock.try_write_for(0..10, timeout) {
                        thread::yield_now();
                        drop(held);
                    }
                    drop(lock.try_read_for(5..15, timeout));
                }
            });
        }
    });
}

/// Where a writer that sleeps is given way to, newcomers sleep behind it; when it gives up they are let in although
/// the reader that it slept behind is still there.
fn newcomers_behind_a_reservation_are_let_in<L: Shared>(lock: &RangeLock<L>) {
    let reader = lock.read(10..20);
    thread::scope(|scope| {
        let writer = scope.spawn(|| lock.try_write_for(0..15, 100 * SHORT).is_some());
        // On a loaded machine the writer may give up before this thread has seen it wait.
        until(|| writer.is_finished() || elsewhere(|| lock.try_read(12..14).is_none()));
        let newcomers = [12..14, 0..5].map(|range| scope.spawn(|| drop(lock.read(range))));
        assert!(!writer.join().unwrap());
        for newcomer in newcomers {
            newcomer.join().unwrap();
        }
        drop(reader);
    });
}

/// The scenarios of this file.
pub fn scenarios<L: Shared>() -> Vec<Scenario<RangeLock<L>>> {
    scenarios![
        a_reader_that_gives_up_strands_no_later_reader,
        a_writer_that_gives_up_strands_no_reader,
        the_patient_get_in_after_the_impatient_left,
        giving_up_races_with_being_granted,
        newcomers_behind_a_reservation_are_let_in needs GivingWay,
    ]
}
