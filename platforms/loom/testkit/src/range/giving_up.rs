//! Requests that do not wait, or not for long.

use super::*;

in_steps! {
    Shared;

    /// A try is refused or excludes; either way it leaves nothing behind.
    fn a_try_never_waits_and_never_intrudes: meet([try_write(0..2), try_read(1..3)]), is_free();

    /// A writer gives up while a reader sleeps behind the same holder, or behind the writer, and the holder shares.
    fn a_time_out_beside_a_downgrade: behind_a_downgrade(0..2, [write_soon(0..2), read(1..2)]), is_free();
}

in_steps! {
    Exclusive;

    /// A writer that gives up may be granted its range just then. Either way it leaves nothing behind.
    fn one_that_gives_up: meet([write_soon(0..2), write(1..3)]), is_free();

    /// Two writers behind one holder both give up.
    fn two_that_give_up: behind_a_writer(0..1, [write_soon(0..2), write_soon(0..2)]), is_free();

    /// A writer gives up, perhaps just when it is woken, and another of the same range sleeps behind it.
    fn giving_up_passes_the_turn_on: behind_a_writer(0..1, [write_soon(0..1), write(0..1)]), is_free();

    /// A writer gives up while it is woken, and another of a part of its range sleeps behind it.
    fn a_time_out_beside_an_inheritance: behind_a_writer(0..2, [write_soon(0..2), write(1..2)]), is_free();
}

/// A try that is refused at the far end of its range leaves nothing behind at the near end, and no request asleep
/// there.
pub fn a_refused_try_rolls_back<L: Shared>(world: &Arc<World<L>>) {
    let far = world.read(1..2);
    world.run([is_refused(0..2), write(0..1)]);
    drop(far);
    world.is_free();
}

/// Two tries each take a part that makes the other fail. Both are undone.
pub fn refused_tries_roll_back<L: Exclusive>(world: &Arc<World<L>>) {
    let held = world.write(1..2);
    world.meet([is_refused(0..2), is_refused(0..3)]);
    held.done();
    world.is_free();
}

/// A reader that gives up and a try each take a part that makes the other fail. Both are undone.
pub fn a_reader_that_gives_up_rolls_back<L: Shared>(world: &Arc<World<L>>) {
    let held = world.write(1..2);
    let gives_up = act(|world: &Arc<World<L>>| assert!(world.read_within(0..2, soon()).is_none()));
    world.meet([gives_up, is_refused(0..3)]);
    held.done();
    world.is_free();
}
