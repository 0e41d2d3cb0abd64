//! The phase-fair locks: exclusion, turns, sleep.

use super::{
    Guarded, reader_and_writer, readers_share, tries, two_readers_and_a_writer, two_writers,
    two_writers_and_a_reader,
};
use lock_api::RawRwLock;
use prim::model;
use spanlock_loom::rw::{PhaseFairQueue, PhaseFairTicket};

/// A reader that waits for a writer goes in before the next one, which waits for it. If it waited on, the two would
/// wait for each other.
fn one_writer_at_most<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    let reader = guarded.spawn(|guarded| guarded.read().done());
    let next = guarded.spawn(|guarded| guarded.write().done());
    mine.done();
    reader.join().unwrap();
    next.join().unwrap();
}

/// A try between two writers does not take the phase that a waiting reader waits for.
fn a_try_between<L: RawRwLock + Send + Sync + 'static>(lock: L) {
    let guarded = Guarded::new(lock);
    let mine = guarded.write();
    let reader = guarded.spawn(|guarded| guarded.read().done());
    let tried = guarded.spawn(|guarded| {
        if let Some(writing) = guarded.try_write() {
            writing.done();
        }
    });
    mine.done();
    guarded.write().done();
    reader.join().unwrap();
    tried.join().unwrap();
}

/// The same models for each of the locks.
macro_rules! models {
    ($($name:ident: $lock:ty),+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn a_reader_and_a_writer() {
                model(None, || reader_and_writer(<$lock>::new()));
            }

            #[test]
            fn a_writer_and_a_writer() {
                model(Some(4), || two_writers(<$lock>::new()));
            }

            #[test]
            fn readers_are_inside_together() {
                model(None, || readers_share(<$lock>::new()));
            }

            #[test]
            fn a_try_does_not_wait() {
                model(None, || tries(<$lock>::new()));
            }

            #[test]
            fn readers_and_a_writer() {
                model(Some(3), || two_readers_and_a_writer(<$lock>::new()));
            }

            #[test]
            fn writers_and_a_reader() {
                model(Some(3), || two_writers_and_a_reader(<$lock>::new()));
            }

            #[test]
            fn a_reader_waits_for_one_writer_only() {
                model(Some(3), || one_writer_at_most(<$lock>::new()));
            }

            #[test]
            fn a_try_takes_no_phase() {
                model(Some(3), || a_try_between(<$lock>::new()));
            }
        })+
    };
}

models!(ticket: PhaseFairTicket, queue: PhaseFairQueue);
