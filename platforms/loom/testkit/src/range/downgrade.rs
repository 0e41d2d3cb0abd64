//! Writers that share their range.

use super::*;

/// A downgrade wakes a reader that waits for the writer.
pub fn downgrade_lets_waiting_readers_in<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.write(0..2);
    let reader = world.start([read(1..3)]);
    mine.touch();
    let mine = mine.downgrade();
    // Joined while the range is held.
    reader.join();
    mine.done();
}

/// A reader comes before the writer, or waits for it, and the downgrade lets it in.
pub fn a_downgrade_beside_a_reader<L: Shared>(world: &Arc<World<L>>) {
    downgrade_beside(world, read(1..3), 0..2);
}

/// A thread writes a range and shares it beside a reader that starts before. The reader must get in.
pub(super) fn downgrade_beside<L: Shared>(world: &Arc<World<L>>, reader: Act<L>, mine: Range<u64>) {
    let reader = world.start([reader]);
    let mine = world.write(mine);
    mine.touch();
    let mine = mine.downgrade();
    // Joined while the range is held.
    reader.join();
    mine.done();
}

/// A downgrade does not let a writer in.
pub fn downgrade_keeps_writers_out<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_downgrade(0..2, [write(1..3)]);
}

/// A reader and a writer sleep behind one position. The downgrade wakes the reader, the release the writer.
pub fn downgrade_keeps_writers_out_and_does_not_forget_them<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_downgrade(0..1, [read(0..1), write(0..1)]);
}

/// A reader and a writer of different positions wait for a holder that shares and then leaves.
pub fn a_downgrade_before_two_that_wait<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_downgrade(0..2, [read(0..1), write(1..3)]);
}
