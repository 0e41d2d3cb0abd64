//! Requests that sleep, and the release that wakes them.

use super::*;

/// Two writers sleep behind a holder: the second inherits the wake-up of the first.
pub fn sleepers_are_woken_one_after_another<L: Exclusive>(world: &Arc<World<L>>) {
    world.behind_a_writer(0..2, [write(0..1), write(0..2)]);
}

/// A reader and a writer sleep behind one holder, and neither is forgotten.
pub fn a_writer_and_a_reader_sleep_behind_one_holder<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_writer(0..1, [read(0..1), write(0..1)]);
}

/// A writer sleeps behind two holders, and the last of them lets it in.
pub fn one_behind_two<L: Exclusive>(world: &Arc<World<L>>) {
    let holds = [world.write(0..1), world.write(2..3)];
    world.release_beside(holds, [write(0..3)]);
}

/// A writer that slept, with a reader asleep behind it, is granted its range and shares it.
pub fn a_downgrade_after_an_inheritance<L: Shared>(world: &Arc<World<L>>) {
    world.behind_a_writer(0..2, [write_and_read(0..2), read(0..1)]);
}

/// A reader that waits for a writer at one end of its range does not block that writer's second request at the other
/// end. The reader at 1 is there so that the waiting reader is inserted before it meets the writer.
pub fn a_waiting_reader_blocks_nobody<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(1..2);
    let far = world.write(4..6);
    let reader = world.start([read(0..5)]);
    world.write(2..3).done();
    drop(far);
    reader.join();
    drop(between);
}

/// A request that was woken finds another holder in its way and sleeps again. Requests that sleep behind it go on.
pub fn going_back_to_sleep_passes_the_turn_on<L: Exclusive>(world: &Arc<World<L>>) {
    let low = world.write(0..2);
    let wide = world.start([write(0..6)]);
    let narrow = world.start([write(0..1)]);
    drop(low);
    // Held until the narrow one is through: it overlaps the wide one only.
    let high = world.write_within(5..6, Wait::Never);
    narrow.join();
    drop(high);
    wide.join();
}

/// A request that sleeps behind the far end of its range has not kept the near end.
pub fn a_sleeper_has_empty_hands<L: Exclusive>(world: &Arc<World<L>>) {
    let far = world.write(2..3);
    let wide = world.start([write(0..3)]);
    world.until_asleep(1);
    // It is free; and this thread, which is a holder, need not give way.
    world.write(0..1).done();
    drop(far);
    wide.join();
}

/// A request that sleeps does not keep nodes from their reuse. None is lost when the lock is dropped.
pub fn a_sleeper_does_not_walk_and_a_dropped_lock_leaks_nothing<L: Exclusive>(
    world: &Arc<World<L>>,
) {
    let mine = world.write(0..1);
    let sleeper = world.start([write(0..1)]);
    write_each(1..5)(world);
    drop(mine);
    sleeper.join();
}
