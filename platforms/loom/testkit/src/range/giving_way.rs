//! Which requests give way to a reservation, and for how long.
//!
//! Time hardly passes on loom, so a reservation once granted stays in force. A request that sleeps for a limited time
//! may wake at any moment, and then goes on.

use super::*;
use prim::thread;

/// Starts a request, and waits until it is asleep as the request of that number.
fn asleep<L: Shared>(world: &Arc<World<L>>, number: usize, request: Act<L>) -> Crew {
    let crew = world.start([request]);
    world.until_asleep(number);
    crew
}

/// A holder waits for a thread that holds nothing. The thread asks for a free part of what a reservation asks for,
/// which waits for the holder. Giving way for ever would close the circle.
pub fn a_holder_joins_a_worker<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let wide = asleep(world, 1, write(0..2));
    world.run([write(1..2)]);
    drop(mine);
    wide.join();
}

/// The same, where the worker slept behind a holder before, and is woken when that one leaves.
pub fn a_holder_joins_a_worker_that_sleeps<L: Shared>(world: &Arc<World<L>>) {
    let far = world.write(1..2);
    let worker = asleep(world, 1, write(1..2));
    let holder = world.spawn(move |world| {
        let mine = world.write(0..1);
        let wide = world.start([write(0..2)]);
        worker.join();
        drop(mine);
        wide.join();
    });
    drop(far);
    holder.join().unwrap();
}

/// A holder joins two workers, which slept before there was a reservation. One of them is woken to give way. The other
/// sleeps behind it, and is to be woken when the first goes on, or gives way.
pub fn a_holder_joins_two_workers_that_sleep<L: Shared>(world: &Arc<World<L>>) {
    let all = world.write(0..2);
    let wide = asleep(world, 1, write(0..2));
    let workers = [asleep(world, 2, write(1..2)), asleep(world, 3, write(1..2))];
    drop(all);
    // If this is faster than the wide request, that one reserves when it meets it.
    let mine = world.write(0..1);
    for worker in workers {
        worker.join();
    }
    drop(mine);
    wide.join();
}

/// A holder asks for more while a reservation of that waits for what it holds. It is granted at once.
pub fn a_holder_does_not_give_way_to_a_request_behind_it<L: Shared>(world: &Arc<World<L>>) {
    let first = world.write(0..1);
    let waiter = asleep(world, 1, write(0..2));
    let second = world.write_within(1..2, Wait::Never);
    second.expect("nobody holds it").done();
    drop(first);
    waiter.join();
}

/// A holder of something that a reservation does not wait for gives way like others, and goes on in the end.
pub fn a_holder_elsewhere_gives_way<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let writer = asleep(world, 1, write(0..2));
    world.run([act(|world: &Arc<World<L>>| {
        let elsewhere = world.write(3..4);
        gives_way(world);
        world.read(0..1).done();
        drop(elsewhere);
    })]);
    drop(mine);
    writer.join();
}

/// Readers that come later are refused, or wait, and get their turn.
pub fn newcomers_give_way_and_are_not_forgotten<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let writer = asleep(world, 1, write(0..2));
    world.run([act(gives_way)]);
    let reader = world.start([read(0..1)]);
    drop(mine);
    writer.join();
    reader.join();
}

/// A writer sleeps behind a reader, which does not leave while another one tries to get in, and gives way in the end.
pub fn a_sleeping_writer_is_not_overtaken_for_ever<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.read(0..1);
    let writer = world.start([write(0..1)]);
    world.run([act(|world: &Arc<World<L>>| {
        while world.read_within(0..1, Wait::Never).is_some() {
            thread::yield_now();
        }
    })]);
    drop(mine);
    writer.join();
}

/// The same for a reader of two positions behind a writer of one: a writer of the other tries to get in.
pub fn a_sleeping_reader_is_not_overtaken_for_ever<L: Shared>(world: &Arc<World<L>>) {
    let mine = world.write(0..1);
    let reader = world.start([read(0..2)]);
    world.run([act(|world: &Arc<World<L>>| {
        while world.write_within(1..2, Wait::Never).is_some() {
            thread::yield_now();
        }
    })]);
    drop(mine);
    reader.join();
}

fn gives_way<L: Shared>(world: &Arc<World<L>>) {
    let overtakes = world.read_within(0..1, Wait::Never).is_some();
    assert!(!overtakes, "a reader overtook");
}

/// A holder is in the way of a reservation. It heeds no later reservation either: its request is granted at once,
/// although the later one asks for the same and waits for somebody else.
pub fn a_holder_heeds_no_reservation_after_one_behind_it<L: Shared>(world: &Arc<World<L>>) {
    let elsewhere = world.write(3..4);
    let holder = world.spawn(|world| {
        let mine = world.write(0..1);
        let first = asleep(world, 1, write(0..2));
        let second = asleep(world, 2, write(2..4));
        let more = world.write_within(2..3, Wait::Never);
        more.expect("nobody holds it").done();
        drop(mine);
        first.join();
        second
    });
    let second = holder.join().unwrap();
    drop(elsewhere);
    second.join();
}
