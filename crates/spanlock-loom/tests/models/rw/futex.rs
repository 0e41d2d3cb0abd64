//! The futex lock: entering and leaving, who is woken, giving up.

use super::{Guarded, downgrade_lets_readers_in, two_readers_and_a_writer};
use prim::model;
use spanlock_loom::rw::{FutexRwLock, ReadersFirst, WritersFirst};

fn writers_first() -> FutexRwLock<WritersFirst> {
    FutexRwLock::new()
}

fn readers_first() -> FutexRwLock<ReadersFirst> {
    FutexRwLock::new()
}

models!(writers_first(); two: None, three: Some(3));

#[test]
fn readers_first_and_a_writer() {
    model(Some(3), || two_readers_and_a_writer(readers_first()));
}

/// All three sleep behind one, or behind each other.
#[test]
fn three_writers() {
    model(Some(3), || {
        let guarded = Guarded::new(writers_first());
        let first = guarded.spawn(|guarded| guarded.write().done());
        let second = guarded.spawn(|guarded| guarded.write().done());
        guarded.write().done();
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A writer that gives up takes nobody's wake-up with it.
#[test]
fn a_writer_gives_up_beside_another() {
    model(Some(3), || {
        let guarded = Guarded::new(writers_first());
        let mine = guarded.write();
        let hasty = guarded.spawn(|guarded| guarded.write_soon().is_some());
        let patient = guarded.spawn(|guarded| guarded.write().done());
        mine.done();
        hasty.join().unwrap();
        patient.join().unwrap();
    });
}

/// A reader that held back for a writer goes on when the writer gives up.
#[test]
fn a_reader_goes_on_when_the_writer_gives_up() {
    model(Some(3), || {
        let guarded = Guarded::new(writers_first());
        let mine = guarded.read();
        let hasty = guarded.spawn(|guarded| guarded.write_soon().is_some());
        let reader = guarded.spawn(|guarded| guarded.read().done());
        reader.join().unwrap();
        mine.done();
        hasty.join().unwrap();
    });
}

/// A reader comes while a writer is inside, and finds that; a writer that comes next may find that reader.
#[test]
fn a_reader_in_vain_and_a_writer_that_saw_it() {
    model(Some(3), || {
        let guarded = Guarded::new(writers_first());
        let mine = guarded.write();
        let reader = guarded.spawn(|guarded| guarded.read().done());
        let writer = guarded.spawn(|guarded| guarded.write().done());
        mine.done();
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    });
}

#[test]
fn a_reader_gives_up() {
    model(Some(3), || {
        let guarded = Guarded::new(writers_first());
        let mine = guarded.write();
        let hasty = guarded.spawn(|guarded| guarded.read_soon().is_some());
        let writer = guarded.spawn(|guarded| guarded.write().done());
        mine.done();
        hasty.join().unwrap();
        writer.join().unwrap();
    });
}

/// The new reader keeps writers out, and lets in readers who waited.
#[test]
fn downgrade_lets_waiting_readers_in() {
    model(Some(3), || downgrade_lets_readers_in(writers_first()));
}

#[test]
fn downgrade_keeps_writers_out() {
    model(Some(3), || {
        super::downgrade_keeps_writers_out(writers_first())
    });
}

/// A thread that reads reads again, whoever waits for it.
#[test]
fn reading_twice_while_a_writer_waits() {
    model(None, || {
        let guarded = Guarded::new(readers_first());
        let mine = guarded.read();
        let writer = guarded.spawn(|guarded| guarded.write().done());
        guarded.read().done();
        mine.done();
        writer.join().unwrap();
    });
}

/// A reader takes marks for those of writers that are not in this process, while they are: nobody sleeps for good.
#[test]
fn a_mark_is_taken_for_a_dead_writers() {
    model(Some(2), || {
        let guarded = Guarded::new(writers_first());
        let mine = guarded.read();
        let first = guarded.spawn(|guarded| guarded.write().done());
        let second = guarded.spawn(|guarded| guarded.write().done());
        let reader = guarded.spawn(|guarded| {
            prim::thread::pretend_fork();
            guarded.read().done();
        });
        mine.done();
        first.join().unwrap();
        second.join().unwrap();
        reader.join().unwrap();
        guarded.try_write().expect("nobody is there").done();
    });
}
