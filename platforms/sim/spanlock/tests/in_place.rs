//! What a writer that waits in place does to others, on a simulated machine.

use prim::clock::{Duration, Instant};
use prim::{Machine, Setup, cost, run, thread};
use spanlock_sim::range::RangeLock;
use spanlock_sim::range::slots::{Fairness, RawSlots};
use std::sync::Arc;

/// When, after the first one, a try for a range that nobody holds was refused for the first and for the last time:
/// while a writer of that range, and of more, waits for a reader of the rest.
fn refusals(after: Duration) -> Vec<Duration> {
    let machine = Machine::find("small-1x2x1").expect("it is built in");
    let ended = run(&Setup::new(machine), move || {
        let raw = RawSlots::builder().slots_at_once();
        let lock = Arc::new(RangeLock::from_raw(raw.fairness(Fairness::Unfair).build()));
        let reader = lock.read(0..10);
        let others = Arc::clone(&lock);
        let writer = thread::spawn(move || {
            // It has a slot then, in which it tries before it would sleep.
            drop(others.write(20..30));
            drop(others.write(0..20));
        });
        let begin = Instant::now();
        let mut refused = Vec::new();
        while begin.elapsed() < after {
            if lock.try_read(15..16).is_none() {
                refused.push(begin.elapsed());
            }
            cost::work(100);
        }
        drop(reader);
        writer.join().expect("no panic elsewhere");
        refused
    });
    ended.unwrap_or_else(|failure| panic!("{failure}")).value
}

/// The writer is announced meanwhile, so a try for a part of its range fails, although nobody holds that part. That
/// lasts no longer than the writer may wait in place.
#[test]
fn a_try_for_a_free_range_is_refused_while_a_writer_waits_in_place() {
    let refused = refusals(Duration::from_millis(1));
    let (first, last) = (refused.first(), refused.last());
    let lasted = *last.expect("it has waited in place") - *first.expect("it has waited in place");
    assert!(lasted > Duration::from_micros(10), "{lasted:?}");
    assert!(lasted < Duration::from_micros(200), "{lasted:?}");
}
