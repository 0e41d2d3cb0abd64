//! The phase-fair locks: exclusion, turns, sleep.

use super::{
    Guarded, a_hasty_reader, a_hasty_writer, downgrade_keeps_writers_out, downgrade_lets_readers_in,
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

/// The same for each of the locks.
macro_rules! phase_fair {
    ($($name:ident: $lock:ty),+) => {
        $(mod $name {
            use super::*;

            models!(<$lock>::new(); two: None, three: Some(3));

            #[test]
            fn a_reader_waits_for_one_writer_only() {
                model(Some(3), || one_writer_at_most(<$lock>::new()));
            }

            #[test]
            fn a_try_takes_no_phase() {
                model(Some(3), || a_try_between(<$lock>::new()));
            }

            #[test]
            fn a_writer_gives_up() {
                model(Some(2), || a_hasty_writer(<$lock>::new()));
            }

            #[test]
            fn a_reader_gives_up() {
                model(Some(2), || a_hasty_reader(<$lock>::new()));
            }

            #[test]
            fn a_writer_becomes_a_reader() {
                model(Some(3), || downgrade_lets_readers_in(<$lock>::new()));
                model(Some(3), || downgrade_keeps_writers_out(<$lock>::new()));
            }
        })+
    };
}

phase_fair!(ticket: PhaseFairTicket, queue: PhaseFairQueue);
