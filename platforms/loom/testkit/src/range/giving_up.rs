//! Requests that do not wait, or not for long.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// A try that is refused for as long as it lasts refuses nobody: neither a thread's first, nor one that has a slot.
pub fn a_refused_try_refuses_nobody<L: Exclusive>(world: &Arc<World<L>>) {
    beside_a_holder(world, |world| {
        is_refused(0..3)(world);
        is_refused(0..3)(world);
    });
}

/// The same of a try beside what its thread holds.
pub fn a_try_refused_beside_a_hold_refuses_nobody<L: Exclusive>(world: &Arc<World<L>>) {
    beside_a_holder(world, |world| {
        let own = world.write(5..6);
        is_refused(0..3)(world);
        own.done();
    });
}

/// The same of a reader that is refused behind another reader.
pub fn a_refused_reader_refuses_nobody<L: Shared>(world: &Arc<World<L>>) {
    let between = world.read(1..2);
    beside_a_holder(world, |world| {
        assert!(world.read_within(0..3, Wait::Never).is_none());
    });
    between.done();
}

/// The same of a call that tries several ranges.
pub fn many_that_are_refused_refuse_nobody<L: Exclusive>(world: &Arc<World<L>>) {
    beside_a_holder(world, |world| {
        let lock = RangeMutex::from_raw(Lent(&world.lock));
        assert!(lock.try_lock_many([0..1, 2..3]).is_none());
    });
}

/// Somebody holds a range. Beside an act that tries to get some of it, a try elsewhere is granted.
pub(super) fn beside_a_holder<L: Exclusive>(
    world: &Arc<World<L>>,
    refused: impl FnOnce(&Arc<World<L>>) + 'static,
) {
    let held = world.write(2..3);
    let other = world.start([act(refused)]);
    let granted = world.write_within(0..1, Wait::Never);
    granted.expect("nobody holds it").done();
    other.join();
    held.done();
}

/// Of two tries in each other's way at least one is granted.
pub fn one_of_two_tries_is_granted<L: Exclusive>(world: &Arc<World<L>>) {
    one_is_granted(world, |world, range| {
        world.write_within(range, Wait::Never).map(Hold::done)
    });
}

/// The same where one of them reads.
pub fn a_try_to_read_or_one_to_write_is_granted<L: Shared>(world: &Arc<World<L>>) {
    one_is_granted(world, |world, range| {
        world.read_within(range, Wait::Never).map(Hold::done)
    });
}

fn one_is_granted<L: Exclusive>(
    world: &Arc<World<L>>,
    tries: fn(&World<L>, Range<u64>) -> Option<()>,
) {
    // The standard library's: it is no part of the model.
    let is_granted = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&is_granted);
    let other = world.start([act(move |world: &Arc<World<L>>| {
        theirs.fetch_or(tries(world, 1..3).is_some(), Ordering::Relaxed);
    })]);
    let mine = world.write_within(0..2, Wait::Never).map(Hold::done);
    other.join();
    assert!(mine.is_some() || is_granted.load(Ordering::Relaxed));
}
