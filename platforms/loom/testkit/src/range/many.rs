//! Several ranges in one call.

use super::*;

/// Two calls ask for the same two ranges.
pub fn many_against_each_other<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write_many(&[0..1, 3..4]), write_many(&[0..2, 3..5])]);
}

/// Two calls ask for the same two ranges, and a request for all of both.
pub fn many_against_each_other_and_a_wide_one<L: Exclusive>(world: &Arc<World<L>>) {
    let narrow = write_many(&[0..1, 3..4]);
    world.meet([narrow, write(0..5), write_many(&[0..2, 3..5])]);
}

/// A reader of everything, inserted before another reader, meets the first of two ranges or the last. (A search from
/// another place than the beginning missed the last one once.)
pub fn many_beside_a_reader_of_all<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(1..2);
    world.meet([read(0..6), write_many(&[2..3, 4..5])]);
    drop(between);
}

/// A writer overlaps both of two ranges that are shared in one call.
pub fn many_shared_beside_a_writer<L: Shared>(world: &Arc<World<L>>) {
    world.meet([write(1..4), read_many(&[0..2, 3..5])]);
}

/// A writer meets the second of two ranges.
pub fn many_beside_a_writer_at_the_end<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(3..5), write_many(&[0..1, 3..4])]);
}

/// A writer's range lies between two ranges of one call.
pub fn many_around_a_writer<L: Exclusive>(world: &Arc<World<L>>) {
    world.meet([write(1..2), write_many(&[0..1, 2..3])]);
}
