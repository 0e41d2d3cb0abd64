//! Writers that become readers.

use super::*;

/// A writer that becomes a reader lets in readers that waited.
pub fn downgrade_lets_waiting_readers_in<L: Downgrades>(world: &Arc<World<L>>) {
    let mine = world.write();
    let reader = world.start([read]);
    mine.change();
    let mine = mine.downgrade();
    // Joined while the lock is held.
    reader.join();
    mine.done();
}

/// A writer that becomes a reader keeps writers out.
pub fn downgrade_keeps_writers_out<L: Downgrades>(world: &Arc<World<L>>) {
    let mine = world.write();
    let writer = world.start([write]);
    mine.change();
    mine.downgrade().done();
    writer.join();
}

/// A writer becomes a reader. Others set a bias beside it, and a writer revokes that.
pub fn a_bias_is_set_beside_a_downgrade<L: Downgrades>(world: &Arc<World<L>>) {
    let mine = world.write();
    mine.change();
    let read_twice: Act<L> = |world| {
        read(world);
        read(world);
    };
    let others = world.start([read_twice, write]);
    mine.downgrade().done();
    others.join();
    world.was_written(2);
}
