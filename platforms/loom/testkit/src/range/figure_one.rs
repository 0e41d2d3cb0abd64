//! P1's Figure 1: a reader and a writer whose ranges overlap are inserted at different places. A third node lies
//! between the places, so that the two do not compete for one link.

use super::*;

/// The third node leaves meanwhile.
pub fn figure_one<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_reader(2..3, [read(1..6), write(4..5)]);
}

/// The third node stays to the end.
pub fn figure_one_with_a_lasting_separator<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(2..3);
    world.meet([read(1..6), write(4..5)]);
    drop(between);
}

/// Another request is inserted before the reader: the writer's walk leads over it.
pub fn figure_one_with_a_detour<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(2..3);
    let reader = act(|world: &Arc<World<L>>| {
        let reader = world.read(1..6);
        let detour = world.read(0..1);
        reader.done();
        detour.done();
    });
    world.meet([write(4..5), reader]);
    drop(between);
}

/// The writer shares its range while the reader validates.
pub fn figure_one_with_a_downgrade<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(2..3);
    downgrade_beside(world, read(1..6), 4..5);
    drop(between);
}

/// The reader gives up, and what it leaves behind does no harm.
pub fn figure_one_timed<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(2..3);
    let reader = world.start([read_soon(1..6)]);
    world.write(4..5).done();
    drop(between);
    reader.join();
    world.is_free();
}

/// A writer that fails validation starts over while a third thread unlinks what it left behind.
pub fn a_writer_starts_over_with_a_fresh_node<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(2..3);
    let twice = act(|world: &Arc<World<L>>| {
        world.write(4..5).done();
        world.write(4..5).done();
    });
    let others = world.start([read(1..6), twice]);
    drop(between);
    world.read(3..5).done();
    others.join();
}
