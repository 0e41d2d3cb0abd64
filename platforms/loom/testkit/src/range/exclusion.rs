//! Which holders exclude each other, and which do not.

use super::*;

/// Two writers whose ranges overlap exclude each other.
pub fn two_writers_overlapping<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(0..2), write(1..3)]);
}

/// A reader and a writer whose ranges overlap exclude each other.
pub fn a_reader_and_a_writer<L: Shared>(world: &Arc<World<L>>) {
    world.meet([read(0..2), write(1..3)]);
}

/// A writer comes after both of two readers, though the last of them alone lets it in.
pub fn two_readers_and_a_writer<L: Shared>(world: &Arc<World<L>>) {
    world.meet([read(0..2), write(1..2), read(1..3)]);
}

/// Of three writers, each comes across what another has released.
pub fn three_writers<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(0..2), write(1..3), write(0..3)]);
}

/// Readers whose ranges overlap hold them at the same time.
pub fn overlapping_readers_coexist<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.read(0..3);
    // Joined while the range is held: a lock that excluded the other would deadlock here.
    world.run([read(1..4)]);
    mine.done();
}

/// Writers whose ranges are neighbours hold them at the same time.
pub fn disjoint_holders_coexist<L: Exclusive>(world: &Arc<World<L>>) {
    let mine = world.write(0..2);
    // Joined while the range is held.
    world.run([write(2..4)]);
    mine.done();
    world.is_free();
}

/// Writers of neighbouring ranges come and go, and neither undoes what the other did to the lock.
pub fn disjoint_writers_come_and_go<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(2..4), write(0..2)]);
    world.is_free();
}

/// Two threads each hold a range and read up to the start of the other's: neighbours do not count as overlapping.
pub fn neighbours_do_not_wait_for_each_other<L: Shared>(world: &Arc<World<L>>) {
    let write_and_read = |mine, next| {
        act(move |world: &Arc<World<L>>| {
            let hold = world.write(mine);
            world.read(next).done();
            hold.done();
        })
    };
    world.meet([write_and_read(2..4, 4..6), write_and_read(6..8, 0..2)]);
}

/// A writer passes over a node while another thread reuses those that it came by.
pub fn nodes_return_under_a_walk<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(3..4), write_each(0..4)]);
}

/// Two writers, one after another, each overlap a wide one. A node that is freed is used again at once.
pub fn writers_come_and_go_beside_a_wide_one<L: Exclusive>(world: &Arc<World<L>>) {
    let wide = world.start([write(0..4)]);
    world.write(0..2).done();
    world.write(1..3).done();
    wide.join();
}
