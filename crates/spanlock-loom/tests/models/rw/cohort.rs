//! The cohort lock, the mutex in it, and the lock of parts.

use super::{
    Guarded, a_hasty_reader, a_hasty_writer, downgrade_keeps_writers_out,
    downgrade_lets_readers_in, reader_and_writer, tries, two_writers, two_writers_and_a_reader,
};
use prim::model;
use spanlock_loom::rw::{CohortRwLock, FutexMutex, FutexRwLock, MutexRwLock, PerCpu, WritersFirst};

/// Each thread is a node: of three, two share one.
fn cohort() -> CohortRwLock<2> {
    CohortRwLock::new()
}

/// All threads are of one node, which hands the lock on.
fn one_node() -> CohortRwLock<1> {
    CohortRwLock::new()
}

fn mutex() -> MutexRwLock<FutexMutex> {
    MutexRwLock::from_mutex(FutexMutex::new())
}

fn parts() -> PerCpu<FutexRwLock<WritersFirst>, 2> {
    PerCpu::from_parts(FutexRwLock::new)
}

models!(cohort(); two: Some(4), three: Some(2));

mod of_one_node {
    models!(super::one_node(); two: Some(4), three: Some(2));
}

/// More writers of a node than follow each other: the lock is given up in between.
#[test]
fn a_node_does_not_keep_the_lock() {
    model(Some(2), || {
        let guarded = Guarded::new(one_node());
        let first = guarded.spawn(|guarded| guarded.write().done());
        let second = guarded.spawn(|guarded| guarded.write().done());
        guarded.write().done();
        first.join().unwrap();
        second.join().unwrap();
        guarded.try_read().expect("nobody is there").done();
    });
}

/// What a node was handed once is not what it has for ever: the next writer waits for readers.
#[test]
fn a_node_that_gave_up_the_lock_waits_for_readers() {
    model(Some(2), || {
        let guarded = Guarded::new(one_node());
        let mine = guarded.write();
        let next = guarded.spawn(|guarded| guarded.write().done());
        mine.done();
        next.join().unwrap();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        writer.join().unwrap();
    });
}

/// A writer that gives up is handed nothing.
#[test]
fn a_writer_gives_up() {
    model(Some(2), || a_hasty_writer(one_node()));
    model(Some(2), || a_hasty_writer(cohort()));
    model(Some(3), || {
        let guarded = Guarded::new(one_node());
        let mine = guarded.write();
        let hasty = guarded.spawn(|guarded| {
            if let Some(writing) = guarded.write_soon() {
                writing.done();
            }
        });
        mine.done();
        hasty.join().unwrap();
        guarded.read().done();
    });
}

#[test]
fn a_reader_gives_up() {
    model(Some(2), || a_hasty_reader(one_node()));
    model(Some(2), || a_hasty_reader(cohort()));
}

#[test]
fn a_writer_becomes_a_reader() {
    model(Some(2), || downgrade_lets_readers_in(cohort()));
    model(Some(2), || downgrade_keeps_writers_out(cohort()));
    model(Some(2), || downgrade_keeps_writers_out(one_node()));
}

mod mutexes {
    use super::*;

    #[test]
    fn holders_exclude_each_other() {
        model(None, || two_writers(mutex()));
        model(None, || reader_and_writer(mutex()));
    }

    #[test]
    fn a_try_does_not_wait() {
        model(None, || tries(mutex()));
    }

    #[test]
    fn three_holders() {
        model(Some(3), || two_writers_and_a_reader(mutex()));
    }

    #[test]
    fn one_gives_up_beside_another() {
        model(Some(3), || {
            let guarded = Guarded::new(mutex());
            let mine = guarded.write();
            let hasty = guarded.spawn(|guarded| guarded.write_soon().is_some());
            let patient = guarded.spawn(|guarded| guarded.write().done());
            mine.done();
            hasty.join().unwrap();
            patient.join().unwrap();
        });
    }
}

mod of_parts {
    use super::*;

    models!(parts(); two: Some(3), three: Some(2));

    #[test]
    fn a_writer_becomes_a_reader() {
        model(Some(2), || downgrade_lets_readers_in(parts()));
        model(Some(2), || downgrade_keeps_writers_out(parts()));
    }
}
