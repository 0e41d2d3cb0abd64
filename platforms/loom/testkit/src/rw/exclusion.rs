//! Which holders may coexist, and what the next holder sees.

use super::*;

in_steps! {
    Recursive;

    /// A thread that reads, reads again while a writer waits for it.
    fn reading_again_beside_a_writer: read_again_beside([write]), was_written(1);

    /// The same beside a reader that comes behind the writer.
    fn reading_again_beside_a_writer_and_a_reader: read_again_beside([write, read]), is_free();
}

in_steps! {
    Lock;

    /// A reader and a writer.
    fn a_reader_and_a_writer: meet([write, read]);

    /// Two writers: the second sees what the first did.
    fn two_writers: meet([write, write]), was_written(2);

    /// Two readers and a writer.
    fn two_readers_and_a_writer: meet([write, read, read]);

    /// Two writers and a reader.
    fn two_writers_and_a_reader: meet([write, read, write]), was_written(2);

    /// A try does not wait. One that is granted excludes.
    fn a_try_does_not_wait: meet([try_write, try_read]), is_free();

    /// A reader and a writer come while a writer is inside. The reader waits for one writer only: else a phase-fair
    /// reader
    /// and the next writer would wait for each other.
    fn a_reader_and_a_writer_behind_a_writer: behind_a_writer([read, write]), is_free();

    /// One writer hands the lock to the next. The writer after them waits for readers all the same.
    fn a_writer_after_a_handover_waits_for_readers: behind_a_writer([write]), meet([write, read]);

    /// A thread that reads, reads again while a writer waits for it.
    fn reading_twice_beside_a_writer: read_twice_beside([write]);
}

/// Three writers: all sleep behind one, or behind each other.
pub fn three_writers<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, write, write]);
    world.was_written(3);
    world.try_read().expect("nobody is there").done();
}

/// A reader beside a reader: joined while the lock is held, so that exclusion would be a deadlock.
pub fn readers_are_inside_together<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read();
    world.run([read]);
    mine.done();
}

/// A reader beside one that comes and goes: the lock is held all the time. There are two looks, as a loom thread loads
/// nothing new at first.
pub fn a_reader_is_seen_beside_another<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read();
    let looks = world.spawn(|world| {
        for _ in 0..2 {
            assert!(world.lock.is_locked(), "a reader is not seen");
        }
    });
    read(world);
    looks.join().unwrap();
    mine.done();
}

/// A try between two writers does not take the phase that a waiting reader waits for.
pub fn a_try_takes_no_phase<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.write();
    let others = world.start([read, try_write]);
    mine.done();
    write(world);
    others.join();
}

/// A token goes to another thread, which releases it while a writer waits for that.
pub fn released_by_another_thread<L: Lock<SharedGuard: 'static>>(world: &Arc<World<L>>) {
    let reading = world.read();
    reading.get();
    let token = reading.into_token();
    let writer = world.start([write]);
    let other = world.spawn(|world| drop(world.reading(token)));
    writer.join();
    other.join().unwrap();
    write(world);
}
