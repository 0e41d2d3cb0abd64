//! The cohort lock, the mutex in it, and the lock of parts.

use super::{
    Guarded, reader_and_writer, readers_share, tries, two_readers_and_a_writer, two_writers,
    two_writers_and_a_reader,
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

#[test]
fn a_reader_and_a_writer() {
    model(Some(4), || reader_and_writer(cohort()));
    model(Some(4), || reader_and_writer(one_node()));
}

#[test]
fn a_writer_and_a_writer() {
    model(Some(3), || two_writers(cohort()));
    model(Some(3), || two_writers(one_node()));
}

#[test]
fn readers_are_inside_together() {
    model(Some(3), || readers_share(cohort()));
}

#[test]
fn a_try_does_not_wait() {
    model(Some(3), || tries(cohort()));
}

#[test]
fn readers_and_a_writer() {
    model(Some(2), || two_readers_and_a_writer(cohort()));
}

#[test]
fn writers_and_a_reader() {
    model(Some(2), || two_writers_and_a_reader(cohort()));
    model(Some(2), || two_writers_and_a_reader(one_node()));
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

    #[test]
    fn a_writer_holds_all() {
        model(Some(3), || reader_and_writer(parts()));
        model(Some(2), || two_readers_and_a_writer(parts()));
    }

    #[test]
    fn writers_do_not_wait_for_each_other() {
        model(Some(3), || two_writers(parts()));
    }

    #[test]
    fn a_try_gives_back_what_it_got() {
        model(Some(3), || tries(parts()));
    }
}
