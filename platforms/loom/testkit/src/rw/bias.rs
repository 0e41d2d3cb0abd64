//! Locks with a bias for readers. The first read of a thread gives it a row of the table; a write revokes the bias, and
//! a read may set it again.

use super::*;

/// A thread that has a row reads beside a writer, as most reads are.
pub fn a_fast_reader_and_a_writer<L: Lock>(world: &Arc<World<L>>) {
    read(world);
    world.meet([write, read]);
    world.was_written(1);
}

/// After a write the bias is younger than before it: readers and writers fence otherwise.
pub fn a_fast_reader_and_two_writes<L: Lock>(world: &Arc<World<L>>) {
    write(world);
    world.meet([write, read]);
    world.was_written(2);
}

/// The same, and the bias comes back meanwhile: what the writer did comes with it.
pub fn a_fast_reader_a_writer_and_another_reader<L: Lock>(world: &Arc<World<L>>) {
    read(world);
    world.meet([write, read, read]);
}

/// Two writers of a lock that has its bias.
pub fn two_writers_after_a_reader<L: Lock>(world: &Arc<World<L>>) {
    read(world);
    two_writers(world);
}

/// A fast reader leaves two writers: one clears the bias before it has the lock, and the other takes its word for it.
pub fn a_fast_reader_leaves_two_writers<L: Lock>(world: &Arc<World<L>>) {
    let mine = world.read();
    let writers = world.start([write, write]);
    mine.done();
    writers.join();
    world.was_written(2);
}

/// A reader that came by the underlying lock sets the bias, while a writer wants that lock or has it and checks the
/// bias.
pub fn a_bias_is_set_beside_a_writer<L: Lock>(world: &Arc<World<L>>) {
    write(world);
    let writer = world.start([write]);
    read(world);
    read(world);
    writer.join();
    world.was_written(2);
}

/// What a writer did reaches a fast reader by way of another reader, which set the bias.
pub fn a_bias_brings_what_a_writer_did<L: Lock>(world: &Arc<World<L>>) {
    write(world);
    world.meet([write, read, read]);
}

/// A thread reads twice beside a writer, after the bias was revoked.
pub fn reading_twice_after_a_write<L: Lock>(world: &Arc<World<L>>) {
    write(world);
    reading_twice_beside_a_writer(world);
}

/// A reader that comes while a writer waits for another reader gets in: the reader inside may be waiting for it.
pub fn readers_get_in_while_a_writer_waits<L: Lock>(world: &Arc<World<L>>) {
    world.read_together_beside([write]);
}
