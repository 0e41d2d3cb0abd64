//! Which holders may coexist, and what the next holder sees.

use super::*;

/// A reader and a writer.
pub fn a_reader_and_a_writer<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, read]);
}

/// Two writers: the second sees what the first did.
pub fn two_writers<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, write]);
    world.was_written(2);
}

/// Three writers: all sleep behind one, or behind each other.
pub fn three_writers<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, write, write]);
    world.was_written(3);
    world.try_read().expect("nobody is there").done();
}

/// Two readers and a writer.
pub fn two_readers_and_a_writer<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, read, read]);
}

/// Two writers and a reader.
pub fn two_writers_and_a_reader<L: Lock>(world: &Arc<World<L>>) {
    world.meet([write, read, write]);
    world.was_written(2);
}

/// A reader beside a reader: joined while the lock is held, so that exclusion would be a deadlock.
pub fn readers_are_inside_together<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read();
    world.run([read]);
    mine.done();
}

/// A try does not wait. One that is granted excludes.
pub fn a_try_does_not_wait<L: Lock>(world: &Arc<World<L>>) {
    world.meet([try_write, try_read]);
    world.is_free();
}

/// A reader and a writer come while a writer is inside. The reader waits for one writer only: else a phase-fair reader
/// and the next writer would wait for each other.
pub fn a_reader_and_a_writer_behind_a_writer<L: Lock>(world: &Arc<World<L>>) {
    world.behind_a_writer([read, write]);
    world.is_free();
}

/// A try between two writers does not take the phase that a waiting reader waits for.
pub fn a_try_takes_no_phase<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.write();
    let others = world.start([read, try_write]);
    mine.done();
    write(world);
    others.join();
}

/// One writer hands the lock to the next. The writer after them waits for readers all the same.
pub fn a_writer_after_a_handover_waits_for_readers<L: Lock>(world: &Arc<World<L>>) {
    world.behind_a_writer([write]);
    world.meet([write, read]);
}

/// A thread that reads, reads again while a writer waits for it.
pub fn reading_twice_beside_a_writer<L: Lock>(world: &Arc<World<L>>) {
    world.read_twice_beside([write]);
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
