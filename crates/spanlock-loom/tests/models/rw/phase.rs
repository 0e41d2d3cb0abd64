//! The phase-fair locks: exclusion, turns, sleep.

use super::{
    Guarded, reader_and_writer, readers_share, tries, two_readers_and_a_writer, two_writers,
    two_writers_and_a_reader,
};
use prim::{model, thread};
use spanlock_loom::rw::PhaseFairTicket;

#[test]
fn a_reader_and_a_writer() {
    model(None, || reader_and_writer(PhaseFairTicket::new()));
}

#[test]
fn a_writer_and_a_writer() {
    model(None, || two_writers(PhaseFairTicket::new()));
}

#[test]
fn readers_are_inside_together() {
    model(None, || readers_share(PhaseFairTicket::new()));
}

#[test]
fn a_try_does_not_wait() {
    model(None, || tries(PhaseFairTicket::new()));
}

#[test]
fn readers_and_a_writer() {
    model(Some(3), || two_readers_and_a_writer(PhaseFairTicket::new()));
}

#[test]
fn writers_and_a_reader() {
    model(Some(3), || two_writers_and_a_reader(PhaseFairTicket::new()));
}

/// A reader that waits for a writer goes in before the next one, which waits for it: whoever leaves first is the
/// one who came first. If it waited on, the two would wait for each other.
#[test]
fn a_reader_waits_for_one_writer_only() {
    model(Some(3), || {
        let guarded = Guarded::new(PhaseFairTicket::new());
        let mine = guarded.write();
        let reader = guarded.spawn(|guarded| guarded.read().done());
        let next = guarded.spawn(|guarded| guarded.write().done());
        thread::yield_now();
        mine.done();
        reader.join().unwrap();
        next.join().unwrap();
    });
}
